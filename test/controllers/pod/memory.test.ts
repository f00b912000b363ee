import { expect } from 'chai';
import { createAnswered } from '../../../src/controllers/answered.ts';
import { createPodMemory } from '../../../src/controllers/pod/memory.ts';
import { createWaiting } from '../../../src/controllers/waiting.ts';
import { createStore } from '../../../src/kube/watch/store.ts';
import { type Decision, standing } from '../../../src/placement/decide.ts';
import { type Pod, readPod } from '../../../src/placement/objects/pod.ts';
import { settings } from '../../placement/objects.ts';
import { createHandClock } from '../hand-clock.ts';

function arrangeMemory() {
  const clock = createHandClock();
  const pods = createStore<Pod>();
  const memory = createPodMemory({
    pods,
    images: { canonicalOf: (image) => image },
    answered: createAnswered(pods, clock),
    waiting: createWaiting(clock),
    clock,
  });
  const show = (name: string, nodeName?: string): Pod => {
    const pod = readPod({ metadata: { namespace: 'shop', name, uid: name, generation: 1 }, spec: { nodeName } });
    pods.put(`shop/${name}`, pod);
    return pod;
  };
  const remember = (pod: Pod, decision: Decision) => memory.remember(`shop/${pod.name}`, pod, decision, settings());
  return { memory, show, remember };
}

/** A decision of its own for each moment, as each reconciliation makes one. */
const decisions: Readonly<Record<string, (moment: number) => Decision>> = {
  'placed pods': () => standing(['amd64', 'arm64'], undefined),
  'pods that wait for an answer': () => ({
    kind: 'wait',
    images: ['app'],
    failed: [],
    againInMs: undefined,
    givesUpInMs: undefined,
  }),
  'pods that wait until a time': (moment) => ({
    kind: 'wait',
    images: ['app'],
    failed: [],
    againInMs: 5_000 - moment,
    givesUpInMs: 9_000 - moment,
  }),
};

describe('the memory of a term', () => {
  for (const [what, decide] of Object.entries(decisions)) {
    it(`has one decision for all equal ${what}`, () => {
      const { memory, show, remember } = arrangeMemory();
      for (const [moment, name] of ['one', 'two'].entries()) remember(show(name), decide(moment));
      const [one, two] = [...memory.states.values()];
      const decided = decide(0);
      // The time is not kept.
      expect(one?.decision).to.deep.equal(
        decided.kind === 'wait' ? { ...decided, againInMs: undefined, givesUpInMs: undefined } : decided,
      );
      expect(one?.decision).to.equal(two?.decision);
      expect([one?.uid, two?.uid]).to.deep.equal(['one', 'two']);
    });
  }

  it('has one reason for all skipped pods', () => {
    const { memory } = arrangeMemory();
    for (const key of ['shop/one', 'shop/two'])
      memory.rememberSkipped(key, { uid: key, read: '1', settings: settings() }, 'terminal');
    const [one, two] = [...memory.states.values()];
    expect(one?.decision).to.deep.equal({ kind: 'skip', reason: 'terminal' });
    expect(one?.decision).to.equal(two?.decision);
  });

  it('knows which pods follow the architectures of the cluster, until they are bound, decided otherwise or gone', () => {
    const { memory, show, remember } = arrangeMemory();
    const follower: Decision = { ...standing(['amd64'], undefined), basis: 'cluster', followsCluster: true };
    const names = ['bound', 'other', 'skipped', 'gone', 'stays'];
    for (const name of names) remember(show(name), standing(['amd64'], undefined));
    remember(show('always', 'node'), follower);
    remember(show('never', 'node'), standing(['amd64'], undefined));
    expect(memory.followers()).to.have.members([...names, 'always'].map((name) => `shop/${name}`));
    show('bound', 'node');
    remember(show('other'), { kind: 'hold', reason: 'no-common-architecture', images: [] });
    memory.rememberSkipped('shop/skipped', { uid: 'skipped', read: '1', settings: settings() }, 'ignored');
    memory.forget('shop/gone');
    memory.invalidate('shop/stays');
    expect(memory.followers()).to.have.members(['shop/stays', 'shop/always']);
  });
});
