import { matchesGlob } from '../kit/glob.ts';

/** Docker Hub's other names; in images' names it is `docker.io`. */
const HUB_ALIAS = /^(?:index|registry-1)\.docker\.io(?=\/)/;

/**
 * The spellings under which a pattern is looked for: its own, and where that differs the one that images' names have, whose
 * host is in lower case and `docker.io` for Docker Hub.
 */
export function spellings(pattern: string): string[] {
  const host = /^[^/]*(?=\/)/.exec(pattern)?.[0] ?? '';
  return [...new Set([pattern, hubNamed(host.toLowerCase() + pattern.slice(host.length))])];
}

/** Whether images of this name (`registry-1.docker.io/library/nginx`) are meant by one of the patterns. */
export function createNameMatcher(patterns: readonly string[]): (name: string) => boolean {
  const wanted = patterns.flatMap(spellings);
  return (name) => wanted.some((pattern) => matchesGlob(pattern, name) || matchesGlob(pattern, hubNamed(name)));
}

function hubNamed(name: string): string {
  return name.replace(HUB_ALIAS, 'docker.io');
}
