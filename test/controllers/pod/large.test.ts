import { expect } from 'chai';
import { objectAt } from '../../../src/kit/json.ts';
import { stubOfPod } from '../../../src/placement/objects/large.ts';
import { readPod } from '../../../src/placement/objects/pod.ts';
import { arrangePod } from './world.ts';

const KEY = 'shop/web';

/** A world whose store keeps only stubs of pods. */
function arrangeLarge(given: Parameters<typeof arrangePod>[0] = {}) {
  const all = arrangePod(given, false);
  all.world.kept = (pod) => stubOfPod(pod, (text) => text);
  return all;
}

describe('a pod that is too large to keep', () => {
  it('is read when its turn comes, and gets its tolerations', async () => {
    const { put, run, writes, read, now } = arrangeLarge();
    put();
    expect(await run()).to.include({ outcome: 'written' });
    expect(read).to.deep.equal(['web']);
    expect(writes).to.deep.equal(['tolerate shop/web']);
    expect(now().tolerations).to.deep.equal([
      { key: 'supported-arch', operator: 'Equal', value: 'arm64', effect: 'NoSchedule' },
    ]);
  });

  it('is not read again for an event that changes nothing that decides', async () => {
    const { put, run, show, pods, controller, clock, read } = arrangeLarge();
    put({ spec: { tolerations: [{ operator: 'Exists' }] } });
    expect(await run()).to.include({ outcome: 'unchanged' });
    show();
    await clock.advance(60_000);
    const pod = pods.get(KEY);
    expect(pod && controller.isUpToDate(KEY, pod)).to.equal(true);
    expect(read).to.have.length(1);
  });

  it('is decided again if a label changes, although labels are not kept', async () => {
    const { put, run, show, pods, controller, world } = arrangeLarge();
    put({ spec: { tolerations: [{ operator: 'Exists' }] } });
    await run();
    const kept = world.kept;
    world.kept = (pod) => kept({ ...pod, labels: { app: 'other' } });
    show();
    const pod = pods.get(KEY);
    expect(pod && controller.isUpToDate(KEY, pod)).to.equal(false);
  });

  it('is decided by the policy that its labels choose', async () => {
    const { world } = arrangePod();
    const policy = {
      name: 'only-amd64',
      namespaces: undefined,
      namespaceSelector: [],
      podSelector: [{ key: 'team', operator: 'in' as const, values: ['a'] }],
      settings: { ...world.settings, excludeNamespaces: ['*'] },
    };
    const { put, run, writes } = arrangeLarge({ policies: [policy] });
    put({ metadata: { labels: { team: 'a' } } });
    expect(await run()).to.include({ outcome: 'unchanged' });
    expect(writes).to.deep.equal([]);
  });

  it('does not wait behind large pods that run already', async () => {
    const { put, controller, pods, turns, clock } = arrangeLarge();
    put();
    const one = pods.get(KEY);
    if (one === undefined) throw new Error('no pod');
    const signal = new AbortController().signal;
    const first = controller.reconcile(KEY, signal);
    for (const [name, nodeName] of [
      ['bound1', 'n1'],
      ['bound2', 'n1'],
      ['pending', undefined],
    ] as const) {
      pods.put(`shop/${name}`, { ...one, name, uid: name, nodeName });
      await controller.reconcile(`shop/${name}`, signal);
    }
    await first;
    await clock.advance(1_000);
    expect(turns).to.deep.equal(['shop/pending']);
  });

  it('waits while another large pod is read', async () => {
    const { put, controller, pods, turns, clock } = arrangeLarge();
    put();
    const one = pods.get(KEY);
    if (one === undefined) throw new Error('no pod');
    pods.put('shop/other', { ...one, name: 'other', uid: 'u2' });
    const signal = new AbortController().signal;
    const first = controller.reconcile(KEY, signal);
    expect(await controller.reconcile('shop/other', signal)).to.deep.equal({ outcome: 'waiting', isPostponed: true });
    await first;
    await clock.advance(1_000);
    expect(turns).to.deep.equal(['shop/other']);
  });
});

describe('a large pod that archaware has written to', () => {
  it('is read once more, and then not for an event that changes nothing that decides', async () => {
    const { put, run, show, pods, controller, clock, read } = arrangeLarge();
    put();
    expect(await run()).to.include({ outcome: 'written' });
    show();
    await clock.advance(1_000);
    expect(await run()).to.include({ outcome: 'unchanged' });
    show();
    const pod = pods.get(KEY);
    expect(pod && controller.isUpToDate(KEY, pod)).to.equal(true);
    expect(read).to.have.length(2);
  });

  it('is read once more although the event of the write comes before the answer: it does not show the tolerations', async () => {
    const { put, run, pods, controller, world } = arrangeLarge();
    put();
    const seen: (boolean | undefined)[] = [];
    world.webhook = (object) => {
      const metadata = { ...objectAt(object, 'metadata'), generation: 3 };
      pods.put(KEY, world.kept(readPod({ ...object, metadata })));
      const pod = pods.get(KEY);
      seen.push(pod && controller.isUpToDate(KEY, pod));
      return object;
    };
    expect(await run()).to.include({ outcome: 'written' });
    expect(seen).to.deep.equal([false]);
  });
});
