/**
 * Whether `text` matches `pattern`: `*` stands for any run of characters (including `/`, and including none), `?` for
 * one character. Takes linear time in practice: it remembers only the last star and never builds a regular expression.
 */
export function matchesGlob(pattern: string, text: string): boolean {
  return matchesElements(pattern, text, (element, character) => element === '?' || element === character);
}

/** The same for the elements of another pattern: `*`, or one of which `isOne` says whether a character matches it. */
export function matchesElements(
  pattern: ArrayLike<string>,
  text: string,
  isOne: (element: string, character: string) => boolean,
): boolean {
  let p = 0;
  let t = 0;
  let star = -1;
  let resume = 0;
  while (t < text.length) {
    const element = pattern[p];
    if (element === '*') {
      star = p++;
      resume = t;
    } else if (element !== undefined && isOne(element, text.charAt(t))) {
      p++;
      t++;
    } else if (star >= 0) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (pattern[p] === '*') p++;
  return p === pattern.length;
}

/** Whether at least one of the patterns matches; false for an empty list. */
export function matchesAnyGlob(patterns: readonly string[], text: string): boolean {
  return patterns.some((pattern) => matchesGlob(pattern, text));
}
