import { explainPlacement, imagesToAsk } from '../../analysis/explain/explain.ts';
import type { Explanation } from '../../analysis/explain/explanation.ts';
import type { ExplainInput, Findings } from '../../analysis/explain/input.ts';
import type { ControllerState } from '../../analysis/explain/no-controller.ts';
import { readNodePool } from '../../analysis/nodes/node-pools.ts';
import { readWorkload, type Workload } from '../../analysis/workloads/workload.ts';
import { ClusterError, type Connection, connect } from '../../app/connect.ts';
import { createServiceAccountReader } from '../../app/registries/pull-secrets.ts';
import { type Context, EXIT } from '../../app/surroundings.ts';
import { valueAt } from '../../config/keys.ts';
import { toSettings } from '../../config/settings.ts';
import { ConfigurationError } from '../../config/shown-problems.ts';
import type { Clock } from '../../kit/clock.ts';
import { strangersText } from '../../kit/cut.ts';
import { utcTime } from '../../kit/duration.ts';
import { messageOf } from '../../kit/errors.ts';
import { type JsonObject, objectAt, stringAt } from '../../kit/json.ts';
import { nearest } from '../../kit/nearest.ts';
import { printable } from '../../kit/printable.ts';
import type { ApiClient } from '../../kube/api-client.ts';
import { ApiError, isForbidden } from '../../kube/errors.ts';
import { getDeployment, getLease, installationText, isHeld, readDeployment } from '../../kube/installation.ts';
import { find, readAll, readNames } from '../../kube/read.ts';
import { type EventReason, knownImagesPath, NOTE_BYTES } from '../../names.ts';
import { readNode } from '../../placement/nodes/node.ts';
import { WORKLOAD_KINDS } from '../../placement/objects/kinds.ts';
import { readAnswers } from '../../placement/publish/known-images.ts';
import { few, readStartsAtLatest } from '../../placement/reasons.ts';
import { isAway } from '../command-context.ts';
import { lookUp } from '../lookups/lookups.ts';
import { type Asking, withLookups } from '../lookups/with-lookups.ts';
import { mayHoldSeveral, readObjects } from '../manifest-objects.ts';
import { valueText } from '../output.ts';
import { createPaint } from '../paint.ts';
import { KINDS, pathOf } from '../survey/kind-paths.ts';
import { eventTime, namespaceOf, noteMissing, ownEvents, permitted, readNodePools } from '../survey/survey.ts';
import { describeExplanation } from './explanation-text.ts';
import { kindHint, type ObjectTarget } from './target.ts';

/**
 * Prints what `run` would decide now, and why: for an object of the cluster, or for each object in files. Several explanations are
 * parted by an empty line, or are a list in a machine-readable form; so is what was found in several files or a directory.
 */
export async function explain(
  context: Context,
  target: ObjectTarget,
  { lookupTimeoutMs, isVerbose }: { readonly lookupTimeoutMs: number | undefined; readonly isVerbose: boolean },
): Promise<number> {
  const { output, print, readInput } = context;
  const given = target.kind === 'files' ? await readWorkloads(target.files, readInput) : undefined;
  const lookups = { limitMs: lookupTimeoutMs, connect: () => connectFor(context, given !== undefined) };
  return withLookups(context, lookups, async (asking) => {
    const { cluster, images, progress, signal } = asking;
    const home = target.namespace ?? cluster?.namespace ?? 'default';
    const inCluster = cluster === undefined ? { nodes: undefined } : await readCluster(cluster, context, signal);
    const known = { ...inCluster, settings: toSettings(context.config), namesOf: images.namesOf };
    const world: World = { ...asking, context, home, known };
    const workloads = given ?? [await readObject(asking, target, home)];
    const explanations = await Promise.all(workloads.map((each) => explainOne(world, each, given === undefined)));
    progress.end();
    const [only] = explanations;
    const isOne = explanations.length === 1 && !(target.kind === 'files' && mayHoldSeveral(target.files));
    if (output === 'table') {
      const form = { columns: context.columns, isVerbose, paint: createPaint(context) };
      print(explanations.map((each) => describeExplanation(each, form)).join('\n'));
    } else print(valueText(isOne ? only : explanations, output));
    return EXIT.done;
  });
}

type World = Asking & {
  readonly context: Context;
  /** The namespace of objects that name none. */
  readonly home: string;
  /** What is known without looking at the workload. */
  readonly known: Omit<ExplainInput, 'workload' | 'applied' | 'namespace'>;
};

/** Reads what an explanation says of the cluster. What these credentials may not read is undefined. */
async function readCluster(cluster: Connection, context: Context, signal: AbortSignal) {
  const { client } = cluster;
  const { note } = context;
  const without = 'it is not known what they run and which of them fit';
  return {
    nodes: await permitted('list nodes', without, noteMissing(note), () =>
      readAll(client, '/api/v1/nodes', readNode, signal),
    ),
    controller: await readController(cluster, context, signal),
    nodePools: await readNodePools(client, readNodePool, note, signal),
    published: await readPublished(cluster, context, signal),
  };
}

async function explainOne(world: World, workload: Workload, isInCluster: boolean): Promise<Explanation> {
  const { context, cluster, home, known, secretProblems, signal } = world;
  const client = cluster?.client;
  const namespace = workload.namespace || home;
  const input: ExplainInput = {
    ...known,
    workload,
    applied: isInCluster && workload.pod !== undefined,
    isTemplate: isInCluster && workload.pod === undefined,
    namespace: await namespaceOf(client, namespace, noteMissing(context.note), signal),
  };
  const { pullSecrets: named, serviceAccountName } = workload.template;
  // The API server will add the service account's secrets to a pod that is not created yet and names none.
  const pullSecrets =
    input.applied || named.length > 0 || client === undefined
      ? named
      : await createServiceAccountReader(client, context.clock)(namespace, serviceAccountName, signal);
  const asked = imagesToAsk(input);
  const lookups = asked.map(async (image) => [image, await lookUp({ image, namespace, pullSecrets }, world)] as const);
  const found = new Map(await Promise.all(lookups));
  const said = input.applied ? await saidOf(client, workload, context.clock, signal) : {};
  const refusal =
    client === undefined || !isInCluster ? undefined : await refusalOf(client, workload, namespace, signal);
  return explainPlacement(
    { ...input, ...said, refusal },
    {
      lookupOf: (image) => found.get(image),
      pullSecrets: pullSecrets.map((name) => {
        const problem = secretProblems.get(`${namespace}/${name}`);
        return { name, ...(problem === undefined ? {} : { problem }) };
      }),
      sourceOf: sourceIn(context),
    },
  );
}

/** Connects to the cluster. A file can be explained without one, unless the user named a cluster. */
async function connectFor(context: Context, isOptional: boolean) {
  try {
    return await connect(context);
  } catch (error) {
    const isNamed = context.kubeconfig !== undefined || context.context !== undefined;
    if (!isOptional || isNamed || !isAway(error)) throw error;
    context.note(`without a cluster, so without nodes, namespaces and pull secrets: ${messageOf(error)}`);
    return undefined;
  }
}

async function readObject({ cluster, signal }: Asking, target: ObjectTarget, home: string): Promise<Workload> {
  if (target.kind === 'files' || cluster === undefined) throw new ClusterError('there is no cluster to read from');
  const { client } = cluster;
  const { of, name, namespace = home } = target;
  const object = await find(client, pathOf(of, namespace, name), signal);
  const workload = object && readWorkload({ ...object, kind: of });
  if (workload === undefined) {
    throw new ClusterError(await describeMissing(client, { kind: of, namespace, name }, signal));
  }
  return workload;
}

/** Finds out whether a controller is there; undefined without leader election. */
async function readController(
  { client, installation, leaseNamespace: namespace }: Connection,
  { config, clock }: Context,
  signal: AbortSignal,
): Promise<ControllerState | undefined> {
  const { enabled, name } = config.leaderElection;
  if (!enabled) return undefined;
  try {
    const deployment = await getDeployment(client, installation, signal);
    const lease = await getLease(client, { namespace, name }, signal);
    const where = deployment && installationText(installation);
    if (lease !== undefined && isHeld(lease, clock.wall())) return { kind: 'leads', deployment: where };
    if (deployment === undefined || where === undefined) return { kind: 'not-installed' };
    const { wanted } = readDeployment(deployment);
    return { kind: 'no-leader', lease: `${namespace}/${name}`, deployment: where, wanted };
  } catch (error) {
    if (isForbidden(error)) return { kind: 'unknown' };
    throw error;
  }
}

/** Reads what is published; undefined if nothing should be, or if that may not be read. */
async function readPublished({ client, leaseNamespace }: Connection, { config, note }: Context, signal: AbortSignal) {
  if (!config.placement.publish) return undefined;
  const path = knownImagesPath(leaseNamespace);
  const without = 'what is published for new pods is not known';
  return permitted(`get ${path}`, without, noteMissing(note), async () =>
    readAnswers((await find(client, path, signal)) ?? {}),
  );
}

/** Reads the pods and workloads in files. Other kinds are left out. Throws {@link ConfigurationError} if there are none. */
async function readWorkloads(names: readonly string[], readInput: () => Promise<string>): Promise<Workload[]> {
  const found = (await readObjects(names, readInput)).flatMap((object) => readWorkload(object) ?? []);
  if (found.length > 0) return found;
  throw new ConfigurationError([
    `-f ${names.join(' ')}: got none, expected at least one of ${WORKLOAD_KINDS.join(', ')}`,
  ]);
}

/** Returns a function that names the source of a key's value. A policy's value goes before the global one. */
function sourceIn({ config, sources }: Context): Findings['sourceOf'] {
  return (key, policy) => {
    const said = config.policies.find(({ name }) => name === policy);
    const own: Readonly<Record<string, unknown>> = {
      'architectures.schedulable': said?.schedulable,
      'architectures.preferred': said?.preferred,
      'architectures.fallback': said?.fallback,
      'images.unresolvable': said?.unresolvable,
      'placement.noCommonArchitecture': said?.noCommonArchitecture,
    };
    if (own[key] !== undefined) return { value: own[key], source: `policy ${policy}, ${sources.get('policies')}` };
    return { value: valueAt(config, key), source: sources.get(key) ?? 'default' };
  };
}

/** Returns one line that says that an object does not exist, and what exists instead. */
async function describeMissing(
  client: ApiClient,
  { kind, namespace, name }: { readonly kind: string; readonly namespace: string; readonly name: string },
  signal: AbortSignal,
): Promise<string> {
  const missing = `${kind === 'Pod' ? 'pod' : kind} ${namespace}/${name} does not exist`;
  try {
    if ((await find(client, `/api/v1/namespaces/${encodeURIComponent(namespace)}`, signal)) === undefined) {
      return `${missing}: there is no namespace ${namespace}${kind === 'Pod' ? kindHint(namespace) : ''}`;
    }
    const others = KINDS.filter((other) => other.kind !== kind);
    const found = await Promise.all(
      others.map(async (other) => (await find(client, pathOf(other.kind, namespace, name), signal)) && other),
    );
    const [instead] = found.flatMap((other) => other ?? []);
    const pods = await readNames(client, pathOf('Pod', namespace), signal);
    if (instead !== undefined) {
      const its = pods.filter((pod) => pod.startsWith(`${name}-`));
      const has = its.length === 0 ? 'no pods' : `${its.length === 1 ? '1 pod' : `${its.length} pods`}: ${few(its)}`;
      return `${missing}: ${instead.kind} ${namespace}/${name} has ${has}; try explain ${instead.names[0]}/${name} -n ${namespace}`;
    }
    const [short = '', plural = ''] = KINDS.find((each) => each.kind === kind)?.names ?? [];
    const same = kind === 'Pod' ? pods : await readNames(client, pathOf(kind, namespace), signal);
    const near = nearest(name, same);
    if (near !== undefined) return `${missing}; did you mean ${kind === 'Pod' ? '' : `${short}/`}${near}?`;
    return same.length === 0 ? `${missing}: namespace ${namespace} has no ${plural}` : missing;
  } catch (error) {
    // The hint needs rights that the command itself does not need.
    if (isForbidden(error)) return missing;
    throw error;
  }
}

const UNRESOLVABLE: EventReason = 'ImageUnresolvable';

/**
 * Returns what the controller's Events say of a pod whose images it does not know: the newest one, such as the place in a registry's
 * line, and when the pod starts at the latest. Only the controller knows either. Nothing for a pod with a node, if there is no such
 * Event, or if Events cannot be listed.
 */
async function saidOf(
  client: ApiClient | undefined,
  { pod }: Pick<Workload, 'pod'>,
  clock: Pick<Clock, 'wall'>,
  signal: AbortSignal,
): Promise<Pick<ExplainInput, 'patience' | 'said'>> {
  if (client === undefined || pod === undefined || pod.nodeName !== undefined) return {};
  const isOfPod = (event: JsonObject) => stringAt(objectAt(event, 'regarding'), 'uid') === pod.uid;
  try {
    const fields = `regarding.name=${pod.name},reason=${UNRESOLVABLE}`;
    const found = newestFirst(await ownEvents(client, pod.namespace, fields, signal, isOfPod));
    const [newest] = found;
    if (newest === undefined) return {};
    // A later failure, or another leader, wrote a later time.
    const [startsAtLatestMs] = found.flatMap((event) => {
      const writtenMs = Date.parse(stringAt(event, 'eventTime') ?? '');
      return readStartsAtLatest(strangersText(stringAt(event, 'note') ?? ''), writtenMs) ?? [];
    });
    return {
      said: { note: noteOf(newest), at: utcTime(eventTime(newest)) },
      patience: startsAtLatestMs === undefined ? undefined : { startsAtLatestMs, nowMs: clock.wall() },
    };
  } catch (error) {
    // The Events are a help: an explanation without them is better than none.
    if (error instanceof ApiError) return {};
    throw error;
  }
}

function newestFirst(events: readonly JsonObject[]): JsonObject[] {
  return [...events].sort((one, other) => eventTime(other) - eventTime(one));
}

function noteOf(event: JsonObject): string {
  return printable(stringAt(event, 'note') ?? '', NOTE_BYTES);
}

const REFUSALS: readonly EventReason[] = ['WriteRefused', 'RefusedByPolicy'];

/**
 * Returns what the API server refuses for an object of the cluster: the newest of the controller's Events about it, about the owner
 * of the pod, or about what a Deployment or CronJob creates. Undefined if there is none, and if Events cannot be listed.
 */
async function refusalOf(
  client: ApiClient,
  { kind, name, pod }: Workload,
  namespace: string,
  signal: AbortSignal,
): Promise<ExplainInput['refusal']> {
  const own = (regarding: JsonObject): boolean => {
    const [of, called = '', uid] = ['kind', 'name', 'uid'].map((field) => stringAt(regarding, field));
    if (of === kind && called === name) return pod === undefined || pod.uid === uid;
    if (pod !== undefined) return of === pod.owner?.kind && called === pod.owner?.name;
    return isChild(kind, name, of, called);
  };
  try {
    const isAbout = (event: JsonObject) => own(objectAt(event, 'regarding'));
    const found = await Promise.all(
      REFUSALS.map((reason) => ownEvents(client, namespace, `reason=${reason}`, signal, isAbout)),
    );
    const [newest] = newestFirst(found.flat());
    if (newest === undefined) return undefined;
    const reason = REFUSALS.find((each) => each === stringAt(newest, 'reason')) ?? 'WriteRefused';
    return { reason, note: noteOf(newest) };
  } catch (error) {
    // The Event is a help: an explanation without it is better than none.
    if (error instanceof ApiError) return undefined;
    throw error;
  }
}

/** Whether an object is one that a Deployment or a CronJob creates: their names begin with its name. */
function isChild(kind: string, name: string, of: string | undefined, called: string): boolean {
  const child = kind === 'Deployment' ? 'ReplicaSet' : kind === 'CronJob' ? 'Job' : undefined;
  return of === child && called.startsWith(`${name}-`) && !called.slice(name.length + 1).includes('-');
}
