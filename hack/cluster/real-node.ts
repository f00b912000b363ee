import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { stringify as toToml } from 'smol-toml';
import { stringify as toYaml } from 'yaml';
import { expectSuccess, type Request } from './client.ts';
import type { Plan } from './control-plane.ts';
import { at } from './json.ts';
import { makeNamespaces, type Namespaces } from './namespaces.ts';
import {
  bridgeNetwork,
  containerdConfig,
  kubeletConfig,
  nodeAddresses,
  nodeFiles,
  proxyConfig,
  registryName,
} from './node-config.ts';
import { withNodeImages } from './node-images.ts';
import { missingForNode } from './node-means.ts';
import { takesPods } from './nodes.ts';
import { type Component, type ComponentOptions, startComponent } from './spawn.ts';
import { waitFor } from './wait.ts';

const execute = promisify(execFile);

/** The architecture of this machine, by Go's name. */
export const ownArchitecture = process.arch === 'arm64' ? 'arm64' : 'amd64';

/** The name says that pods on this node really run. */
export const nodeName = `real-${ownArchitecture}`;

/** A node with a kubelet, a container runtime and kube-proxy, in namespaces of its own on this machine. */
export interface RealNode {
  readonly name: string;
  readonly architecture: typeof ownArchitecture;
  /** The only writable directory of this machine that also exists inside. */
  readonly directory: string;
  /** The words before a command that must run in the node's namespaces. */
  readonly enter: readonly string[];
  /** Runs a command there to its end, and returns its output. If the command fails, throws with the output. */
  run(command: string, ...args: readonly string[]): Promise<string>;
  /** Makes a port of the node's loopback address available on this machine's. */
  expose(port: number): Promise<void>;
  /**
   * Lets the container runtime pull from a port of this machine's loopback address; returns the host for references.
   * `authority`: the path of the certificate authority of a registry that speaks HTTPS. It must lie in `directory`.
   */
  pullFrom(port: number, authority?: string): Promise<string>;
}

/**
 * Ends everything that runs in pods, and removes everything that is not on the node's disk. The node may not see this
 * repository.
 */
export async function cutPower(node: RealNode): Promise<void> {
  const script = await readFile(new URL('node/power-cut.sh', import.meta.url), 'utf8');
  await node.run('bash', '-c', script);
}

/** The options that all components have in common. */
export type Common = Omit<ComponentOptions, 'name' | 'args'>;

export interface NodePlace extends RealNode {
  /** Ends everything that runs on the node, and removes its mounts, links and cgroups. */
  remove(): Promise<void>;
}

/** Creates the place where the node and the control plane will run. Nothing runs there yet. */
export async function makeNodePlace(directory: string): Promise<NodePlace> {
  const missing = missingForNode();
  if (missing.length > 0) throw new Error(`this machine lacks what a real node needs: ${missing.join('; ')}`);
  const namespaces = await makeNamespaces(directory, nodeName, nodeAddresses.node);
  const { registries } = nodeFiles(directory);
  return {
    name: nodeName,
    architecture: ownArchitecture,
    directory,
    enter: namespaces.enter,
    expose: namespaces.expose,
    remove: namespaces.remove,
    run: (command, ...args) => runInside(namespaces, command, ...args),
    async pullFrom(port, authority) {
      const host = `${registryName}:${port}`;
      await mkdir(join(registries, host), { recursive: true });
      const server = `${authority === undefined ? 'http' : 'https'}://${host}`;
      const trusted = authority === undefined ? {} : { ca: authority };
      await writeFile(
        join(registries, host, 'hosts.toml'),
        toToml({ server, host: { [server]: { capabilities: ['pull', 'resolve'], ...trusted } } }),
      );
      return host;
    },
  };
}

async function runInside({ enter }: Namespaces, command: string, ...args: readonly string[]): Promise<string> {
  const [program = '', ...rest] = [...enter, command, ...args];
  return (await execute(program, rest, { maxBuffer: 2 ** 26 })).stdout;
}

/** Starts the container runtime, with the images that need no registry. */
export async function startRuntime(node: RealNode, common: Common): Promise<Component> {
  const { directory } = common;
  const files = nodeFiles(directory);
  await Promise.all([files.networks, files.registries, files.staticPods].map((path) => mkdir(path)));
  await Promise.all([
    writeFile(files.containerd, toToml(containerdConfig(files))),
    writeFile(join(files.networks, '10-bridge.conflist'), JSON.stringify(bridgeNetwork)),
    writeFile(files.kubelet, toYaml(kubeletConfig(directory, files))),
  ]);
  const runtime = await startContainerd(node, common);
  await withNodeImages(
    directory,
    node.architecture,
    (from, to) => node.run('tar', '-cf', to, '-C', from, '.'),
    (path) => node.run('ctr', '--namespace', 'k8s.io', 'images', 'import', path),
  );
  return runtime;
}

export const startContainerd = (node: RealNode, common: Common): Promise<Component> =>
  startComponent({
    ...common,
    name: 'containerd',
    args: ['--config', nodeFiles(common.directory).containerd],
    ready: async () => (await node.run('ctr', 'version')) !== '',
  });

export const startKubelet = (node: RealNode, plan: Plan, common: Common): Promise<Component> =>
  startComponent({
    ...common,
    name: 'kubelet',
    args: [
      `--config=${nodeFiles(plan.directory).kubelet}`,
      `--kubeconfig=${plan.kubeconfig('kubelet')}`,
      `--hostname-override=${node.name}`,
      `--node-ip=${nodeAddresses.node}`,
    ],
  });

export async function startProxy(node: RealNode, plan: Plan, common: Common): Promise<Component> {
  const { proxy } = nodeFiles(plan.directory);
  await writeFile(proxy, toYaml(proxyConfig(node.name, plan.kubeconfig('kube-proxy'))));
  return startComponent({ ...common, name: 'kube-proxy', args: [`--config=${proxy}`] });
}

/** Waits until the node is Ready and resolves names. */
export async function nodeServes(node: RealNode, request: Request, signal?: AbortSignal): Promise<void> {
  await waitFor(`node ${node.name} to take pods`, () => takesPods(request, node.name), 90_000, signal);
  const path = '/apis/apps/v1/namespaces/kube-system/deployments/coredns';
  const answers = async () => {
    const deployment = expectSuccess('the DNS server', await request('GET', path));
    return at(deployment, 'status', 'readyReplicas') === 1;
  };
  await waitFor('the DNS server to be ready', answers, 90_000, signal);
}
