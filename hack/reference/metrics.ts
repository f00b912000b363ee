import { createMetrics, type Metrics } from '../../src/observability/metrics.ts';
import { code, codes, join, type Part, table } from './markdown.ts';

/** The values of labels from a closed list, or how they are made; nothing for labels whose names say it. */
const LABELS: Readonly<Record<string, string>> = {
  ...{ architecture: '', kind: '', method: '', net: '', node_version: '', resource: '', verb: '', version: '' },
  action: '`warned`, `evicted`, `blocked` (an eviction was refused, or nothing would create the pod again)',
  code: 'the HTTP status; `error` without an answer',
  controller: '`pod`, `daemonset`, `node`, `wrong-node`',
  image: 'as pods write it; the 20 that block most for each target',
  namespace: 'the 100 that request most, then `other`',
  outcome:
    'of pods `placed`, `waiting`, `held`, `open` (placed without knowing), `ignored`; of reviews `patched`, `gated`, `unchanged`, `rejected`, `error`',
  pool: 'the name of the NodePool, node group or node pool; the first 100, then `other`',
  reason: '`platforms` (an image lacks the architecture), `exec-format-error` (a container died of it)',
  registry: 'the host: the configured ones, and 100 others at a time; else `other`',
  state: '[as in `report`](report.md#states); what is `missing` there is `blocked` here',
  target: 'an architecture of `report.targets`',
  result:
    'of a reconciliation `written`, `unchanged`, `waiting`, `held`, `conflict`, `error`; of an image `ok` or [the code of the error](troubleshooting.md#errors-of-images); of the memory `hit`, `miss`, `stale`, `revalidated`',
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
export async function metricsPart(): Promise<Part> {
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
    readiness: async () => ({
      pods: [{ target: '', namespace: '', state: '', architecture: '', pods: 0, cpu: 0, memory: 0 }],
      images: [{ target: '', image: '', cpu: 0 }],
    }),
    certificateExpirySeconds: () => undefined,
  });
  const found = readMetrics(text).sort((one, other) => (one.name < other.name ? -1 : 1));
  const rows = found.map(({ name, type, labels, help }) => [
    `${code(name)}${type === 'histogram' ? ' (histogram)' : ''}`,
    codes(labels),
    help,
  ]);
  const used = [...new Set(found.flatMap(({ labels }) => labels))].sort();
  const values = used.flatMap((label) => {
    const text = labelText(label);
    return text === '' ? [] : [[code(label), text]];
  });
  const body = join(table(['metric', 'labels', 'what it is'], rows), '### Labels', table(['label', 'values'], values));
  return { page: 'alerts.md', name: 'metrics', text: body };
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
