/** Returns the known name that is nearest to an unknown one, or undefined if none is near enough to be a likely typo. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  const wanted = name.toLowerCase();
  let best: { name: string; distance: number } | undefined;
  for (const candidate of known) {
    const distance = editDistance(wanted, candidate.toLowerCase());
    if (best === undefined || distance < best.distance) best = { name: candidate, distance };
  }
  return best !== undefined && best.distance <= Math.max(2, Math.floor(name.length / 3)) ? best.name : undefined;
}

/** Returns the Levenshtein distance, computed one row at a time. The second text must be a short name from the program itself. */
export function editDistance(one: string, other: string): number {
  const text = one.slice(0, 100);
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let i = 0; i < text.length; i++) {
    const next = [i + 1];
    for (let j = 0; j < other.length; j++) {
      const replaced = (row[j] ?? 0) + (text[i] === other[j] ? 0 : 1);
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row[other.length] ?? 0;
}
