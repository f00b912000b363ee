import { expect } from 'chai';
import { ApiError } from '../../../src/kube/errors.ts';
import { readNode } from '../../../src/placement/nodes/node.ts';
import { readRecord } from '../../../src/placement/objects/template-record.ts';
import { failed, known } from '../../placement/objects.ts';
import { arrangeDaemonSets, asWritten, KEY, shown } from './world.ts';

const SECOND = 1_000;
const LATE = 5 * 60 * SECOND + 1;
const LOST = { currentNumberScheduled: 0, updatedNumberScheduled: 0, numberAvailable: 0 };
const NOT_READY = { numberAvailable: 0 };

const node = (name: string, taint?: string) =>
  readNode({
    metadata: { name, uid: name },
    spec: taint === undefined ? {} : { taints: [{ key: 'supported-arch', value: taint, effect: 'NoSchedule' }] },
    status: { nodeInfo: { architecture: 'arm64' }, conditions: [{ type: 'Ready', status: 'True' }] },
  });

/** The DaemonSet was written, and after five minutes its status is this. */
async function arrangeStopped(status: Record<string, number>, given: Parameters<typeof arrangeDaemonSets>[0] = {}) {
  const arranged = arrangeDaemonSets(given);
  const { put, run, show, clock, controller, status: become } = arranged;
  put();
  await run();
  show('agent', false);
  become('agent', status);
  controller.stopped();
  await clock.advance(LATE);
  return arranged;
}

describe('a DaemonSet that is not back five minutes after the write', () => {
  it('is reported, and loses what archaware added if its pods are missing, once', async () => {
    const { run, now, show, events, writes, controller, decided } = await arrangeStopped(LOST);
    expect(controller.stopped()).to.deep.equal([KEY]);
    expect(await run()).to.include({ outcome: 'written' });
    expect(shown(now())).to.equal('');
    expect(now().recorded).to.include('"rollout":"back 4"').and.to.include('"tolerations":[]');
    expect(events[0]).to.match(
      /^RolloutStopped: no progress for 5 minutes after archaware added .*: 0 of 1 pods are updated, .* 1 missing/,
    );
    expect(decided, 'before its pods are there again').to.deep.equal([]);
    show();
    const count = writes.length;
    expect(await run()).to.include({ outcome: 'held' });
    expect(decided).to.deep.equal([KEY]);
    expect([writes.length, controller.stopped()]).to.deep.equal([count, [KEY]]);
    expect(events[1]).to.match(/^RolloutStopped: .*taken them back.*kubectl rollout restart/);
  });

  it('loses the node affinity that archaware added, too', async () => {
    const { run, now } = await arrangeStopped(LOST, { mode: 'affinity' });
    expect(now().affinity).not.to.equal(undefined);
    expect(await run()).to.include({ outcome: 'written' });
    expect([now().affinity, readRecord(now().recorded).basis?.rollout]).to.deep.equal([undefined, 'back 4']);
  });

  it('keeps the change if its pods only do not get ready, or if its nodes have the taint already', async () => {
    const unready = await arrangeStopped(NOT_READY);
    expect(await unready.run()).to.include({ outcome: 'held' });
    expect(shown(unready.now())).to.equal('arm64');
    expect(unready.decided, 'it holds up no taint').to.deep.equal([KEY]);

    const tainted = await arrangeStopped(LOST);
    tainted.world.nodes = [node('n1', 'arm64')];
    expect(await tainted.run()).to.include({ outcome: 'held' });
    expect(shown(tainted.now())).to.equal('arm64');
  });

  /** One of two pods is new, and does not get ready. */
  const STUCK = { desiredNumberScheduled: 2, currentNumberScheduled: 2, updatedNumberScheduled: 1, numberAvailable: 1 };

  it('keeps the change when somebody deletes the pod that did not get ready, and goes on once its successor does', async () => {
    const { run, now, status, controller } = await arrangeStopped(STUCK);
    expect(await run()).to.include({ outcome: 'held' });
    status('agent', { currentNumberScheduled: 1, updatedNumberScheduled: 0 });
    expect(await run()).to.include({ outcome: 'held' });
    expect(controller.stopped()).to.deep.equal([KEY]);
    // The DaemonSet controller deletes the next pod a moment later, and that pod takes its time to end.
    status('agent', { ...STUCK, numberAvailable: 2 });
    await run();
    expect([shown(now()), controller.stopped()]).to.deep.equal(['arm64', []]);
  });

  it('loses the change if the pod that did not get ready is not created again within half a minute', async () => {
    const { run, now, status, clock } = await arrangeStopped(STUCK);
    status('agent', { currentNumberScheduled: 1, updatedNumberScheduled: 0 });
    expect(await run()).to.include({ outcome: 'held' });
    await clock.advance(30 * SECOND);
    expect(await run()).to.include({ outcome: 'written' });
    expect(shown(now())).to.equal('');
  });

  /** A guess was written, and lost all pods; then its images are known. */
  async function arrangeGuessed(platforms: string) {
    const arranged = arrangeDaemonSets();
    const { put, run, show, world, now, status } = arranged;
    world.answers.app = failed(120);
    put();
    await run();
    expect(shown(now())).to.equal('amd64,arm64');
    show('agent', false);
    status('agent', LOST);
    world.answers.app = known(platforms);
    expect(await run()).to.include({ outcome: 'written' });
    return arranged;
  }

  it('loses what archaware added although only its record was written meanwhile', async () => {
    const { run, show, clock, controller, now } = await arrangeGuessed('linux/amd64,linux/arm64');
    show('agent', false);
    await clock.advance(LATE);
    expect(controller.stopped()).to.deep.equal([KEY]);
    await run();
    expect(shown(now())).to.equal('');
  });

  it('can lose it although a node has joined, which is not tainted before a pod shows that the change is let in', async () => {
    for (const [systemNamespaces, waits] of [
      [['shop'], true],
      [[], false],
    ] as const) {
      const { put, run, show, controller, status, served } = arrangeDaemonSets({ systemNamespaces });
      put();
      await run();
      show('agent', false);
      status('agent', LOST);
      await run();
      expect(controller.awaitsProof(node('n9'))).to.equal(waits);
      const before = served.length;
      status('agent', { currentNumberScheduled: 1, updatedNumberScheduled: 1 });
      await run();
      expect([controller.awaitsProof(node('n9')), served.length - before]).to.deep.equal([false, waits ? 1 : 0]);
    }
  });

  it('is still waited for by the next leader after a second write to it', async () => {
    const { now } = await arrangeGuessed('linux/arm64');
    const { recorded, generation } = now();
    expect([shown(now()), readRecord(recorded).basis?.rollout]).to.deep.equal(['arm64', `awaited ${generation}`]);
  });

  it('gets its tolerations again when its author changes it', async () => {
    const { run, put, now, show, controller } = await arrangeStopped(LOST);
    await run();
    show();
    const recorded = now().recorded ?? '';
    put({ metadata: { annotations: { 'archaware.dev/tolerations': recorded } }, templateLabels: { restarted: 'yes' } });
    expect(await run()).to.include({ outcome: 'written' });
    expect(shown(now())).to.equal('arm64');
    expect(readRecord(now().recorded).basis?.rollout).to.match(/^awaited /);
    expect(controller.stopped()).to.deep.equal([]);
  });

  it('stays as its author wrote it under the next leader', async () => {
    const first = await arrangeStopped(LOST);
    await first.run();
    const { recorded, generation } = first.now();
    const { put, run, writes, controller } = arrangeDaemonSets();
    put({
      metadata: { generation, annotations: { 'archaware.dev/tolerations': recorded ?? '' } },
      status: { observedGeneration: generation },
    });
    expect(await run()).to.include({ outcome: 'held' });
    expect([writes, controller.stopped()]).to.deep.equal([[], [KEY]]);
  });

  it('stops everything in a system namespace, and nothing when archaware shall leave it alone, as the Event says', async () => {
    const { run, put, show, now, controller, events, served } = await arrangeStopped(LOST, {
      systemNamespaces: ['shop'],
    });
    await run();
    show('agent', false);
    await run();
    expect(events.at(-1)).to.include('label the DaemonSet archaware.dev/ignore=true');
    expect(controller.stopsAll()).to.deep.equal([KEY]);
    expect(controller.holders(node('n2')).map(({ key }) => key)).to.deep.equal([KEY]);
    const { generation } = now();
    const { spec, metadata } = asWritten(now());
    const labels = { 'archaware.dev/ignore': 'true' };
    const status = { observedGeneration: generation, ...LOST };
    put({ spec, labels, metadata: { ...metadata, generation }, status });
    await run();
    expect([controller.stopsAll(), controller.stopped()]).to.deep.equal([[], []]);
    expect(served.length).to.be.greaterThan(0);
    put({ spec, metadata: { ...metadata, generation }, status });
    await run();
    expect(controller.stopsAll()).to.deep.equal([KEY]);
  });
});

describe('a DaemonSet whose write is refused', () => {
  const message = 'daemonsets.apps "agent" is forbidden: policy p denied request';
  const denied = new ApiError(403, { message }, 'patch');

  const rows: [what: string, refusal: Error, namespaces: string[], holds: boolean][] = [
    ['a policy', denied, [], false],
    ['a policy, in a system namespace', denied, ['shop'], true],
    ['a connection that breaks, in a system namespace', new Error('broken'), ['shop'], true],
  ];
  for (const [what, refusal, systemNamespaces, holds] of rows) {
    it(`by ${what} ${holds ? 'keeps its nodes' : 'keeps no node'} untainted`, async () => {
      const { put, run, show, world, controller, served } = arrangeDaemonSets({ systemNamespaces });
      put();
      world.refusal = refusal;
      await run().catch(() => undefined);
      expect(controller.holders(node('n1')).map(({ key }) => key)).to.deep.equal(holds ? [KEY] : []);
      world.refusal = undefined;
      await run();
      expect(served, 'before the watch shows the tolerations').to.have.length(0);
      show();
      await run();
      expect(controller.holders(node('n1'))).to.deep.equal([]);
      expect(served).to.not.have.length(0);
    });
  }

  it('in effect, because a webhook takes the tolerations out of it, keeps nodes untainted in a system namespace', async () => {
    const { put, run, world, controller, show, clock } = arrangeDaemonSets({ systemNamespaces: ['shop'] });
    put();
    const template = { metadata: { labels: {} }, spec: { containers: [{ image: 'app' }] } };
    world.webhook = (object) => ({ ...object, spec: { template } });
    for (let time = 0; time < 5; time++) {
      await run();
      expect(controller.holders(node('n1'))).to.have.length(1);
      show();
      await clock.advance(SECOND);
    }
  });

  const ends: [what: string, end: (arranged: ReturnType<typeof arrangeDaemonSets>) => void][] = [
    ['is ignored', ({ put }) => put({ labels: { 'archaware.dev/ignore': 'true' } })],
    ['is gone', ({ daemonSets }) => daemonSets.delete(KEY)],
  ];
  for (const [what, end] of ends) {
    it(`keeps nodes untainted without advice to ignore it, which would cut it off, until it ${what}`, async () => {
      const arranged = arrangeDaemonSets({ systemNamespaces: ['shop'] });
      const { put, run, world, controller } = arranged;
      put();
      world.refusal = denied;
      await run().catch(() => undefined);
      const [why = '', ...more] = controller.holders(node('n1')).map((holder) => holder.why);
      expect(why).to.match(/allow the account of archaware .*add them to the source .*policy p denied request/);
      expect([why.includes('archaware.dev/ignore'), more]).to.deep.equal([false, []]);
      end(arranged);
      await run();
      expect(controller.holders(node('n1'))).to.deep.equal([]);
    });
  }
});
