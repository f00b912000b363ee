import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { at } from '../../hack/cluster/json.ts';
import { runKubectl } from '../../hack/cluster/kubectl.ts';
import { nodeImages } from '../../hack/cluster/node-images.ts';
import { makeNodePlace, nodeName } from '../../hack/cluster/real-node.ts';
import { waitFor } from '../../hack/cluster/wait.ts';
import { cgroupTrees, type MachineState, machineState, needsRealNode, processesOf } from './support/real-node.ts';

const MAIN = fileURLToPath(new URL('../../hack/cluster/main.ts', import.meta.url));
const DEADLINE_MS = 60_000;

describe('a real node whose parent is killed', function () {
  this.timeout(240_000);
  let directory: string;
  let untouched: MachineState;
  let treesBefore: readonly string[];
  let parent: ChildProcess;

  before(function () {
    needsRealNode(this);
  });
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'archaware-killed-'));
    untouched = await machineState();
    treesBefore = await cgroupTrees();
    parent = await startWithPod(directory);
  });
  afterEach(async () => {
    parent?.kill('SIGKILL');
    await waitFor('the processes to end', async () => (await processesOf(directory, [])).length === 0, DEADLINE_MS);
    await rm(directory, { recursive: true });
  });

  const treesSince = async () => (await cgroupTrees()).filter((tree) => !treesBefore.includes(tree));
  const nothingRuns = (trees: readonly string[]) =>
    waitFor(
      'the processes of the node to end',
      async () => {
        const left = await processesOf(directory, trees);
        if (left.length > 0) throw new Error(left.join('\n'));
        return true;
      },
      DEADLINE_MS,
    );

  it('leaves no process, mount, link, route, sysctl and cgroup', async () => {
    const trees = await treesSince();
    expect(trees).to.have.lengthOf(1);
    expect(await machineState(), 'while it runs').to.deep.equal(untouched);
    parent.kill('SIGKILL');
    await nothingRuns(trees);
    await waitFor('the cgroups to be gone', async () => (await treesSince()).length === 0, DEADLINE_MS);
    expect(await machineState()).to.deep.equal(untouched);
  });

  it('leaves cgroups alone where the process that removes them is killed as well, and the next start removes those', async () => {
    const trees = await treesSince();
    const [holder] = trees.map((tree) => Number(tree.replace(/^.*\./, '')));
    process.kill(holder ?? 0, 'SIGKILL');
    parent.kill('SIGKILL');
    await nothingRuns(trees);
    expect(await machineState()).to.deep.equal(untouched);
    expect(await treesSince()).to.deep.equal(trees);
    const next = await mkdtemp(join(tmpdir(), 'archaware-next-'));
    const place = await makeNodePlace(next);
    expect(await treesSince()).not.to.include.members(trees);
    await place.remove();
    expect(await treesSince()).to.deep.equal([]);
    expect(await processesOf(next, [])).to.deep.equal([]);
    expect(await machineState()).to.deep.equal(untouched);
    await rm(next, { recursive: true });
  });
});

/** Starts a cluster in a process of its own, and runs a pod on its node. */
async function startWithPod(directory: string): Promise<ChildProcess> {
  const parent = spawn(process.execPath, [...process.execArgv, MAIN, 'serve', '--node', 'real'], {
    stdio: 'inherit',
    env: { ...process.env, ARCHAWARE_CLUSTER: directory },
  });
  const ended = once(parent, 'exit').then(() => 'ended' as const);
  const state = join(directory, 'state.json');
  const started = await Promise.race([waitFor('the cluster', async () => existsSync(state), 120_000), ended]);
  if (started === 'ended') throw new Error('the cluster ended');
  const kubeconfig = join(directory, 'cluster', 'admin.kubeconfig');
  const kubectl = async (...args: string[]) => {
    const result = await runKubectl(args, { kubeconfig, cacheDirectory: join(directory, 'cache') });
    if (result.code !== 0) throw new Error(result.stderr);
    return result.stdout;
  };
  const spec = { nodeSelector: { 'kubernetes.io/hostname': nodeName } };
  await kubectl('run', 'pod', `--image=${nodeImages.pod}`, `--overrides=${JSON.stringify({ spec })}`);
  await kubectl('wait', 'pod/pod', '--for=condition=Ready', '--timeout=60s');
  expect(at(JSON.parse(await readFile(state, 'utf8')), 'pid')).to.equal(parent.pid);
  return parent;
}
