type Version = { readonly prefix: string; readonly numbers: readonly number[]; readonly suffix: string };

/**
 * Returns the tags that are a newer version of a tag, at most three: the newest of the same minor version, of the same major
 * version, and of all; the nearest first. Only tags of the same form count: `1.27-alpine` and `1.29-alpine`, not `1.29`. None for a
 * tag without a version.
 */
export function newerTags(tag: string, tags: readonly string[]): string[] {
  const now = readVersion(tag);
  if (now === undefined) return [];
  const newer = tags
    .flatMap((name) => {
      const version = readVersion(name);
      return version !== undefined && isAlike(version, now) && compare(version, now) > 0 ? [{ name, version }] : [];
    })
    .sort((one, other) => compare(other.version, one.version));
  const within = (count: number) =>
    newer.find(({ version }) => version.numbers.slice(0, count).every((each, index) => each === now.numbers[index]));
  return [...new Set([2, 1, 0].flatMap((count) => within(count)?.name ?? []))];
}

function readVersion(tag: string): Version | undefined {
  const [, prefix = '', numbers = '', suffix = ''] =
    /^([vV]?)([0-9]{1,15}(?:\.[0-9]{1,15}){0,3})((?:[._+-].*)?)$/.exec(tag) ?? [];
  return numbers === '' ? undefined : { prefix, numbers: numbers.split('.').map(Number), suffix };
}

function isAlike(one: Version, other: Version): boolean {
  return one.prefix === other.prefix && one.suffix === other.suffix && one.numbers.length === other.numbers.length;
}

function compare(one: Version, other: Version): number {
  const differing = one.numbers.findIndex((number, index) => number !== other.numbers[index]);
  return differing < 0 ? 0 : (one.numbers[differing] ?? 0) - (other.numbers[differing] ?? 0);
}
