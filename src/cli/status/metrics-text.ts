import { strangersText } from '../../kit/cut.ts';

/** One value of a metric with its labels. */
export type Sample = { readonly labels: Readonly<Record<string, string>>; readonly value: number };

/** What `status` reads from the metrics of a replica. A metric that is missing is undefined. */
export type ReplicaMetrics = {
  readonly version: string | undefined;
  readonly leads: boolean;
  /** Pods by outcome, as the replica counts them; only the leader decides, so only its counts say something. */
  readonly pods: Readonly<Record<string, number>>;
  /** Whether the present configuration file is in use. */
  readonly configurationInUse: boolean | undefined;
  readonly wrongNodePods: number;
  readonly contestedObjects: number;
  /** Whether archaware's tolerations in DaemonSets are protected, as the replica has tried; undefined: it does not know. */
  readonly keepsDaemonSets: boolean | undefined;
  /** Nodes that stay without the taint because of a DaemonSet. */
  readonly taintsHeldBack: number;
  /** DaemonSets that did not come back after a write. */
  readonly rolloutStopped: number;
  readonly unresolvableImages: number;
  /** Undefined without a certificate. */
  readonly certificateExpirySeconds: number | undefined;
};

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?$/;
const LABEL = /\b([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;

/** Parses the text format of Prometheus; lines that are not samples are left out. */
export function parseSamples(text: string): ReadonlyMap<string, readonly Sample[]> {
  const found = new Map<string, Sample[]>();
  for (const line of text.split('\n')) {
    const [, name, labels = '', value = ''] = LINE.exec(strangersText(line).trim()) ?? [];
    if (name === undefined) continue;
    const pairs = [...labels.matchAll(LABEL)].map(([, label = '', quoted = '']) => [label, unescaped(quoted)] as const);
    const samples = found.get(name) ?? [];
    samples.push({ labels: Object.fromEntries(pairs), value: numberOf(value) });
    found.set(name, samples);
  }
  return found;
}

function unescaped(quoted: string): string {
  return quoted.replaceAll(/\\(.)/g, (_, character: string) => (character === 'n' ? '\n' : character));
}

function numberOf(text: string): number {
  return text === '+Inf' ? Number.POSITIVE_INFINITY : text === '-Inf' ? Number.NEGATIVE_INFINITY : Number(text);
}

/** Reads the metrics of a replica; undefined if the text is not that of archaware. */
export function readReplicaMetrics(text: string): ReplicaMetrics | undefined {
  const samples = parseSamples(text);
  const firstOf = (name: string) => samples.get(`archaware_${name}`)?.[0]?.value;
  const leader = firstOf('leader');
  if (leader === undefined) return undefined;
  const pods = (samples.get('archaware_pods') ?? []).map(({ labels, value }) => [labels.outcome ?? '', value] as const);
  const reloaded = firstOf('config_reload_success');
  const keeps = (samples.get('archaware_safety_net_holds') ?? []).find(({ labels }) => labels.net === 'daemonsets');
  const expiry = firstOf('certificate_expiry_seconds');
  return {
    version: samples.get('archaware_build_info')?.[0]?.labels.version,
    leads: leader === 1,
    pods: Object.fromEntries(pods),
    configurationInUse: reloaded === undefined ? undefined : reloaded === 1,
    wrongNodePods: firstOf('wrong_node_pods') ?? 0,
    contestedObjects: firstOf('contested_objects') ?? 0,
    keepsDaemonSets: keeps === undefined || Number.isNaN(keeps.value) ? undefined : keeps.value === 1,
    taintsHeldBack: firstOf('taints_held_back') ?? 0,
    rolloutStopped: firstOf('rollout_stopped') ?? 0,
    unresolvableImages: firstOf('unresolvable_images') ?? 0,
    certificateExpirySeconds: expiry === undefined || Number.isNaN(expiry) ? undefined : expiry,
  };
}
