/** What tests on a real node ask of an installation. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { at, listAt, textAt } from '../../../hack/cluster/json.ts';
import { isGoing, nameOf, taints, tolerations } from '../../support/objects.ts';
import { WEBHOOKS } from '../../support/webhook.ts';
import { pod } from '../../support/workloads.ts';
import { pathOf } from '../../support/world.ts';
import { isReviewed, streamPods } from './pod-stream.ts';
import type { RealWorld } from './real-world.ts';
import type { LiveWorld } from './world.ts';

/** Real containers take longer than what kwok plays, on a machine that others share. */
const DEADLINE_MS = 120_000;

export const eventuallyOn =
  (world: LiveWorld) =>
  <T>(what: string, condition: () => Promise<T | false | undefined>, deadlineMs = DEADLINE_MS): Promise<T> =>
    world.cluster.waitFor(what, condition, deadlineMs);

/** Whether admission answers for a new pod; a dry run creates none. */
export async function reviewsPods(world: LiveWorld, namespace: string, image: string): Promise<boolean> {
  const probe = pod(namespace, 'probe', { images: [image] });
  const answer = await world.cluster.request('POST', `${pathOf('Pod', namespace)}?dryRun=All`, probe);
  return isReviewed(answer.body);
}

/** What the API server's log says of webhooks that it could not ask. */
export async function passedUnreviewed(world: LiveWorld): Promise<string[]> {
  const log = await readFile(join(world.cluster.directory, 'kube-apiserver.log'), 'utf8');
  return log.split('\n').filter((line) => /failing open .*archaware/i.test(line));
}

/** What `clean` may leave. `others`: taints of others. `keepsPods`: pods keep their tolerations, which are harmless. */
type Left = { readonly others?: readonly string[]; readonly keepsPods?: boolean };

/** Throws where there is a taint, a toleration, a gate, a record, or a configuration of admission. */
export async function nothingIsLeft(world: LiveWorld, { others = [], keepsPods = false }: Left = {}): Promise<void> {
  for (const node of await world.list('Node', '')) {
    expect(
      taints(node).filter((taint) => !others.includes(taint)),
      nameOf(node),
    ).to.deep.equal([]);
    expect(JSON.stringify(node), nameOf(node)).not.to.match(/archaware[.]dev|accelerators\//);
  }
  const pods = listAt((await world.cluster.request('GET', '/api/v1/pods')).body, 'items');
  // Its own may still be ending, and tolerate the taint by their own manifest.
  const rest = pods.filter((one) => at(one, 'metadata', 'namespace') !== 'archaware');
  const architectures = new Set(
    (await world.list('Node', '')).map((node) => at(node, 'status', 'nodeInfo', 'architecture')),
  );
  // A pod that does not run on every node keeps its tolerations.
  const isKept = (one: unknown) =>
    keepsPods || tolerations(one).filter((text) => /supported-arch/.test(text)).length < architectures.size;
  // A pod that nobody touches keeps the record of what admission gave it, beside that.
  const ofPod = (one: unknown) =>
    JSON.stringify([at(one, 'metadata'), at(one, 'spec')], (key, value: unknown) =>
      keepsPods && key === 'archaware.dev/managed' ? undefined : value,
    );
  const marked = rest.filter(
    (one) =>
      /archaware[.]dev/.test(ofPod(one)) || (/supported-arch/.test(JSON.stringify(at(one, 'spec'))) && !isKept(one)),
  );
  expect(marked.map((one) => `${textAt(one, 'metadata', 'namespace')}/${nameOf(one)}`)).to.deep.equal([]);
  expect((await world.cluster.request('GET', WEBHOOKS)).status).to.equal(404);
}

/** Restarts the Deployment so often while so many pods a second are created; none may pass without a review. */
export async function restartUnderStream(
  { world, kubectl }: RealWorld,
  { restarts, namespace, image, perSecond }: { restarts: number; namespace: string; image: string; perSecond: number },
): Promise<void> {
  const passed = await passedUnreviewed(world);
  const stream = streamPods(world, namespace, image, perSecond);
  const rollout = (...words: readonly string[]) =>
    kubectl('-n', 'archaware', 'rollout', ...words.slice(0, 1), 'deployment/archaware-controller', ...words.slice(1));
  const restarting = (async () => {
    for (let count = 0; count < restarts; count += 1) {
      await rollout('restart');
      await rollout('status', '--timeout=2m');
    }
    // The next restart begins while a replica of the last one still ends, as in the hands of somebody in a hurry.
    const old = async () => (await world.list('Pod', 'archaware')).filter(isGoing);
    await eventuallyOn(world)('the old replicas to be gone', async () => (await old()).length === 0);
  })();
  await restarting.catch(() => undefined);
  const { created, unreviewed } = await stream.stop();
  await restarting;
  console.log(`        ${restarts} restarts, ${created} pods, ${unreviewed.length} unreviewed`);
  expect((await passedUnreviewed(world)).slice(passed.length)).to.deep.equal([]);
  expect(unreviewed).to.deep.equal([]);
}

/** For a failed test: the nodes, the pods, the Events and the end of the logs. */
export async function whatIsThere(world: LiveWorld): Promise<string> {
  const parts = [
    ['get', 'nodes,pods', '-A', '-o', 'wide'],
    ['get', 'events', '-A', '--sort-by=.lastTimestamp'],
    ['-n', 'archaware', 'logs', '-l', 'app.kubernetes.io/name=archaware-controller', '--tail=20', '--prefix'],
  ];
  const shown = await Promise.all(parts.map((args) => world.cluster.kubectl(args)));
  return shown.map(({ stdout, stderr }) => stdout.split('\n').slice(-60).join('\n') + stderr).join('\n');
}
