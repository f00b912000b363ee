import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import type { Answer } from '../../hack/cluster/client.ts';
import { waitFor } from '../../hack/cluster/wait.ts';
import { at, type JsonObject, list, object, objects, text } from './json.ts';
import { findKind } from './objects/resources.ts';
import { nameOf } from './objects/store.ts';
import type { NodeOptions, TestCluster } from './test-cluster.ts';

type Request = TestCluster['request'];

/** Returns the body of a success; otherwise throws with the server's own message. */
export function succeeded(what: string, { status, body }: Answer): JsonObject {
  if (status >= 300) throw new Error(`${what}: ${status} ${text(at(body, 'message'))}`);
  return object(body);
}

/** The path of an object's collection. */
export function collectionOf(item: JsonObject): string {
  const resource = findKind(text(item.apiVersion), text(item.kind));
  if (!resource) throw new Error(`the embedded cluster has no ${text(item.apiVersion)} ${text(item.kind)}`);
  const root = resource.group === '' ? '/api/v1' : `/apis/${resource.apiVersion}`;
  const namespace = text(at(item, 'metadata', 'namespace')) || 'default';
  return `${root}/${resource.namespaced ? `namespaces/${namespace}/` : ''}${resource.plural}`;
}

/** Like `kubectl apply` without its annotation: existing objects get the document's fields (a merge patch). */
export async function apply(request: Request, yaml: string): Promise<void> {
  for (const parsed of parsedOnce(yaml)) {
    const items = at(parsed, 'kind') === 'List' ? objects(at(parsed, 'items')) : parsed ? [object(parsed)] : [];
    for (const item of items) {
      const what = `apply ${text(item.kind)} ${nameOf(item)}`;
      const created = await request('POST', collectionOf(item), item);
      if (created.status !== 409) succeeded(what, created);
      else succeeded(what, await request('PATCH', `${collectionOf(item)}/${nameOf(item)}`, item));
    }
  }
}

const read = new Map<string, readonly unknown[]>();

/** The objects of a text. Many tests apply the same manifest, which takes long to parse. */
function parsedOnce(yaml: string): readonly unknown[] {
  const found = read.get(yaml) ?? parseAllDocuments(yaml).map((document): unknown => document.toJS());
  read.set(yaml, found);
  return found;
}

export async function createNode(request: Request, options: NodeOptions): Promise<void> {
  const { name, architecture, os = 'linux', labels = {}, taints = [], waitUntilReady = true } = options;
  const own = { 'kubernetes.io/hostname': name, 'kubernetes.io/arch': architecture, 'kubernetes.io/os': os };
  const capacity = { cpu: '64', memory: '256Gi', pods: '1000' };
  const nodeInfo = { architecture, operatingSystem: os, kubeletVersion: 'test', machineID: '' };
  const node = {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { ...own, ...labels } },
    spec: { taints },
    status: { capacity, allocatable: capacity, nodeInfo },
  };
  succeeded(`node ${name}`, await request('POST', '/api/v1/nodes', node));
  if (!waitUntilReady) return;
  await waitFor(
    `node ${name} to take pods`,
    async () => {
      const { body } = await request('GET', `/api/v1/nodes/${name}`);
      return !list(at(body, 'spec', 'taints')).some((taint) => at(taint, 'key') === 'node.kubernetes.io/not-ready');
    },
    PATIENCE_MS,
  );
}

/** The longest wait for what should be there in a moment: a machine may be busy. Below the time-out of a test, so that it says what is missing. */
export const PATIENCE_MS = 100_000;

/** Writes a kubeconfig and returns its path. */
export async function writeKubeconfig(directory: string, name: string, server: string, token: string): Promise<string> {
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'embedded', cluster: { server } }],
    users: [{ name, user: { token } }],
    contexts: [{ name: 'embedded', context: { cluster: 'embedded', user: name } }],
    'current-context': 'embedded',
  };
  const file = join(directory, `${name.replaceAll(':', '-')}.kubeconfig`);
  await mkdir(directory, { recursive: true });
  await writeFile(file, JSON.stringify(config), { mode: 0o600 });
  return file;
}
