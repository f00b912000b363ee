import { readFile } from 'node:fs/promises';
import { allKeys } from '../../src/config/keys.ts';
import { appliesAtOnce } from '../../src/config/reload.ts';
import { grafanaDashboard } from '../dashboard/grafana.ts';
import type { GeneratedFile } from '../write-between.ts';
import { valuesSchema } from './values-schema.ts';

const ROOT = new URL('../../', import.meta.url);
const COMPONENTS = new URL('manifests/kustomize/components/', ROOT);
/** Where the chart is. */
export const CHART = new URL('manifests/helm/archaware-controller/', ROOT);

/** Copies, because helm reads no file outside of the chart; the templates change the parts that depend on values. */
const COPIES: readonly [from: URL, to: string][] = [
  ...['pods', 'nodes', 'daemonsets', 'webhook-certificates', 'keep', 'reports'].map((name): [URL, string] => [
    new URL(`${name}/policy.yaml`, COMPONENTS),
    `files/policies/${name}.yaml`,
  ]),
  [new URL('../base/lease-policy.yaml', COMPONENTS), 'files/policies/leases.yaml'],
  [new URL('../base/status-policy.yaml', COMPONENTS), 'files/policies/status.yaml'],
  [new URL('keep/pods.yaml', COMPONENTS), 'files/policies/keep-pods.yaml'],
  [new URL('publish/policy.yaml', COMPONENTS), 'files/policies/place.yaml'],
  [new URL('publish/daemonsets.yaml', COMPONENTS), 'files/policies/place-daemonsets.yaml'],
  [new URL('publish/crd.yaml', COMPONENTS), 'files/knownimages.yaml'],
  ...['pods/pods', 'pods/jobs', 'pods/workloads', 'daemonsets/daemonsets'].map((name): [URL, string] => [
    new URL(`webhook-${name}.yaml`, COMPONENTS),
    `files/webhooks/${name.split('/')[1]}.yaml`,
  ]),
  [new URL('alerts/prometheusrule.yaml', COMPONENTS), 'files/prometheusrule.yaml'],
  ...['edgetpu', 'ncs2'].map((name): [URL, string] => [
    new URL(`labels/accelerators/${name}`, ROOT),
    `files/labels/accelerators/${name}`,
  ]),
];

/** Returns the generated files of the chart, with their correct contents. */
export async function chartFiles(): Promise<GeneratedFile[]> {
  const copies = COPIES.map(async ([from, to]) => ({
    file: new URL(to, CHART),
    content: await readFile(from, 'utf8'),
  }));
  const keys = allKeys().map(({ path, fallback }) => ({
    path: path.split('.'),
    default: fallback,
    restart: !appliesAtOnce(path),
  }));
  return [
    ...(await Promise.all(copies)),
    { file: new URL('files/config.json', CHART), content: json({ keys }) },
    { file: new URL('files/dashboard.json', CHART), content: json(grafanaDashboard()) },
    { file: new URL('values.schema.json', CHART), content: json(valuesSchema()) },
  ];
}

function json(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
