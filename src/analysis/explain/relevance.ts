import type { Decision } from '../../placement/decide.ts';
import { isSystemPod, type SkipReason } from '../../placement/eligibility.ts';
import type { NarrowedImage } from '../../placement/images.ts';
import { usesAffinity, usesTaints } from '../../placement/placing.ts';
import type { ExplainEvidence } from './explanation.ts';
import type { ExplainInput } from './input.ts';

/** Returns the configuration keys that influenced a decision, so that a reader need not go through all of them. */
export function keysThatMatter(
  { workload, namespace }: ExplainInput,
  { settings, skipped, narrowed, wrongNode }: Pick<ExplainEvidence, 'settings' | 'skipped' | 'narrowed' | 'wrongNode'>,
  decision: Decision | undefined,
): string[] {
  const isUnknown = narrowed.some(({ said }) => said.kind === 'failed');
  const isUncommon = decision?.kind === 'hold' || (decision?.kind === 'place' && decision.basis === 'released');
  const rows: readonly (readonly [key: string, matters: boolean])[] = [
    ['placement.mode', settings.mode !== 'taints'],
    ['taints.manage', usesTaints(settings) && !settings.taints.manage],
    ['taints.key', usesTaints(settings)],
    ['taints.effect', usesTaints(settings)],
    ['pods.matchNodeLabels', usesAffinity(settings) && settings.matchNodeLabels.length > 0],
    ['architectures.preferred', usesAffinity(settings) && Object.keys(settings.preferred).length > 0],
    ['architectures.schedulable', skipped === undefined && settings.schedulable.length > 0],
    ['architectures.compatible', narrowed.some(isWidened)],
    ['images.overrides', narrowed.some(({ said }) => said.kind === 'set' && said.by === 'override')],
    ['images.unresolvable', isUnknown],
    ['images.fallbackAfter', isUnknown && settings.unresolvable !== 'wait'],
    ['architectures.fallback', isUnknown && settings.unresolvable === 'fallback'],
    ['systemNamespaces', isUnknown && isSystemPod(workload.template, namespace.name, settings)],
    ['placement.noCommonArchitecture', isUncommon],
    ['pods.onWrongNode', wrongNode !== undefined],
  ];
  return [...keysOf(skipped), ...rows.flatMap(([key, matters]) => (matters ? key : []))];
}

/** Whether `architectures.compatible` added an architecture that the image itself does not have. */
function isWidened({ said }: NarrowedImage): boolean {
  if (said.kind !== 'set') return false;
  return said.architectures.some((name) => !said.platforms.some((platform) => platform.endsWith(`/${name}`)));
}

function keysOf(skipped: SkipReason | undefined): string[] {
  switch (skipped) {
    case 'namespace-excluded':
      return ['pods.excludeNamespaces'];
    case 'namespace-not-selected':
      return ['pods.namespaceSelector'];
    case 'daemonsets-ignored':
      return ['pods.daemonSets'];
    default:
      return [];
  }
}
