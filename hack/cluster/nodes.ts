import { expectSuccess, type Request } from './client.ts';
import { listAt } from './json.ts';
import { waitFor } from './wait.ts';

export interface NodeOptions {
  readonly name: string;
  /** With Go's names: amd64, arm64, … */
  readonly architecture: string;
  /** With Go's names; default: linux. */
  readonly os?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly taints?: readonly { readonly key: string; readonly value?: string; readonly effect: string }[];
  /** Default 64. */
  readonly cpu?: string;
  /** Default 1,000. */
  readonly pods?: number;
  /** Default true: resolves when the node accepts pods. Needs kwok and the controller manager. */
  readonly waitUntilReady?: boolean;
}

/** Registers a node as a kubelet does, together with its status. */
export async function createNode(request: Request, options: NodeOptions): Promise<void> {
  const { name, annotations, taints = [], waitUntilReady = true } = options;
  const metadata = { name, labels: labelsOf(options), ...(annotations ? { annotations } : {}) };
  const node = { apiVersion: 'v1', kind: 'Node', metadata, spec: { taints }, status: statusOf(options) };
  expectSuccess(`node ${name}`, await request('POST', '/api/v1/nodes', node));
  if (waitUntilReady) await waitFor(`node ${name} to take pods`, () => takesPods(request, name));
}

function labelsOf({ name, architecture, os = 'linux', labels }: NodeOptions) {
  const own = { 'kubernetes.io/hostname': name, 'kubernetes.io/arch': architecture, 'kubernetes.io/os': os };
  return { ...own, ...labels };
}

function statusOf({ architecture, os = 'linux', cpu = '64', pods = 1000 }: NodeOptions) {
  const capacity = { cpu, memory: '256Gi', 'ephemeral-storage': '1Ti', pods: String(pods) };
  const names = ['kernelVersion', 'osImage', 'containerRuntimeVersion', 'kubeletVersion', 'kubeProxyVersion'];
  const ids = ['machineID', 'systemUUID', 'bootID'].map((id) => [id, '']);
  const nodeInfo = {
    ...Object.fromEntries([...names.map((name) => [name, 'test']), ...ids]),
    architecture,
    operatingSystem: os,
  };
  return { capacity, allocatable: capacity, nodeInfo };
}

/**
 * Whether a node accepts pods: admission adds the taint `not-ready` to every new node, and the node-lifecycle
 * controller removes it.
 */
export async function takesPods(request: Request, name: string): Promise<boolean> {
  const { status, body } = await request('GET', `/api/v1/nodes/${name}`);
  return status === 200 && !JSON.stringify(listAt(body, 'spec', 'taints')).includes('node.kubernetes.io/not-ready');
}

/** Changes what the API server sees when a node's name comes back on other hardware. */
export async function setNodeArchitecture(request: Request, name: string, architecture: string): Promise<void> {
  const path = `/api/v1/nodes/${name}`;
  const status = await request('PATCH', `${path}/status`, { status: { nodeInfo: { architecture } } });
  expectSuccess(`architecture of node ${name}`, status);
  const label = { metadata: { labels: { 'kubernetes.io/arch': architecture } } };
  expectSuccess(`label of node ${name}`, await request('PATCH', path, label));
}
