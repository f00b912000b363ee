import { ARCHITECTURES_ANNOTATION } from '../names.ts';
import type { Asked } from './asked.ts';
import type { Decision, DecisionBasis } from './decide.ts';
import { withinText } from './reasons.ts';
import type { Settings } from './settings.ts';

/** A guess on `fallback` proves nothing, and what follows the cluster or was released does not come from the images. */
const SAYS: Readonly<Record<DecisionBasis, string | undefined>> = {
  images: 'its images run on',
  statement: `its annotation ${ARCHITECTURES_ANNOTATION} says`,
  written: 'by what archaware wrote to it before, its images run on',
  open: 'its known images run on',
  cluster: undefined,
  fallback: undefined,
  released: undefined,
};

/**
 * Returns why no node can run a pod that asks for other architectures than its images have: `requires kubernetes.io/arch=arm64 by
 * its nodeSelector, but its images run on amd64 only`; undefined if it can run, or if that is not known.
 */
export function contradictionOf(
  decision: Decision | { readonly kind: 'skip' },
  asked: Pick<Asked, 'text' | 'architectures'> | undefined,
  { schedulable }: Pick<Settings, 'schedulable'>,
): string | undefined {
  if (asked === undefined || decision.kind !== 'place') return undefined;
  const { architectures, basis, followsCluster } = decision;
  const said = SAYS[basis];
  if (said === undefined || followsCluster || architectures.length === 0) return undefined;
  if (architectures.some((name) => asked.architectures.includes(name))) return undefined;
  return `requires ${asked.text}, but ${said} ${architectures.join(', ')} only${withinText(schedulable)}`;
}
