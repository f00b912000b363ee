import { ARCHITECTURE_GATE, ARCHITECTURES_ANNOTATION, IGNORE_LABEL } from '../names.ts';
import type { SkipReason } from './eligibility.ts';
import { whatLies } from './eviction.ts';
import type { Evidence, ExplainedNodes, ExplainInput, Explanation, NarrowedImage } from './explanation.ts';
import { type Demands, demandTexts, type Obstacle } from './fit.ts';
import { intersect } from './images.ts';
import { taintText } from './node.ts';
import { wrongNodeNote } from './wrong-node-note.ts';

type Told = Omit<Explanation, 'advice'>;

/** Names of nodes or images that a line holds before it says "and 3 more". */
const MOST_NAMES = 3;
/** Ways to make images meet that are worth naming. */
const MOST_WAYS = 3;

/** What somebody can do who wants the pod to run: concrete steps, the nearest first. Empty where nothing is wrong. */
export function advise(input: ExplainInput, told: Told, evidence: Evidence): string[] {
  const { state } = told.pod;
  if (state === 'finished' || state === 'deleting') return [];
  const images = [...adviseUnresolved(input, told), ...adviseHeld(input, told, evidence)];
  if (state === 'bound') return [...images, ...adviseBound(input, told, evidence)];
  const lines = [
    ...adviseSkipped(input, evidence.skipped),
    ...images,
    ...adviseGated(told),
    ...advisePlaced(input, told),
    ...adviseLate(input, evidence),
    ...adviseNodes(input, told, evidence),
  ];
  return [...new Set(lines)];
}

function adviseBound({ workload }: ExplainInput, told: Told, { skipped, wrongPlace }: Evidence): string[] {
  const { namespace, node: name = '' } = told.pod;
  if (skipped === 'daemon-pod') {
    const read = `kubectl -n ${namespace} get daemonset ${workload.pod?.owner?.name} -o yaml`;
    return [`explain its DaemonSet: ${read} | archaware-controller explain -f -`];
  }
  const owner = workload.pod?.owner;
  const again =
    owner === undefined ? 'create the pod again' : `delete the pod, so that its ${owner.kind} makes another`;
  const { architecture = '' } = told.nodes.find(({ names }) => names.includes(name)) ?? {};
  if (wrongPlace !== undefined) {
    const step = wrongPlace.verdict === 'says-it-runs' ? whatLies(wrongPlace, architecture) : again;
    return [wrongNodeNote(wrongPlace, { name, architecture }, step)];
  }
  const { kind, basis, architectures = [architecture] } = told.decision;
  if (kind === 'place' && basis === 'images' && architecture !== '' && !architectures.includes(architecture)) {
    const set = architectures.join(', ');
    return [
      `bound to node ${name} (${architecture}), but by now its images run on ${set}: its next start there would fail; ${again}`,
    ];
  }
  return told.tolerations.some(({ stale }) => stale) ? [`${again}: a toleration cannot be taken from it`] : [];
}

function adviseSkipped({ namespace }: ExplainInput, skipped: SkipReason | undefined): string[] {
  const or = ', or give it tolerations of its own (archaware-controller inspect IMAGE says for what)';
  switch (skipped) {
    case 'ignored':
      return [`take the label ${IGNORE_LABEL} away${or}`];
    case 'namespace-ignored':
      return [`take the label away: kubectl label namespace ${namespace.name} ${IGNORE_LABEL}-${or}`];
    case 'namespace-excluded':
      return [`take ${namespace.name} out of pods.excludeNamespaces${or}`];
    case 'namespace-not-selected':
      return [`label namespace ${namespace.name} so that pods.namespaceSelector matches${or}`];
    case 'daemonsets-ignored':
      return [`set pods.daemonSets to patch${or}`];
    default:
      return [];
  }
}

function adviseUnresolved({ workload, namespace }: ExplainInput, { images, pullSecrets }: Told): string[] {
  const failed = images.flatMap(({ image, error }) => (error ? { image, ...error } : []));
  if (failed.length === 0) return [];
  const account = `${namespace.name}/${workload.template.serviceAccountName}`;
  const secrets = pullSecrets.flatMap(({ name, problem }) =>
    problem === undefined ? [] : `mend the pull secret ${namespace.name}/${name}: ${problem}`,
  );
  const steps = failed.map(({ image, code, registry }) => stepFor(code, image, registry || 'its registry', account));
  const owner = workload.kind === 'Pod' ? 'the pod' : 'the template';
  return [
    ...secrets,
    ...steps,
    `or say what it runs on: images.overrides, or the annotation ${ARCHITECTURES_ANNOTATION} (amd64,arm64) on ${owner}`,
  ];
}

function stepFor(code: string, image: string, registry: string, account: string): string {
  switch (code) {
    case 'denied':
      return `give ${image} a login: an imagePullSecret for ${registry} in the pod or in its service account ${account}, or credentials.* for the whole cluster`;
    case 'not-found':
      return `push ${image}, or mend its name; some registries say the same of what a login is needed for`;
    case 'rate-limited':
      return `log in at ${registry} (an imagePullSecret or credentials.*), or name a mirror (registries.mirrors)`;
    case 'forbidden-address':
      return `let ${registry} be asked, if that is meant: registries.addresses.allow, or registries.insecure for the loopback`;
    case 'malformed':
    case 'unsupported':
    case 'too-large':
      return `mend the name of ${image}, or push it again: there is no image that can be read`;
    default:
      return `see that ${registry} can be reached from here; registries.mirrors, registries.caFile and registries.insecure say how`;
  }
}

function adviseHeld(
  input: ExplainInput,
  { decision }: Told,
  { settings, narrowed, clusterArchitectures }: Evidence,
): string[] {
  if (decision.kind !== 'hold' && decision.basis !== 'released') return [];
  if (narrowed.length === 0) {
    return [`name an architecture of architectures.schedulable in the annotation ${ARCHITECTURES_ANNOTATION}`];
  }
  const common = intersect(setsOf(narrowed).map(({ architectures }) => architectures)) ?? [];
  const beyond =
    common.length > 0 ? [`add ${common.join(' or ')}, on which all images run, to architectures.schedulable`] : [];
  return alternatives([...beyond, ...waysTo(clusterArchitectures, input, narrowed, settings.schedulable)]);
}

function adviseGated({ pod: { state, gates = [] } }: Told): string[] {
  const others = gates.filter((gate) => gate !== ARCHITECTURE_GATE);
  if (state !== 'gated' || others.length === 0) return [];
  return [`it is held by ${others.join(', ')} until whoever set that gate removes it`];
}

function advisePlaced({ applied, workload }: ExplainInput, { decision, tolerations }: Told): string[] {
  const isUp = 'see that it is up (kubectl -n archaware logs deployment/archaware-controller)';
  const isGated = applied && workload.pod?.gated !== undefined;
  if (isGated && (decision.kind === 'place' || decision.kind === 'skip')) return [`run takes its gate away: ${isUp}`];
  if (!applied || decision.kind !== 'place' || tolerations.every(({ present }) => present)) return [];
  return [`run writes the tolerations that are missing: ${isUp}`];
}

/** A pod that admission passed over has no affinity, and cannot get any. */
function adviseLate({ workload: { pod } }: ExplainInput, { isLate }: Evidence): string[] {
  if (!isLate) return [];
  const again =
    pod?.owner === undefined ? 'create the pod anew' : `delete it, so that its ${pod.owner.kind} makes it anew`;
  return [`admission passed it over, and it is too late for affinity: ${again}`];
}

/** What it takes for one more node to be fit, where none is. */
function adviseNodes(
  input: ExplainInput,
  told: Told,
  { narrowed, settings, clusterArchitectures, obstacles, demands }: Evidence,
): string[] {
  if (told.nodes.length === 0 || (told.decision.kind !== 'place' && told.decision.kind !== 'skip')) return [];
  const set = told.decision.architectures;
  const isIn = ({ architecture = '' }: ExplainedNodes) => set === undefined || set.includes(architecture);
  const able = told.nodes.flatMap((group, index) => (isIn(group) ? { group, left: obstacles[index] ?? [] } : []));
  if (able.length === 0) {
    return alternatives([
      `add a node of ${set?.join(' or ')}`,
      ...waysTo(clusterArchitectures, input, narrowed, settings.schedulable),
    ]);
  }
  if (able.some(({ left }) => left.length === 0)) return [];
  const easiest = Math.min(...able.map(({ left }) => left.length));
  return alternatives(
    able
      .filter(({ left }) => left.length === easiest)
      .map(({ group, left }) => left.map((obstacle) => stepAround(obstacle, group, demands)).join('; and ')),
  );
}

function stepAround(obstacle: Obstacle, { names }: ExplainedNodes, demands: Demands): string {
  switch (obstacle.kind) {
    case 'unschedulable':
      return `kubectl uncordon ${few(names, ' ')}`;
    case 'node-name':
      return `take nodeName (${demands.nodeName}) out of the pod`;
    case 'taint': {
      const { key } = obstacle.taint;
      return key.startsWith('node.kubernetes.io/')
        ? `see why ${few(names)} is ${key.replace('node.kubernetes.io/', '')}`
        : `let the pod tolerate ${taintText(obstacle.taint)}, or take that taint from ${few(names)}`;
    }
    case 'affinity':
      return `label ${few(names)} as the pod asks (${demandTexts(demands).join('; ')}), or change what it asks for`;
    default:
      return obstacle satisfies never;
  }
}

/** `push a linux/arm64 build of x`, for the architectures that the fewest images lack. */
function waysTo(
  cluster: readonly string[],
  { workload: { template } }: ExplainInput,
  narrowed: readonly NarrowedImage[],
  schedulable: readonly string[],
): string[] {
  const sets = setsOf(narrowed);
  const usable = (names: readonly string[]) =>
    schedulable.length === 0 ? names : names.filter((name) => schedulable.includes(name));
  const ways = usable(cluster).map((architecture) => ({
    architecture,
    lacking: sets.filter(({ architectures }) => !architectures.includes(architecture)),
  }));
  const fewest = Math.min(...ways.map(({ lacking }) => lacking.length));
  return ways
    .filter(({ lacking }) => lacking.length === fewest && fewest > 0)
    .slice(0, MOST_WAYS)
    .map(({ architecture, lacking }) => {
      const pushed = lacking.filter(({ by }) => by === 'registry').map(({ image }) => image);
      const stated = lacking.filter(({ by }) => by === 'override').map(({ image }) => image);
      return [
        ...(pushed.length > 0 ? [`push a ${template.os}/${architecture} build of ${few(pushed)}`] : []),
        ...(stated.length > 0 ? [`let images.overrides say ${architecture} of ${few(stated)}`] : []),
      ].join(' and ');
    });
}

function setsOf(narrowed: readonly NarrowedImage[]) {
  return narrowed.flatMap(({ image, said }) =>
    said.kind === 'set' ? { image: image.image, by: said.by, architectures: said.architectures } : [],
  );
}

/** One of the lines is enough. */
function alternatives(lines: readonly string[]): string[] {
  return [...new Set(lines)].map((line, index) => (index === 0 ? line : `or ${line}`));
}

function few(names: readonly string[], separator = ', '): string {
  const more = names.length - MOST_NAMES;
  return names.slice(0, MOST_NAMES).join(separator) + (more > 0 ? ` and ${more} more` : '');
}
