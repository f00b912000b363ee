import { byName } from '../../analysis/workloads/overview.ts';
import type { Context } from '../../app/surroundings.ts';
import type { Loops } from '../../controllers/loops/loops.ts';
import { decidedOf } from '../../controllers/memory.ts';
import { each } from '../../kit/fairness/each.ts';
import { isObject, type JsonObject, listAt, objectAt } from '../../kit/json.ts';
import type { Operation } from '../../kit/json-patch.ts';
import { printable } from '../../kit/printable.ts';
import type { ApiClient } from '../../kube/api-client.ts';
import { ApiError } from '../../kube/errors.ts';
import { find } from '../../kube/read.ts';
import { pathOf } from '../../kube/writer.ts';
import { ARCHITECTURE_GATE, ARCHITECTURE_LABEL, FIELD_MANAGER, IGNORE_LABEL } from '../../names.ts';
import type { NamedObject } from '../../placement/objects/kinds.ts';
import { withAffinity } from '../../placement/patch/affinity.ts';
import { lacking, tolerationsFor } from '../../placement/patch/tolerations.ts';
import { onlyObserves } from '../../placement/placing.ts';
import { few } from '../../placement/reasons.ts';
import { addedParts, type PlacedPart } from '../../placement/refused-parts.ts';
import type { Settings } from '../../placement/settings.ts';
import { testPod } from '../status/webhook.ts';
import type { DecidedAll } from './decide-all.ts';
import type { Plan } from './plan-shape.ts';

/** A namespace in which archaware would place pods. */
export type AskedNamespace = {
  readonly name: string;
  /** The architectures that its pods would tolerate. */
  readonly architectures: readonly string[];
  /** The DaemonSets whose templates would change. */
  readonly daemonSets: readonly { readonly name: string; readonly patch: readonly Operation[] }[];
};

type DryRunVerdict =
  | { readonly kind: 'taken' }
  | { readonly kind: 'refused'; readonly message: string }
  | { readonly kind: 'not-asked'; readonly why: string };

/** How many namespaces are asked at a time. */
const AT_ONCE = 8;
const MESSAGE_BYTES = 500;
/** Every request of this file ends in this: the API server checks the object and stores nothing. */
const DRY_RUN = `dryRun=All&fieldManager=${FIELD_MANAGER}`;
/** Of a pod that archaware's own webhook leaves alone, so that the answer is that of the others. */
const PLAIN = { generateName: 'archaware-plan-', labels: { [IGNORE_LABEL]: 'true' } };

/**
 * Asks the API server, by dry runs with the rights of the user, whether it would let pods with archaware's parts in, one namespace at
 * a time. Each question is asked again without those parts, so that a refusal for another reason is not blamed on them. Nothing is
 * ever stored. Returns what is refused, and the namespaces that could not be asked, by the reason. Throws what the client throws if there
 * is no answer.
 */
export async function ask(
  client: Pick<ApiClient, 'request'>,
  namespaces: readonly AskedNamespace[],
  settings: Settings,
  hasWebhook: boolean,
  signal: AbortSignal,
) {
  const refused: Plan['refused'][number][] = [];
  const notAsked = new Map<string, string[]>();
  await each(namespaces, AT_ONCE, async (next) => {
    const found = await askOne(client, next, settings, hasWebhook, signal);
    refused.push(...found.refused);
    for (const why of found.notAsked) notAsked.set(why, [...(notAsked.get(why) ?? []), next.name]);
  });
  return { refused: refused.sort(byName), notAsked };
}

async function askOne(
  client: Pick<ApiClient, 'request'>,
  { name: namespace, architectures, daemonSets }: AskedNamespace,
  settings: Settings,
  hasWebhook: boolean,
  signal: AbortSignal,
): Promise<{ readonly refused: Plan['refused']; readonly notAsked: ReadonlySet<string> }> {
  const pods = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods?${DRY_RUN}`;
  const create = (pod: JsonObject) => tried(() => client.request('create', pods, { body: pod, signal }));
  const refused: Plan['refused'][number][] = [];
  const notAsked = new Set<string>();

  /** Asks for a pod with all parts, and after a refusal for each part alone. */
  async function askFor(base: JsonObject, parts: readonly PlacedPart[], what: NamedObject) {
    const answerTo = (some: readonly PlacedPart[]) => create(withParts(base, some, settings, architectures));
    const all = await answerTo(parts);
    if (all.kind === 'taken') return;
    if (all.kind === 'not-asked') return void notAsked.add(all.why);
    const without = await create(base);
    if (without.kind !== 'taken') {
      notAsked.add(
        without.kind === 'refused' ? `pods are refused there for another reason: ${without.message}` : without.why,
      );
      return;
    }
    const single: PlacedPart[] = [];
    for (const part of parts) if (parts.length === 1 || (await answerTo([part])).kind === 'refused') single.push(part);
    refused.push({ ...what, parts: single.length === 0 ? parts : single, message: all.message });
  }

  const tolerations = addedParts(settings, false);
  const parts = addedParts(settings, hasWebhook);
  if (parts.length > 0) await askFor(testPod(PLAIN), parts, { kind: 'Namespace', name: namespace });
  let isFirst = true;
  for (const { name, patch } of daemonSets) {
    const what = { kind: 'DaemonSet', namespace, name } as const;
    const path = pathOf(what);
    const written = await tried(() => client.request('patch', `${path}?${DRY_RUN}`, { body: patch, signal }));
    if (written.kind === 'refused') refused.push({ ...what, parts: tolerations, message: written.message });
    if (written.kind === 'not-asked') notAsked.add(written.why);
    // The templates of a namespace are seldom judged differently, and each costs three requests.
    const object = isFirst && tolerations.length > 0 ? await find(client, path, signal) : undefined;
    isFirst = false;
    if (object !== undefined) await askFor(podOf(object), tolerations, what);
  }
  return { refused, notAsked };
}

function podOf(daemonSet: JsonObject): JsonObject {
  const template = objectAt(objectAt(daemonSet, 'spec'), 'template');
  const { labels, annotations } = objectAt(template, 'metadata');
  const metadata = {
    generateName: 'archaware-plan-',
    labels: { ...(isObject(labels) ? labels : {}), [IGNORE_LABEL]: 'true' },
    ...(isObject(annotations) ? { annotations } : {}),
  };
  return { apiVersion: 'v1', kind: 'Pod', metadata, spec: objectAt(template, 'spec') };
}

function withParts(
  pod: JsonObject,
  parts: readonly PlacedPart[],
  settings: Settings,
  architectures: readonly string[],
): JsonObject {
  const spec = objectAt(pod, 'spec');
  const present = listAt(spec, 'tolerations') ?? [];
  const required = [{ key: ARCHITECTURE_LABEL, operator: 'In', values: architectures }] as const;
  const affinity = parts.includes('affinity') ? withAffinity(spec, { required, preferred: [] }) : undefined;
  const gates = listAt(spec, 'schedulingGates') ?? [];
  return {
    ...pod,
    spec: {
      ...spec,
      ...(parts.includes('tolerations')
        ? { tolerations: [...present, ...lacking(present, tolerationsFor(settings.taints, architectures))] }
        : {}),
      ...(affinity === undefined ? {} : { affinity }),
      ...(parts.includes('gate') ? { schedulingGates: [...gates, { name: ARCHITECTURE_GATE }] } : {}),
    },
  };
}

/** Sends a dry run. An answer that says nothing about the object is `not-asked`. */
async function tried(send: () => Promise<unknown>): Promise<DryRunVerdict> {
  try {
    await send();
    return { kind: 'taken' };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const [, verb, resource] = /cannot (create|patch) resource "(\w+)"/.exec(error.message) ?? [];
    if (error.status === 403 && verb !== undefined)
      return { kind: 'not-asked', why: `needs the right to ${verb} ${resource} there` };
    const message = printable(error.message, MESSAGE_BYTES);
    // A webhook with side effects refuses every dry run. Conflicts and overload say nothing either.
    const saysNothing = /does not support dry run|failed (?:calling|to call) webhook/.test(error.message);
    if (saysNothing || [404, 409, 429, 503, 504].includes(error.status)) return { kind: 'not-asked', why: message };
    return { kind: 'refused', message };
  }
}

/** Asks the API server whether it would accept what `run` would write, and notes the namespaces that could not be asked. */
export async function askWhetherAllowed(
  { config, signal, note }: Context,
  client: ApiClient,
  settings: Settings,
  { watches, loops, changes }: DecidedAll,
): Promise<Plan['refused']> {
  if (onlyObserves(settings)) return [];
  const cluster = watches.witnesses.architectures();
  const all = namespacesToAsk(loops, changes, cluster);
  const { refused, notAsked } = await ask(client, all.slice(0, MOST_ASKED), settings, config.webhook.enabled, signal);
  for (const [why, names] of notAsked) {
    note(`${names.length} namespace(s) could not be asked whether such pods may be created: ${why} (${few(names)})`);
  }
  if (all.length > MOST_ASKED) {
    note(
      `${MOST_ASKED} of ${all.length} namespaces were asked whether such pods may be created: -n NAMESPACE asks another one`,
    );
  }
  return refused;
}

/** Each namespace costs one to four requests. */
const MOST_ASKED = 500;

/** Returns the namespaces in which `run` would place something, sorted by name. */
function namespacesToAsk(loops: Loops, changes: Plan['changes'], cluster: readonly string[]): AskedNamespace[] {
  const found = new Map<string, { architectures: Set<string>; daemonSets: AskedNamespace['daemonSets'][number][] }>();
  const of = (namespace: string) => {
    const entry = found.get(namespace) ?? { architectures: new Set<string>(), daemonSets: [] };
    found.set(namespace, entry);
    return entry;
  };
  for (const states of [loops.podStates, loops.daemonSetStates]) {
    for (const [key, { decision }] of decidedOf(states)) {
      if (decision.kind === 'skip') continue;
      const { architectures } = of(key.split('/')[0] ?? '');
      if (decision.kind === 'place') for (const each of decision.architectures) architectures.add(each);
    }
  }
  for (const { kind, namespace, name, patch } of changes) {
    if (kind === 'DaemonSet' && namespace !== undefined) of(namespace).daemonSets.push({ name, patch });
  }
  const asked = [...found].map(([name, { architectures, daemonSets }]) => {
    const those = [...architectures].filter((each) => cluster.includes(each)).sort();
    return { name, architectures: those.length > 0 ? those : cluster, daemonSets };
  });
  return asked.sort((one, other) => (one.name < other.name ? -1 : 1));
}
