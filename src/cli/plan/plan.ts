import { stringify } from 'yaml';
import { type PooledPod, type PoolPlan, type PoolStep, planPools } from '../../analysis/nodes/pool-plan.ts';
import { spreadNote, taintedArchitectures } from '../../analysis/spread.ts';
import { nextNode } from '../../analysis/workloads/next-node.ts';
import {
  byName,
  isOnWrongNode,
  overviewLines,
  overviewOf,
  type WorkloadSubject,
  workloadOf,
} from '../../analysis/workloads/overview.ts';
import { connect } from '../../app/connect.ts';
import { loadLabelRules } from '../../app/follow-label-rules.ts';
import { type Context, EXIT } from '../../app/surroundings.ts';
import { absentNotes } from '../../config/absent.ts';
import { toSettings } from '../../config/settings.ts';
import type { Scope, Watches } from '../../controllers/watches.ts';
import { isSame } from '../../kit/json.ts';
import { printable } from '../../kit/printable.ts';
import type { ApiClient } from '../../kube/api-client.ts';
import { DEFAULT_NAMESPACE } from '../../names.ts';
import type { FailedImage } from '../../placement/decide.ts';
import { skipFacts } from '../../placement/eligibility.ts';
import { architecturesOf, nodeArchitecture } from '../../placement/nodes/node.ts';
import { POOL_PAGE, taintsNodes } from '../../placement/nodes/pools.ts';
import type { NamedObject } from '../../placement/objects/kinds.ts';
import { withAffinity } from '../../placement/patch/affinity.ts';
import { onlyObserves, placingFor, usesAffinity } from '../../placement/placing.ts';
import { withinText } from '../../placement/reasons.ts';
import type { Settings } from '../../placement/settings.ts';
import { readPodSubject } from '../../placement/subject.ts';
import { withLookups } from '../lookups/with-lookups.ts';
import { nameOf, valueText } from '../output.ts';
import { createPaint } from '../paint.ts';
import { noteMissing, permitted, readNodePools, readPoolProblems } from '../survey/survey.ts';
import { askWhetherAllowed } from './ask.ts';
import { type DecidedAll, decideAll, type FromImages } from './decide-all.ts';
import { closingLines, planNotes } from './plan-notes.ts';
import type { Plan, Seen } from './plan-shape.ts';
import { createPodSpecs, type PodSpecs } from './pod-specs.ts';
import { planText, unknownCount } from './text.ts';

/** What `plan` looks at and how it prints it. */
export type PlanOptions = {
  /** The objects to plan for. If all fields are undefined: the whole cluster, nodes included. */
  readonly scope: Scope;
  readonly byPod: boolean;
  readonly isWide: boolean;
  /** Whether only the node pools are printed. */
  readonly isForPools: boolean;
  readonly lookupTimeoutMs: number | undefined;
};

/** Prints what `run` would write now, with the same controllers and a writer that only records. Exit code 2 if there are changes. */
export async function plan(given: Context, options: PlanOptions): Promise<number> {
  const { scope, byPod, isWide, isForPools, lookupTimeoutMs } = options;
  const { output, columns, print, note } = given;
  const isWhole = scope.namespace === undefined && scope.labels === undefined;
  // A part of the cluster has no nodes, so the plan for it changes none.
  const ofPart = given.config.loops.filter((loop) => loop === 'pods' || loop === 'daemonsets');
  const context = isWhole ? given : { ...given, config: { ...given.config, loops: ofPart } };
  const { config } = context;
  const labels = await loadLabelRules(config, context.clock);
  for (const problem of labels.problems()) note(problem);
  return withLookups(context, { limitMs: lookupTimeoutMs, connect: () => connect(context) }, async (asking) => {
    const { client } = asking.cluster;
    const settings = toSettings(config);
    const { specs, onPod } = createPodSpecs(settings, isForPools);
    const knowsNodes = isWhole || (await maySeeNodes(client, given));
    const reading = { scope, onPod, labelRules: labels.rules, knowsNodes };
    const decided = await decideAll(context, settings, reading, asking);
    const { changes, watches, loops, fromImages } = decided;
    if (isForPools) return printPools(given, client, decided, specs, settings);

    const refused = await askWhetherAllowed(context, client, settings, decided);
    const { headings, uses, ...summary } = summarise(fromImages);
    const pools = isWhole ? await readPoolProblems(client, settings, note, given.signal) : [];
    const absent = absentNotes(config, watches.nodes.store.values());
    const subjects = [...subjectsOf(decided, specs, settings)];
    const stuck = new Set(subjects.flatMap(({ next, workload }) => (next === undefined ? [] : nameOf(workload))));
    const workloads = overviewOf(subjects, surroundingsOf(watches, settings, knowsNodes));
    const newPods = newPodsOf(decided, specs, context.installation?.namespace);
    const result: Plan = { changes, ...summary, workloads, refused, pools: pools ?? [], newPods };
    const isOtherMode = context.sources.get('placement.mode')?.startsWith('--') === true;
    if (output === 'table') {
      const seen = seenIn(watches, { headings, uses, ...summary }, settings);
      const where = scope.namespace === undefined ? '' : ` in namespace ${scope.namespace}`;
      const head = workloads.length === 0 ? [] : overviewLines(workloads, unknownCount(result), where);
      const closing = closingLines(result, { ...context, settings, isOtherMode, stuck });
      const paint = createPaint(context);
      print(planText(result, seen, { head, byPod, isWide, taint: settings.taints, absent, columns, closing, paint }));
    } else {
      const { pools: found, newPods: would, ...others } = result;
      const more = { ...(found.length > 0 ? { pools: found } : {}), ...(would.length > 0 ? { newPods: would } : {}) };
      print(valueText({ ...others, ...more }, output));
    }
    // At a terminal, the table shows these notes too, so they are not printed twice.
    const isShown = output === 'table' && columns !== undefined;
    for (const line of isShown ? [] : absent) note(line);
    const world = { config, settings, watches, loops, isWide, isWhole, pools, workloads, ignored: summary.ignored };
    for (const line of planNotes(world)) note(line);
    // In the mode that runs, new pods get theirs anyway: nothing is left to change.
    const awaited = changes.length + (isOtherMode ? newPods.length : 0);
    return awaited > 0 && !onlyObserves(settings) ? EXIT.found : EXIT.done;
  });
}

/** Whether the user may list nodes, which the plan for a part of the cluster can do without. */
async function maySeeNodes(client: ApiClient, { note, signal }: Context): Promise<boolean> {
  const without = 'it is not known who is on a wrong node, nor what follows the architectures of the cluster';
  const asked = await permitted('list nodes', without, noteMissing(note), () =>
    client.request('get', '/api/v1/nodes?limit=1', { signal }),
  );
  return asked !== undefined;
}

/** Returns pods and templates with the decisions about them; a daemon pod follows its template. */
function* subjectsOf(
  { watches, fromImages: { pods, daemonSets: templates } }: DecidedAll,
  specs: PodSpecs,
  all: Settings,
): Generator<WorkloadSubject> {
  const nodes = [...watches.nodes.store.values()];
  const tainted = taintedArchitectures(nodes, all);
  for (const [key, state] of pods) {
    const pod = watches.pods.store.get(key);
    if (pod === undefined) continue;
    const isDaemonPod = state.decision.kind === 'skip' && state.decision.reason === 'daemon-pod';
    const { decision, settings } = (isDaemonPod && templates.get(`${pod.namespace}/${pod.owner?.name}`)) || state;
    const node = watches.nodes.store.get(pod.nodeName ?? '');
    const subject: WorkloadSubject = {
      workload: workloadOf(pod),
      decision,
      settings,
      tolerations: pod.tolerations ?? [],
      bound: pod.nodeName !== undefined,
      nodeArchitecture: node && nodeArchitecture(node),
      asked: pod.asked,
      spread: spreadNote(specs.get(pod.uid)?.spread ?? [], pod, decision, settings, tainted),
    };
    const isWrong = decision.kind === 'place' && !isDaemonPod && isOnWrongNode(subject);
    yield isWrong ? { ...subject, next: nextNode(pod, decision.architectures, settings, nodes) } : subject;
  }
  for (const [key, { decision, settings }] of templates) {
    const [namespace = '', name = ''] = key.split('/');
    const workload = { kind: 'DaemonSet', namespace, name };
    const { asked } = watches.daemonSets.store.get(key)?.template ?? { asked: undefined };
    yield { workload, decision, settings, tolerations: [], bound: false, nodeArchitecture: undefined, asked };
  }
}

function surroundingsOf({ nodes }: Watches, settings: Settings, knowsNodes: boolean) {
  const all = [...nodes.store.values()];
  return {
    architectures: knowsNodes ? architecturesOf(all) : undefined,
    allTainted: all.length > 0 && all.every(({ labels }) => taintsNodes(settings, labels)),
  };
}

function seenIn(watches: Watches, { headings, uses }: ReturnType<typeof summarise>, settings: Settings): Seen {
  const podOf = ({ kind, namespace, name }: NamedObject) =>
    kind === 'Pod' ? watches.pods.store.get(`${namespace}/${name}`) : undefined;
  return {
    workloadOf(object) {
      const pod = podOf(object);
      return pod === undefined ? object : workloadOf(pod);
    },
    stateOf(object) {
      if (object.kind !== 'Pod') return '';
      const isBound = podOf(object)?.nodeName !== undefined;
      if (onlyObserves(settings)) return isBound ? 'runs' : 'not held in this mode';
      return isBound ? 'runs; Pending at its next restart' : 'Pending';
    },
    headingOf: (held) => headings.get(held) ?? '',
    uses,
  };
}

function summarise({ pods, daemonSets }: FromImages) {
  const headings = new Map<Plan['held'][number], string>();
  const waiting: Plan['waiting'][number][] = [];
  const held: Plan['held'][number][] = [];
  const ignored: NamedObject[] = [];
  const unresolved = new Map<string, FailedImage>();
  const uses: Seen['uses'][number][] = [];
  for (const [kind, states] of [
    ['Pod', pods],
    ['DaemonSet', daemonSets],
  ] as const) {
    for (const [key, { decision, settings }] of states) {
      const [namespace = '', name = ''] = key.split('/');
      if (kind === 'Pod' && decision.kind === 'skip' && skipFacts(decision.reason).isLeftAlone) {
        ignored.push({ kind, namespace, name });
      }
      if (decision.kind === 'wait') waiting.push({ kind, namespace, name, images: decision.images });
      if (decision.kind === 'hold') {
        const entry = { kind, namespace, name, images: decision.images };
        held.push(entry);
        headings.set(entry, heldText(settings));
      }
      if (decision.kind === 'wait' || decision.kind === 'place') {
        for (const { volume: _volume, ...failed } of decision.failed) unresolved.set(failed.image, failed);
        const pending = decision.kind === 'wait' ? decision.images : [];
        uses.push({ kind, namespace, name, images: [...pending, ...decision.failed.map(({ image }) => image)] });
      }
    }
  }
  const byImage = [...unresolved.values()].sort((one, other) => (one.image < other.image ? -1 : 1));
  for (const list of [waiting, held, ignored, uses]) list.sort(byName);
  return { waiting, held, unresolved: byImage, ignored, headings, uses };
}

function heldText({ mode, schedulable, policy }: Settings): string {
  const by = policy === undefined ? '' : `, by policy ${policy}`;
  return `${onlyObserves({ mode }) ? 'Would be held in another mode' : 'Held'}: their images have no architecture in common${withinText(schedulable)}${by}.`;
}

/**
 * Returns the workloads whose new pods would get another node affinity at admission than their pods have now: that can be written to
 * new pods only. `ownNamespace`: whose pods pass no review.
 */
function newPodsOf(
  { watches, fromImages: { pods } }: DecidedAll,
  specs: PodSpecs,
  ownNamespace = DEFAULT_NAMESPACE,
): Plan['newPods'] {
  const found = new Map<string, Plan['newPods'][number]>();
  for (const [key, { decision, settings }] of pods) {
    const pod = watches.pods.store.get(key);
    const namespace = pod && watches.namespaces.store.get(pod.namespace);
    if (!usesAffinity(settings) || decision.kind !== 'place') continue;
    // What was placed on a guess says nothing about new pods.
    if (decision.unknown.length > 0 || decision.failed.length > 0) continue;
    // A gated pod gets its affinity now: that is a change.
    if (pod === undefined || namespace === undefined || pod.gated !== undefined) continue;
    const { selecting: spec = {} } = specs.get(pod.uid) ?? {};
    if (spec === false || [ownNamespace, 'kube-node-lease'].includes(namespace.name)) continue;
    const required = placingFor(decision, readPodSubject(pod, namespace, settings)).affinity?.required ?? [];
    const has = pod.written?.architectures;
    const isOurs = has !== undefined && required.some(({ values }) => isSame([...values].sort(), [...has].sort()));
    if (isOurs || (has === undefined && withAffinity(spec, { required, preferred: [] }) === undefined)) continue;
    if (required.length === 0) continue;
    const workload = workloadOf(pod);
    found.set(JSON.stringify([workload, required]), { ...workload, requires: required });
  }
  return [...found.values()].sort(byName);
}

/**
 * Prints, for each node pool, how many of the pods of today could run there, and the steps that bring it in line with the
 * configuration. Nothing is written. Exit code 2 if there are steps.
 */
async function printPools(
  { output, print, note, signal }: Context,
  client: ApiClient,
  { watches, fromImages }: DecidedAll,
  specs: PodSpecs,
  settings: Settings,
): Promise<number> {
  const objects = await readNodePools(client, (object) => object, note, signal);
  if (objects === undefined)
    note('NodePools of Karpenter: none, or they may not be read; other pools are known by the labels of their nodes');
  const pods = [...fromImages.pods].flatMap(([key, { decision }]): PooledPod[] => {
    const { demands } = specs.get(watches.pods.store.get(key)?.uid ?? '') ?? {};
    if (demands === undefined) return [];
    if (decision.kind === 'skip') return [{ architectures: undefined, demands }];
    return [{ architectures: decision.kind === 'place' ? decision.architectures : [], demands }];
  });
  const pools = planPools(objects ?? [], [...watches.nodes.store.values()], pods, settings);
  const text = pools.length === 0 ? 'No node belongs to a pool.\n' : pools.map(poolText).join('\n');
  print(output === 'table' ? text : valueText({ pools }, output));
  return pools.some(({ steps }) => steps.length > 0) ? EXIT.found : EXIT.done;
}

function poolText({ kind, name, architectures, couldRun, pods, problems, steps }: PoolPlan): string {
  const share = pods === 0 ? 100 : Math.floor((couldRun / pods) * 100);
  const runs = architectures === undefined ? 'any architecture' : architectures.join(', ');
  const lines = [
    `${kind} ${name} (${runs}): ${couldRun} of ${pods} pods could run there (${share} %).`,
    ...problems.map((problem) => `  ${problem.severity}: it ${problem.note}`),
    ...(kind === 'NodePool' ? [] : [`  Its template should have the taint of its architecture: ${POOL_PAGE}`]),
  ].map((line) => printable(line, 4_000));
  const ready = steps.map((step) => stepText(name, step));
  return [`${lines.join('\n')}\n`, ...ready].join('\n');
}

/** A step as something to paste into a shell. */
function stepText(name: string, step: PoolStep): string {
  const heading = `# ${printable(step.note, 400)}\n`;
  if (step.kind === 'create') return `${heading}kubectl apply -f - <<'YAML'\n${stringify(step.manifest)}YAML\n`;
  const patch = JSON.stringify(step.patch).replaceAll("'", "'\\''");
  return `${heading}kubectl patch nodepool ${name} --type=json -p '${patch}'\n`;
}
