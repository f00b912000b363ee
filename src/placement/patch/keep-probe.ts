import { isSame, type JsonObject, listAt, objectAt, stringAt } from '../../kit/json.ts';
import { type Operation, pointerPart } from '../../kit/json-patch.ts';
import { TOLERATIONS_ANNOTATION } from '../../names.ts';
import { isSystemNamespace, settingsFor, skipDaemonSet } from '../eligibility.ts';
import type { DaemonSet } from '../objects/daemonset.ts';
import type { Namespace } from '../objects/namespace.ts';
import { readRecord } from '../objects/template-record.ts';
import { usesTaints } from '../placing.ts';
import type { Settings } from '../settings.ts';
import { lacking, type Toleration } from './tolerations.ts';

/** An update of one DaemonSet that drops archaware's tolerations and their record, as a tool may send it that knows neither. */
export type KeepProbe = {
  readonly namespace: string;
  readonly name: string;
  /** Tests everything that it changes, so that it fails with a conflict if the DaemonSet has changed. */
  readonly patch: readonly Operation[];
  /** The tolerations that the update drops and that the API server must put back. */
  readonly dropped: readonly Toleration[];
};

/** At most so many DaemonSets are tried, each of another namespace. */
const MOST_PROBES = 3;
/** Of larger templates the policy may exceed its limits in the API server, which says nothing about other DaemonSets. */
const MOST_TOLERATIONS = 32;

/**
 * Returns updates that the protection of DaemonSets must answer by putting archaware's tolerations back: of DaemonSets in system
 * namespaces first, one of each namespace. Empty if no DaemonSet has something to protect.
 *
 * Any author can write the record, so a DaemonSet counts only if both protections, the policy `archaware-keep` and the webhook,
 * would restore its tolerations. Otherwise a tenant could make a protection that works look broken.
 */
export function keepProbes(
  daemonSets: Iterable<DaemonSet>,
  namespaceOf: (name: string) => Pick<Namespace, 'name' | 'labels'> | undefined,
  settings: Settings,
): KeepProbe[] {
  const ofNamespace = new Map<string, KeepProbe>();
  for (const daemonSet of daemonSets) {
    // Nearly every DaemonSet of most clusters passes, so the first of each namespace is enough.
    if (daemonSet.recorded === undefined || ofNamespace.has(daemonSet.namespace)) continue;
    const namespace = namespaceOf(daemonSet.namespace);
    if (namespace === undefined || !isProtected(daemonSet, namespace, settings)) continue;
    const probe = probeOf(daemonSet);
    if (probe !== undefined) ofNamespace.set(daemonSet.namespace, probe);
  }
  const rank = ({ namespace }: KeepProbe) => (isSystemNamespace(namespace, settings) ? 0 : 1);
  return [...ofNamespace.values()].sort((one, other) => rank(one) - rank(other)).slice(0, MOST_PROBES);
}

function isProtected(daemonSet: DaemonSet, namespace: Pick<Namespace, 'name' | 'labels'>, settings: Settings): boolean {
  const own = settingsFor(settings, { namespace, labels: daemonSet.template.labels });
  return usesTaints(own) && skipDaemonSet(daemonSet, namespace, own) === undefined;
}

function probeOf({ namespace, name, uid, recorded = '', template }: DaemonSet): KeepProbe | undefined {
  const present = template.tolerations ?? [];
  if (present.length > MOST_TOLERATIONS) return undefined;
  // The policy looks for this text in the record.
  const entries = readRecord(recorded).tolerations.filter(({ key, operator, value, effect }) =>
    recorded.includes(JSON.stringify({ key, operator, value, effect })),
  );
  const isOurs = (toleration: JsonObject) => entries.some((entry) => isSame(toleration, entry));
  const rest = present.filter((toleration) => !isOurs(toleration));
  const carried = entries.filter((entry) => present.some((toleration) => isSame(toleration, entry)));
  const dropped = lacking(rest, carried);
  if (dropped.length === 0) return undefined;
  const record = `/metadata/annotations/${pointerPart(TOLERATIONS_ANNOTATION)}`;
  const tolerations = '/spec/template/spec/tolerations';
  return {
    namespace,
    name,
    dropped,
    patch: [
      { op: 'test', path: '/metadata/uid', value: uid },
      { op: 'test', path: record, value: recorded },
      { op: 'test', path: tolerations, value: present },
      { op: 'replace', path: tolerations, value: rest },
      { op: 'remove', path: record },
    ],
  };
}

/** Whether the answer to the update still has what the update drops. `answer`: the DaemonSet as the API server would store it. */
export function isKept(answer: JsonObject, { dropped }: Pick<KeepProbe, 'dropped'>): boolean {
  const spec = objectAt(objectAt(objectAt(answer, 'spec'), 'template'), 'spec');
  const left = listAt(spec, 'tolerations') ?? [];
  const record = stringAt(objectAt(objectAt(answer, 'metadata'), 'annotations'), TOLERATIONS_ANNOTATION);
  return record !== undefined && lacking(left, dropped).length === 0;
}
