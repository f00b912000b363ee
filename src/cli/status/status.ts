import { countNodes, nodesWithoutTaint } from '../../analysis/nodes/counts.ts';
import { type Connection, connect } from '../../app/connect.ts';
import { readStatus, type StatusProblem, statusPath } from '../../app/leader-status.ts';
import { type Context, EXIT } from '../../app/surroundings.ts';
import { VERSION } from '../../app/version.ts';
import { loopsThatRun, toSettings } from '../../config/settings.ts';
import { strangersText } from '../../kit/cut.ts';
import { type JsonObject, listAt, objectAt, stringAt } from '../../kit/json.ts';
import { getDeployment, getLease, installationText, readDeployment } from '../../kube/installation.ts';
import { find, readAll } from '../../kube/read.ts';
import { APP_LABEL, DEPLOYMENT, STATUS_CONFIG_MAP } from '../../names.ts';
import { nodesWithUnmanagedTaints } from '../../placement/nodes/managed.ts';
import { type Node, readNode, taintKind } from '../../placement/nodes/node.ts';
import { joinedUntainted, POOL_PAGE, poolOf } from '../../placement/nodes/pools.ts';
import { hasEnded } from '../../placement/objects/containers.ts';
import type { Settings } from '../../placement/settings.ts';
import { valueText } from '../output.ts';
import { createPaint } from '../paint.ts';
import { type PoolProblem, readPoolProblems } from '../survey/survey.ts';
import { tryGuard } from './daemonset-guard.ts';
import {
  type Facts,
  hasLeader,
  isBlind,
  isGuess,
  isOfThePast,
  mapped,
  presentWord,
  type Read,
  type Replica,
  readValue,
  tried,
} from './facts.ts';
import { isMissing, problemsOf } from './problems.ts';
import { tryPublication } from './publication.ts';
import { statusText } from './text.ts';
import { lookAtWebhook } from './webhook.ts';

/** Prints whether archaware works, in some ten lines. Writes nothing. Exit code 2 if there are problems; 1 if nothing could be found out. */
export async function status(context: Context, testNamespace: string | undefined): Promise<number> {
  const { output, columns, print, note } = context;
  context.status?.('asking the cluster …');
  const facts = await gatherFacts(context, testNamespace).finally(() => context.status?.(''));
  const problems = problemsOf(facts);
  if (output === 'table') print(statusText(facts, problems, createPaint(context), columns));
  else {
    for (const line of unreadLines(facts)) note(line);
    print(valueText(statusOf(facts, problems), output));
  }
  if (problems.length > 0) return EXIT.found;
  if (!isBlind(facts)) return EXIT.done;
  note('could not find out whether the controller works');
  return EXIT.failed;
}

const LABELLED = `labelSelector=${encodeURIComponent(`${APP_LABEL}=${DEPLOYMENT}`)}`;

/**
 * Reads everything that `status` shows. A part that these credentials may not read is left out, with the missing right.
 * `testNamespace`: where the webhook is tested; undefined: in a namespace that is chosen here.
 */
async function gatherFacts(context: Context, testNamespace: string | undefined): Promise<Facts> {
  const { config, clock, signal, note, origin } = context;
  const connection = await connect(context);
  const { client, installation, leaseNamespace } = connection;
  try {
    const settings = toSettings(config);
    const { namespace } = installation;
    const { enabled, name } = config.leaderElection;
    const [deployment, replicas, lease, word, nodes] = await Promise.all([
      tried(`get deployments.apps in namespace ${namespace}`, async () => {
        const found = await getDeployment(client, installation, signal);
        return found && readDeployment(found);
      }),
      tried(`list pods in namespace ${namespace}`, () =>
        readAll(client, `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods?${LABELLED}`, readReplica, signal),
      ),
      tried(`get leases.coordination.k8s.io in namespace ${leaseNamespace}`, async () => {
        const found = await getLease(client, { namespace: leaseNamespace, name }, signal);
        return found && { ...found, ageMs: Math.max(0, clock.wall() - found.renewedAt) };
      }),
      tried(`get configmaps ${STATUS_CONFIG_MAP} in namespace ${leaseNamespace}`, async () => {
        const found = await find(client, statusPath(leaseNamespace), signal);
        const word = found && readStatus(found);
        return word && { ...word, ageMs: Math.max(0, clock.wall() - Date.parse(word.at)) };
      }),
      tried('list nodes', () => readAll(client, '/api/v1/nodes', readNode, signal)),
    ]);
    const present = nodes.kind === 'read' ? nodes.value : [];
    const managesNodes = loopsThatRun(config).includes('nodes');
    const lacking = managesNodes ? nodesWithoutTaint(present, settings) : [];
    const [pools, { webhook, webhookConfiguration }, guard, publication] = await Promise.all([
      readPools(connection, nodes, settings, note, signal),
      lookAtWebhook(context, client, { namespace: testNamespace, own: namespace, nodes: present, settings }),
      tried('list daemonsets.apps and namespaces', () => tryGuard(client, settings, signal)),
      tryPublication(connection, config, signal),
    ]);
    return {
      commandVersion: VERSION,
      now: clock.wall(),
      mode: settings.mode,
      taint: taintKind(settings.taints),
      origin,
      elects: enabled,
      installation: installationText(installation),
      leaseName: `${leaseNamespace}/${name}`,
      deployment,
      replicas,
      lease,
      nodes: mapped(nodes, (all) => ({
        counts: countNodes(all, settings),
        lacking,
        unmanaged: nodesWithUnmanagedTaints(all, settings, managesNodes).map(({ name }) => name),
      })),
      word,
      wordName: `${leaseNamespace}/${STATUS_CONFIG_MAP}`,
      pools,
      webhook,
      webhookConfiguration,
      guard,
      ...publication,
    };
  } finally {
    await connection.close();
  }
}

/** Reads a pod of archaware; undefined for one that has ended, and for the pod of a Job such as `clean`. */
function readReplica(object: JsonObject): Replica | undefined {
  const metadata = objectAt(object, 'metadata');
  const status = objectAt(object, 'status');
  const isOfJob = (listAt(metadata, 'ownerReferences') ?? []).some(({ kind }) => kind === 'Job');
  if (hasEnded(status.phase) || isOfJob || stringAt(metadata, 'deletionTimestamp') !== undefined) return undefined;
  const conditions = listAt(status, 'conditions') ?? [];
  const waiting = (listAt(status, 'containerStatuses') ?? []).flatMap((container) => {
    const state = objectAt(objectAt(container, 'state'), 'waiting');
    return stringAt(state, 'reason') ?? [];
  });
  const unscheduled = conditions.find(({ type, status: is }) => type === 'PodScheduled' && is === 'False');
  return {
    name: stringAt(metadata, 'name') ?? '',
    ready: conditions.some(({ type, status: is }) => type === 'Ready' && is === 'True'),
    trouble: strangersText(waiting[0] ?? (unscheduled && stringAt(unscheduled, 'message')) ?? ''),
  };
}

/** Reads what autoscaler pools lack: from NodePools if they can be read, else from the nodes that joined without the taint. */
async function readPools(
  { client }: Connection,
  nodes: Read<readonly Node[]>,
  settings: Settings,
  note: (line: string) => void,
  signal: AbortSignal,
): Promise<Read<readonly PoolProblem[]>> {
  const stated = await readPoolProblems(client, settings, note, signal);
  if (nodes.kind === 'unread' && stated === undefined) return nodes;
  const lacking = new Map<string, PoolProblem>();
  for (const node of readValue(nodes) ?? []) {
    const pool = poolOf(node);
    if (pool === undefined || joinedUntainted(node, settings) === undefined) continue;
    if (stated !== undefined && pool.kind === 'NodePool') continue;
    const text = `has nodes without the taint ${taintKind(settings.taints)}: its template needs the taint (${POOL_PAGE})`;
    lacking.set(`${pool.kind} ${pool.name}`, { ...pool, problem: 'taint-missing', severity: 'warning', note: text });
  }
  return { kind: 'read', value: [...(stated ?? []), ...lacking.values()] };
}

/** Returns the output of `status` for programs, in the documented shape. What could not be read is null; standard error says why. */
export function statusOf(facts: Facts, problems: readonly StatusProblem[]) {
  const { commandVersion, mode, origin, deployment, replicas, lease, leaseName, nodes, pools, webhook } = facts;
  const held = readValue(lease);
  const word = readValue(facts.word);
  return {
    version: {
      /** Of the leader. */
      controller: presentWord(facts)?.version ?? null,
      command: commandVersion,
      installed: !isMissing(facts),
      deployment: readValue(deployment) ?? null,
      replicas: readValue(replicas)?.map(({ name, ready }) => ({ name, ready })) ?? null,
    },
    mode: { placement: mode, configuration: origin },
    leader:
      held === undefined
        ? null
        : {
            lease: leaseName,
            holder: held.holder,
            renewedSecondsAgo: Math.round(held.ageMs / 1000),
            leads: hasLeader(facts) === true,
          },
    /** Who wrote `pods`, `tooLarge` and `waiting`, and when. `leads`: whether the writer may lead now. */
    written:
      word === undefined
        ? null
        : { by: word.writer, secondsAgo: Math.round(word.ageMs / 1000), leads: !isOfThePast(facts, word) },
    nodes: readValue(nodes)?.counts ?? null,
    pods: word?.pods ?? null,
    tooLarge: word?.tooLarge ?? null,
    waiting:
      word === undefined
        ? null
        : {
            count: word.waiting.count,
            oldest: word.waiting.oldest.map(({ since, outlook: _, ...pod }) => ({
              ...pod,
              ageSeconds: Math.round((facts.now - Date.parse(since)) / 1000),
            })),
          },
    pools: readValue(pools) ?? null,
    ...publishedOf(facts),
    webhook: webhook.state === 'off' && isGuess(facts) ? { ...webhook, state: 'unknown' } : webhook,
    problems,
  };
}

/** Returns, with `placement.publish`, what the leader has published, and whether pods are placed by it. */
function publishedOf(facts: Facts) {
  if (facts.publication === undefined) return {};
  const word = presentWord(facts)?.published;
  const inForce = readValue(facts.publication) ?? null;
  return { published: { images: word?.images ?? null, written: word?.written ?? null, inForce } };
}

/** Returns one line for each part that could not be read, each reason once. */
function unreadLines(facts: Facts): string[] {
  const { deployment, replicas, lease, word, nodes, pools, webhookConfiguration: webhook } = facts;
  const verdict = readValue(facts.guard);
  const guard = verdict?.kind === 'unknown' ? ({ kind: 'unread', why: verdict.why } as const) : facts.guard;
  const parts = { deployment, replicas, lease, written: word, nodes, pools, webhook, guard };
  const lines = Object.entries(parts).flatMap(([part, read]) =>
    read.kind === 'unread' ? [`${part}: ${read.why}`] : [],
  );
  const configuration = isGuess(facts) ? ['configuration: not known; give it with --config'] : [];
  return [...configuration, ...lines];
}
