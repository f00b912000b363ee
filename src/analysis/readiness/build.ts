import { onlySchedulable } from '../../placement/images.ts';
import { architecturesOf, type Node, nodeArchitecture } from '../../placement/nodes/node.ts';
import { createPins } from '../../placement/readiness/places.ts';
import type { ReadinessState, TargetVerdict } from '../../placement/readiness/readiness-states.ts';
import { type Assessment, verdictOf } from '../../placement/readiness/target-verdict.ts';
import { type AnswerOf, assess, type Candidate, type Circumstances } from './assess.ts';
import type { Unit } from './inventory.ts';
import { costOf, createCosts, type Prices } from './price.ts';
import { rankRebuilds } from './rebuilds.ts';
import type {
  Measure,
  NotLookedUp,
  PodWithoutNode,
  Report,
  ReportedImage,
  ReportedWorkload,
  TargetSummary,
  Unread,
} from './report.ts';
import { countNotLookedUp, type ImageFinding, reportImages } from './report-images.ts';
import { cores, type Grouping, groupWorkloads, readinessOf, tallyOf } from './tally.ts';

export type ReportInput = Omit<Circumstances, 'architectures'> & {
  readonly units: readonly Unit[];
  /** Empty without a cluster. */
  readonly nodes: readonly Node[];
  /** Undefined: every architecture that could be a target, of the nodes and of the images. */
  readonly targets: readonly string[] | undefined;
  /** The result of a lookup that has ended. */
  readonly answerOf: AnswerOf;
  readonly registryOf: (image: string) => string;
  readonly grouping: Grouping | undefined;
  readonly unread: readonly Unread[];
  readonly waiting?: readonly PodWithoutNode[];
  /** What a month costs; undefined: no price was given. */
  readonly prices?: Prices | undefined;
  /** A newer tag of an image that has a build for a target. */
  readonly newerOf?: (image: string, target: string) => string | undefined;
};

/** Builds the report from what was gathered. It decides nothing by itself: `decide` and `fit` do. */
export function buildReport(input: ReportInput): Report {
  const { units, nodes, settings, answerOf, registryOf, grouping, unread, newerOf = () => undefined } = input;
  const own = architecturesOf(nodes);
  const assessed = ({ parts }: Unit, architectures: readonly string[]) =>
    parts.map((part) => ({
      part,
      assessment: assess(part, { ...input, architectures }, (image) => answerOf(image, part)),
    }));
  const targets = input.targets ?? possibleTargets(own, (unit) => assessed(unit, own), input);
  const architectures = [...new Set([...own, ...targets])].sort();
  const pinsOf = createPins(nodes, settings);
  const costs = input.prices && createCosts(input.prices, nodes);
  const architectureOf = new Map(nodes.map((node) => [node.name, nodeArchitecture(node)]));
  const findings = new Map<string, ImageFinding>();
  // One workload after the other: what its assessment takes is free again before the next one.
  const workloads = units.map((unit): ReportedWorkload => {
    const found = assessed(unit, architectures);
    for (const { assessment } of found) collect(assessment, findings);
    const verdicts = targets.map((target) => {
      const each = found.map(({ part, assessment }) => verdictOf(part, assessment, target, pinsOf));
      return [target, joined(each)] as const;
    });
    const counted = workloadOf(unit, found[0]?.assessment);
    const cost = costs?.now(counted, unit.runsOn);
    return {
      ...counted,
      ...runsOnOf(unit, architectureOf),
      ...(cost === undefined ? {} : { cost: cores(cost) }),
      verdicts: Object.fromEntries(verdicts),
    };
  });

  const all = tallyOf(workloads);
  const measure: Measure = all.cpu > 0 ? 'cpu' : 'replicas';
  const summaries = targets.map((target): [string, TargetSummary] => {
    const readiness = readinessOf(workloads, target, measure);
    const count = nodes.filter((node) => nodeArchitecture(node) === target).length;
    const cost = costs && costOf(workloads, target, costs);
    const savedBy = costs && cost && ((each: ReportedWorkload) => (each.cost ?? 0) - (costs.on(each, target) ?? 0));
    const rebuilds = rankRebuilds(workloads, target, all, readiness.states.ready, measure, savedBy);
    const withoutCpu = measure === 'cpu' ? withoutCpuOf(workloads, target) : undefined;
    return [
      target,
      {
        ...readiness,
        ...(nodes.length === 0 ? {} : { nodes: count }),
        rebuilds,
        ...(withoutCpu && { withoutCpu }),
        ...(cost && { cost }),
      },
    ];
  });
  const groups = grouping && {
    groupBy: grouping.by === 'label' ? `label:${grouping.key}` : grouping.by,
    groups: groupWorkloads(workloads, targets, grouping, measure, registryOf),
  };
  const images = reportImages(workloads, targets, findings, registryOf, newerOf);
  const notLookedUp = notLookedUpOf(images, workloads);
  return {
    targets,
    summary: { all, measure, targets: Object.fromEntries(summaries), notLookedUp, unread },
    workloads,
    images,
    ...(input.waiting === undefined ? {} : { waiting: input.waiting }),
    ...groups,
  };
}

function notLookedUpOf(images: readonly ReportedImage[], workloads: readonly ReportedWorkload[]): NotLookedUp {
  const failed = images.flatMap(({ image, registry, error }) => (error ? [{ image, registry, code: error.code }] : []));
  const names = new Set(failed.map(({ image }) => image));
  const users = workloads.filter((workload) => workload.images.some((image) => names.has(image)));
  return { ...countNotLookedUp(failed), workloads: users.length };
}

/** Returns the workloads that want pods and request no CPU; undefined if there are none. */
function withoutCpuOf(workloads: readonly ReportedWorkload[], target: string): TargetSummary['withoutCpu'] {
  const found = workloads.filter(({ cpu, replicas }) => cpu === 0 && replicas > 0);
  if (found.length === 0) return undefined;
  return { all: tallyOf(found), ready: tallyOf(found.filter(({ verdicts }) => verdicts[target]?.state === 'ready')) };
}

/** Returns the architectures of the nodes, and those that an image runs on, within `architectures.schedulable`. */
function possibleTargets(
  own: readonly string[],
  assessed: (unit: Unit) => readonly { readonly assessment: Assessment }[],
  { units, settings }: Pick<ReportInput, 'units' | 'settings'>,
): string[] {
  const found = new Set(own);
  for (const unit of units) {
    const sets = assessed(unit).flatMap(({ assessment }) => assessment.narrowed.map(({ said }) => said));
    for (const said of sets) {
      if (said.kind === 'set') for (const architecture of said.architectures) found.add(architecture);
    }
  }
  return onlySchedulable([...found].sort(), settings);
}

function workloadOf(
  { kind, namespace, name, labels, parts }: Unit,
  first: Assessment | undefined,
): Omit<ReportedWorkload, 'verdicts'> {
  const policy = first?.settings.policy === undefined ? {} : { policy: first.settings.policy };
  const basis = first?.outcome.kind === 'place' ? { basis: first.outcome.basis } : {};
  const sum = (value: (part: Candidate) => number) => parts.reduce((total, part) => total + value(part), 0);
  return {
    kind,
    namespace,
    name,
    replicas: sum(({ replicas }) => replicas),
    cpu: cores(sum(({ replicas, requests }) => replicas * requests.cpu)),
    memory: Math.ceil(sum(({ replicas, requests }) => replicas * requests.memory)),
    labels,
    images: [...new Set(parts.flatMap(({ template }) => template.images.map(({ image }) => image)))],
    ...policy,
    ...basis,
  };
}

/** Returns how many pods of a unit run on nodes of which architecture; `unknown` where the node was not read. */
function runsOnOf(
  { runsOn }: Unit,
  architectureOf: ReadonlyMap<string, string | undefined>,
): Pick<ReportedWorkload, 'runsOn'> {
  const counts = new Map<string, number>();
  for (const [node, count] of runsOn) {
    const architecture = architectureOf.get(node) ?? 'unknown';
    counts.set(architecture, (counts.get(architecture) ?? 0) + count);
  }
  return counts.size === 0 ? {} : { runsOn: Object.fromEntries([...counts].sort()) };
}

/** Keeps what the lookups said about each image. Where one access knows the image and another does not, it is known. */
function collect(assessment: Assessment, findings: Map<string, ImageFinding>): void {
  for (const { image, said } of assessment.narrowed) {
    const known = findings.get(image.image);
    if (said.kind === 'set' && !known?.platforms.length) {
      findings.set(image.image, { platforms: [...said.platforms].sort() });
    } else if (said.kind === 'failed' && known === undefined) {
      findings.set(image.image, { platforms: [], error: { code: said.code, message: said.message } });
    }
  }
}

/** The states of several parts of one workload count as the worst of them. */
const WORST_FIRST: readonly ReadinessState[] = ['missing', 'blocked', 'unknown', 'pinned', 'ready'];

/** Joins the verdicts of the parts of one workload. */
function joined(verdicts: readonly TargetVerdict[]): TargetVerdict {
  const [only] = verdicts;
  if (only !== undefined && verdicts.length === 1) return only;
  const state = WORST_FIRST.find((each) => verdicts.some((verdict) => verdict.state === each)) ?? 'unknown';
  const reasons = new Map(
    verdicts.flatMap((verdict) => verdict.reasons.map((reason) => [reason.text, reason] as const)),
  );
  return { state, reasons: [...reasons.values()] };
}
