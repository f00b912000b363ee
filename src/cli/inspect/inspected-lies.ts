import { isoTime } from '../../kit/duration.ts';
import type { Platform } from '../../kit/platform.ts';
import type { Lies } from '../../placement/lies/lies.ts';

/** What containers have shown of one platform of an image. */
export type InspectedLie = {
  /** `linux/arm64`. */
  readonly platform: string;
  /** The namespaces whose pods showed it: one, for whose pods it counts, or two, and then for all. */
  readonly namespaces: readonly string[];
  /** When it was shown first. */
  readonly learnedAt: string;
  /** Whether the platform counts nevertheless, for the pods of all namespaces. */
  readonly counts: boolean;
  /** The same as a sentence. */
  readonly text: string;
};

/**
 * Returns what was shown of an image that is not what its index says. What one pod asks for, and what the cluster has, is not known
 * here: only `explain` says what counts for a pod.
 */
export function inspectLies(
  { digest, platforms }: { readonly digest: string; readonly platforms: readonly Platform[] },
  lies: Pick<Lies, 'of' | 'lyingFor'>,
  mode: 'learn' | 'report',
): InspectedLie[] {
  const claimed = platforms.map(({ os, architecture }) => `${os}/${architecture}`);
  const shown = lies.of(digest).filter(({ platform }) => claimed.includes(platform));
  return [...new Set(shown.map(({ platform }) => platform))].sort().map((platform) => {
    const by = shown.filter((each) => each.platform === platform);
    const namespaces = [...new Set(by.map(({ namespace }) => namespace))].sort();
    const isAnyLeft = namespaces.some((namespace) => {
      const wrong = lies.lyingFor(namespace, digest);
      return claimed.some((each) => !wrong.includes(each));
    });
    const learnedAt = isoTime(Math.min(...by.map(({ atMs }) => atMs)));
    const names = namespaces.length === 1 ? 'namespace' : 'namespaces';
    const evidence = `its program was refused on a node (exec format error), shown by ${names} ${namespaces.join(', ')}, learned ${learnedAt}`;
    const why =
      mode === 'report' ? 'images.lies is report' : isAnyLeft ? undefined : 'no other architecture would be left';
    const scope = namespaces.length === 1 ? '; for the pods of this namespace only' : '';
    const text =
      why === undefined
        ? `${platform} does not count: ${evidence}${scope}`
        : `${platform} counts, although ${evidence}: ${why}`;
    return { platform, namespaces, learnedAt, counts: why !== undefined, text };
  });
}
