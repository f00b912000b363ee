import type { Operation } from '../../kit/json-patch.ts';
import type { ApiError } from '../../kube/errors.ts';
import type { WriteResult } from '../../kube/writer.ts';
import { type DaemonSet, GUESSED } from '../../placement/objects/daemonset.ts';
import { daemonSetPatch } from '../../placement/patch/patch.ts';
import { asOurs, lacking, type Toleration, tolerationText } from '../../placement/patch/tolerations.ts';
import { carriedTolerations, decideTemplate, type TemplateDecision } from '../../placement/rollout/template.ts';
import type { RefusedEntries } from '../refused-entries.ts';

/**
 * Leaves out the tolerations that the template lacks and that are known to be refused. `againInMs`: until one of them may be tried
 * again; undefined: none was left out.
 */
export function withoutRefused(
  entries: RefusedEntries,
  daemonSet: DaemonSet,
  all: readonly Toleration[],
): { readonly wanted: readonly Toleration[]; readonly againInMs: number | undefined } {
  const pauseOf = (one: Toleration) => entries.pauseMs(daemonSet.namespace, tolerationText(one));
  const refused = lackedBy(daemonSet, all).filter((one) => pauseOf(one) > 0);
  const againInMs = refused.length === 0 ? undefined : Math.min(...refused.map(pauseOf));
  return { wanted: all.filter((one) => !refused.includes(one)), againInMs };
}

/**
 * Returns the change that adds only the tolerations that the API server takes, after it has refused the whole change; undefined if
 * there is none. Nothing is removed meanwhile, and the record says that the template must be decided again.
 */
export async function partTaken(
  entries: RefusedEntries,
  daemonSet: DaemonSet,
  {
    wanted,
    liveTaints,
    isForGood,
  }: {
    readonly wanted: readonly Toleration[];
    readonly liveTaints: ReadonlySet<string>;
    readonly isForGood: boolean;
  },
  refusal: ApiError,
  dryRun: (patch: readonly Operation[]) => Promise<WriteResult>,
): Promise<Extract<TemplateDecision, { kind: 'set' }> | undefined> {
  const { namespace, template } = daemonSet;
  const added = new Map(lackedBy(daemonSet, wanted).map((toleration) => [tolerationText(toleration), toleration]));
  const adding = (texts: ReadonlySet<string>) => {
    const more = [...added].flatMap(([text, toleration]) => (texts.has(text) ? [toleration] : []));
    return decideTemplate(daemonSet, [...carriedTolerations(daemonSet), ...more], liveTaints, GUESSED);
  };
  const taken = await entries.sift(namespace, [...added.keys()], refusal, {
    hasOthers: (template.tolerations ?? []).some((one) => wanted.some((other) => asOurs(one, other) !== undefined)),
    isForGood,
    async dryRun(entry) {
      const change = adding(new Set([entry]));
      return change.kind === 'set' ? await dryRun(daemonSetPatch(daemonSet, change)) : { kind: 'conflict' };
    },
  });
  const part = taken && adding(taken);
  return part?.kind === 'set' ? part : undefined;
}

function lackedBy({ template }: DaemonSet, wanted: readonly Toleration[]): Toleration[] {
  return lacking(template.tolerations ?? [], wanted);
}
