import { matchesGlob } from '../kit/glob.ts';

/** Other host names of Docker Hub. Normalised image names use `docker.io`. */
const HUB_ALIAS = /^(?:index|registry-1)\.docker\.io(?=\/)/;

/**
 * Returns the spellings of a pattern that are compared with image names: the pattern itself and, if it differs, the pattern with
 * a normalised host (lower case, and `docker.io` for Docker Hub).
 */
export function spellings(pattern: string): string[] {
  const host = /^[^/]*(?=\/)/.exec(pattern)?.[0] ?? '';
  return [...new Set([pattern, hubNamed(host.toLowerCase() + pattern.slice(host.length))])];
}

/** Returns a function that says whether one of the patterns matches an image name (`registry-1.docker.io/library/nginx`). */
export function createNameMatcher(patterns: readonly string[]): (name: string) => boolean {
  const wanted = patterns.flatMap(spellings);
  return (name) => wanted.some((pattern) => matchesGlob(pattern, name) || matchesGlob(pattern, hubNamed(name)));
}

function hubNamed(name: string): string {
  return name.replace(HUB_ALIAS, 'docker.io');
}
