import { createMetrics } from '../../src/observability/metrics.ts';
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

/** Returns every metric, as it is scraped. */
export function metricsPart(): Part {
  const found = [...createMetrics('', () => 0).definitions()].sort((one, other) => (one.name < other.name ? -1 : 1));
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

function labelText(label: string): string {
  const text = LABELS[label];
  if (text === undefined) throw new Error(`the label ${label} has no text: add it in hack/reference/metrics.ts`);
  return text;
}
