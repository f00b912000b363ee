import { between } from '../hack/write-between.ts';

/**
 * The layers of `src`, from the one that knows nothing of the others to the entry point. A file imports only from its own part
 * and from parts of layers above it in this list; parts of one layer do not import each other. docs/development/architecture.md has this
 * list as a table (`npm run generate`).
 */
export const LAYERS: readonly (readonly { readonly part: string; readonly holds: string }[])[] = [
  [{ part: 'kit', holds: 'small tools without a home in the domain; they know no noun of Kubernetes' }],
  [{ part: 'names.ts', holds: 'every label, annotation, taint, gate and Event reason' }],
  [
    { part: 'kube', holds: 'the API server: client, watches, work queue, writer, Lease, Events' },
    { part: 'oci', holds: 'registries: references, lookups, credentials, the cache of platforms' },
    { part: 'observability', holds: 'log, metrics, health' },
    { part: 'placement', holds: 'what the controller decides, pure' },
  ],
  [
    { part: 'config', holds: 'the schema of the configuration, loading, reloading' },
    { part: 'webhook', holds: 'the admission webhook and its certificates' },
    { part: 'controllers', holds: 'gather, decide, act: pods, nodes, DaemonSets, wrong nodes' },
    { part: 'clean', holds: 'what `clean` does' },
    { part: 'analysis', holds: 'what only commands compute, pure' },
  ],
  [{ part: 'app', holds: 'what a running replica is made of' }],
  [{ part: 'cli', holds: 'the command line, and one folder for each command' }],
  [{ part: 'main.ts', holds: 'the entry point' }],
];

/** The layers as a table, lowest first, as docs/development/architecture.md shows them. */
export function layersTable(): string {
  const rows = LAYERS.flatMap((layer, index) =>
    layer.map(({ part, holds }) => `| ${index + 1} | \`src/${part}\` | ${holds} |`),
  );
  return ['| layer | part | holds |', '| --- | --- | --- |', ...rows].join('\n');
}

/** The text of docs/development/architecture.md with the table between its two marks. */
export function withLayersTable(text: string): string {
  return between(text, 'layers', layersTable());
}
