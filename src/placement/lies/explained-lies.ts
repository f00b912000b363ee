import { isoTime } from '../../kit/duration.ts';
import type { ExplainedLie } from '../explain/explanation.ts';
import type { Narrowing } from '../images.ts';
import type { Showing } from './lies.ts';

/** Returns what was shown of an image, and whether it counts, as `explain` says it. */
export function explainLies(
  { lies }: Extract<Narrowing, { readonly kind: 'set' }>,
  shown: readonly Showing[],
): ExplainedLie[] {
  return [...new Set(shown.map(({ platform }) => platform))].map((platform) => {
    const by = shown.filter((each) => each.platform === platform);
    const [first] = by;
    const namespaces = by.map(({ namespace }) => namespace).join(', ');
    const evidence =
      first === undefined
        ? ''
        : `its program was refused on node ${first.node} (exec format error), learned ${isoTime(first.atMs)}, from namespace ${namespaces}`;
    const isFor = lies?.platforms.includes(platform) === true;
    const why = !isFor
      ? 'another namespace has not shown it'
      : lies?.ignored === undefined
        ? undefined
        : WHY[lies.ignored];
    const text =
      why === undefined
        ? `${platform} does not count: ${evidence}; images.overrides decides otherwise`
        : `${platform} counts, although ${evidence}: ${why}`;
    return { platform, counts: why !== undefined, text };
  });
}

const WHY = {
  reported: 'images.lies is report',
  'nothing-left': 'no other architecture would be left',
} as const;
