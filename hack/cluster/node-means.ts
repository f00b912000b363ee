import { existsSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { binaries } from './spawn.ts';

/** Returns what this machine lacks for a real node, one reason each; empty if one can be started. */
export function missingForNode(): string[] {
  if (process.platform !== 'linux') return ['Linux'];
  const built = join(binaries(), 'node');
  const reasons: Readonly<Record<string, boolean>> = {
    'the rights of root': process.getuid?.() === 0,
    'an architecture that Kubernetes images are commonly made for (amd64, arm64)': ['x64', 'arm64'].includes(
      process.arch,
    ),
    'cgroup v1 hierarchies that can be written to (the tests know no other)': hasHierarchies(),
    'overlay in /proc/filesystems': readFileSync('/proc/filesystems', 'utf8').includes('\toverlay\n'),
    ...Object.fromEntries(['unshare', 'nsenter', 'setpriv', 'tar'].map((program) => [program, isInstalled(program)])),
    [`${built} (run hack/cluster/build-node.sh)`]: [join(built, '.stamp'), join(built, 'packages', '.stamp')].every(
      existsSync,
    ),
  };
  return Object.entries(reasons).flatMap(([what, isThere]) => (isThere ? [] : [what]));
}

/** The cgroups without which runc and the kubelet do not work. */
const needed = ['memory', 'cpu', 'cpuset', 'devices', 'freezer', 'pids'];

function hasHierarchies(): boolean {
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => line.split(' '))
    .filter((fields) => fields.at(-3) === 'cgroup' && fields[5]?.startsWith('rw'));
  const controllers = new Set(mounts.flatMap((fields) => fields.at(-1)?.split(',') ?? []));
  return needed.every((controller) => controllers.has(controller));
}

const isInstalled = (program: string) =>
  (process.env.PATH ?? '').split(delimiter).some((directory) => existsSync(join(directory, program)));
