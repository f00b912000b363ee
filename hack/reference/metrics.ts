import { createMetrics, type Metrics } from '../../src/observability/metrics.ts';
import { code, codes, heading, join, type Page, table } from './markdown.ts';

const INTRODUCTION = `At \`metrics.address\` (\`:9090\`), path \`/metrics\`, in the text format of Prometheus; without the metrics of Node.js. Every replica serves them.
Metrics of the loops (\`pods\`, \`reconcile_total\`, \`workqueue_depth\`, …) change on the leader only: add them up over replicas. Names and labels are stable.

Which metrics to watch, and from which value on: [operating](../alerts.md).`;

/** The values of labels from a closed list, or how they are made. */
const LABELS: Readonly<Record<string, string>> = {
  action: '`warned`, `evicted`, `blocked` (an eviction was refused, or nothing would create the pod again)',
  architecture: 'as nodes report it; `unknown` before a node reports one',
  code: 'the HTTP status; `error` without an answer; of registries `other` for a status that does not exist',
  controller: '`pod`, `daemonset`, `node`, `wrong-node`',
  kind: 'of the objects that are watched',
  method: 'of HTTP',
  net: "`daemonsets` (updates that drop archaware's tolerations from a DaemonSet are corrected, by the policy `archaware-keep` or by the webhook)",
  node_version: 'of Node.js',
  outcome:
    'of pods `placed`, `waiting`, `held`, `open` (placed without knowing), `ignored`; of reviews `patched`, `gated`, `unchanged`, `rejected`, `error`',
  pool: 'the name of the NodePool, node group or node pool; the first 100, then `other`',
  reason: '`platforms` (an image lacks the architecture), `exec-format-error` (a container died of it)',
  registry:
    'the host: the configured ones always, of the others 100 at a time, else `other`. A host that answers goes before names that never did, and before one that was not asked for an hour',
  resource: 'of the API, as `pods` or `pods/eviction`',
  result:
    'of a reconciliation `written`, `unchanged`, `waiting`, `held`, `conflict`, `error`; of an image `ok` or [the code of the error](errors.md#images); of the memory `hit`, `miss`, `stale`, `revalidated`',
  verb: 'as RBAC names it',
  version: 'of the program',
};

/** Creates a sample of each metric with labels: only a sample shows their names. */
function exercise(metrics: Metrics): void {
  metrics.reconciled('', '', 0);
  metrics.wrongNodeFound('', '');
  metrics.nodeJoinedUntainted('');
  metrics.reviewed('', 0);
  metrics.imageResolved('');
  metrics.cacheAnswered('');
  metrics.registryAnswered({ registry: '', method: '', code: '', seconds: 0 });
  metrics.rateLimitTold({ registry: '', limit: 0, remaining: 0 });
  metrics.apiAnswered({ verb: '', resource: '', code: '' });
  metrics.watchRestarted('');
  metrics.writeRefused('');
}

/** Returns every metric of the registry, as it is scraped. */
export async function metricsPage(): Promise<Page> {
  const metrics = createMetrics('', () => 0);
  exercise(metrics);
  const { text } = await metrics.render({
    queueDepths: () => ({ '': 0 }),
    nodes: () => ({ '': 0 }),
    pods: async () => ({ '': 0 }),
    oldestWaitingPodSeconds: async () => 0,
    unresolvableImages: () => 0,
    leader: () => false,
    gatedPods: async () => 0,
    taintedNodes: () => ({ '': 0 }),
    safetyNets: () => ({ '': true }),
    publishedImages: () => 0,
    contestedObjects: () => 0,
    taintsHeldBack: () => 0,
    rolloutStopped: () => 0,
    wrongNodePods: () => 0,
    certificateExpirySeconds: () => undefined,
  });
  const found = readMetrics(text).sort((one, other) => (one.name < other.name ? -1 : 1));
  const rows = found.map(({ name, type, labels, help }) => [code(name), type, codes(labels), help]);
  const used = [...new Set(found.flatMap(({ labels }) => labels))].sort();
  const body = join(
    heading('Metrics'),
    INTRODUCTION,
    table(['metric', 'type', 'labels', 'what it is'], rows),
    '## Labels',
    table(
      ['label', 'values'],
      used.map((label) => [code(label), labelText(label)]),
    ),
  );
  return { file: 'metrics.md', text: body };
}

type Metric = {
  readonly name: string;
  readonly type: string;
  readonly labels: readonly string[];
  readonly help: string;
};

/** Parses the text format. Throws if a metric has no sample, because its labels are then unknown. */
export function readMetrics(text: string): Metric[] {
  const blocks = text.split(/^(?=# HELP )/m).filter((block) => block.startsWith('# HELP '));
  return blocks.map((block) => {
    const [, name = '', help = ''] = /^# HELP (\S+) (.*)$/m.exec(block) ?? [];
    const type = /^# TYPE \S+ (\S+)$/m.exec(block)?.[1] ?? '';
    const sample = /^[a-z][a-z0-9_]*(?:\{(.*?)\})? \S+$/m.exec(block);
    if (sample === null) throw new Error(`${name} has labels: add it to exercise() in hack/reference/metrics.ts`);
    const labels = [...(sample[1] ?? '').matchAll(/([a-z_]+)="[^"]*"/g)].map(([, label = '']) => label);
    return { name, type, labels: labels.filter((label) => label !== 'le'), help };
  });
}

function labelText(label: string): string {
  const text = LABELS[label];
  if (text === undefined) throw new Error(`the label ${label} has no text: add it in hack/reference/metrics.ts`);
  return text;
}
