import { readdir, readFile } from 'node:fs/promises';
import { missingForNode } from '../../../hack/cluster/node-means.ts';
import { isInstalled } from './programs.ts';

/**
 * For `before`: skips, with the reason printed, where this machine cannot run a real node, or lacks one of the programs. In CI
 * that is a failure, unless ARCHAWARE_WITHOUT_NODE says why a run of CI does without.
 */
export function needsRealNode(context: Mocha.Context, ...programs: readonly string[]): void {
  const missing = [...missingForNode(), ...programs.filter((program) => !isInstalled(program))];
  if (missing.length === 0) return;
  const reason = `no real node on this machine, it lacks: ${missing.join('; ')}`;
  const without = process.env.ARCHAWARE_WITHOUT_NODE ?? '';
  if (process.env.CI !== undefined && without === '') throw new Error(reason);
  console.log(`      ${reason}`);
  context.skip();
}

/** What a node could change on this machine for everybody. */
export interface MachineState {
  readonly mounts: readonly string[];
  readonly links: readonly string[];
  readonly routes: string;
  readonly sysctls: Readonly<Record<string, string>>;
}

/** Those that the kubelet, kube-proxy and container runtimes are known to set. */
const SYSCTLS = [
  'vm/overcommit_memory',
  'vm/panic_on_oom',
  'kernel/panic',
  'kernel/panic_on_oops',
  'kernel/keys/root_maxkeys',
  'kernel/keys/root_maxbytes',
  'net/ipv4/ip_forward',
  'net/ipv4/conf/all/route_localnet',
  'net/bridge/bridge-nf-call-iptables',
  'net/netfilter/nf_conntrack_max',
  'net/netfilter/nf_conntrack_tcp_timeout_established',
];

export async function machineState(): Promise<MachineState> {
  const values = SYSCTLS.map(async (name) => [name, await readFile(`/proc/sys/${name}`, 'utf8').catch(() => '-')]);
  const mounts = (await readFile('/proc/self/mounts', 'utf8')).trim().split('\n');
  return {
    mounts: mounts.map((line) => line.split(' ').slice(1, 3).join(' ')),
    links: await readdir('/sys/class/net'),
    routes: await readFile('/proc/net/route', 'utf8'),
    sysctls: Object.fromEntries(await Promise.all(values)),
  };
}

/** The processes whose command line names the path, or that are in a cgroup of a node: their ids and commands. */
export async function processesOf(path: string, trees: readonly string[]): Promise<string[]> {
  const ids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid);
  const found = await Promise.all(
    ids.map(async (id) => {
      const read = (file: string) => readFile(`/proc/${id}/${file}`, 'utf8').catch(() => '');
      const [command, cgroups, status] = await Promise.all(['cmdline', 'cgroup', 'status'].map(read));
      // A zombie has ended; its entry stays until its parent, the machine's first process, looks.
      if (/^State:\s+[ZX]/m.test(status ?? '')) return [];
      const isOurs = command?.includes(path) || trees.some((tree) => cgroups?.includes(`/${tree}`));
      return isOurs ? [`${id} ${command?.replaceAll('\0', ' ')}`] : [];
    }),
  );
  return found.flat();
}

/** The names of the nodes' cgroups that are there. */
export async function cgroupTrees(): Promise<string[]> {
  const hierarchies = await readdir('/sys/fs/cgroup');
  const found = await Promise.all(hierarchies.map((name) => readdir(`/sys/fs/cgroup/${name}`).catch(() => [])));
  return [...new Set(found.flat().filter((name) => name.startsWith('archaware-node.')))];
}
