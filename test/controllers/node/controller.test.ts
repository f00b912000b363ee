import { expect } from 'chai';
import { createNodeController } from '../../../src/controllers/node/controller.ts';
import { type JsonObject, objectAt } from '../../../src/kit/json.ts';
import { ApiError } from '../../../src/kube/errors.ts';
import { createStore } from '../../../src/kube/watch/collection.ts';
import type { WriteResult } from '../../../src/kube/writer.ts';
import { type LabelRules, NO_RULES, parseRule } from '../../../src/placement/nodes/label-rules.ts';
import { type Node, readNode } from '../../../src/placement/nodes/node.ts';
import { settings } from '../../placement/objects.ts';
import { jsonPatch } from '../../simulator/objects/patch.ts';
import { createHandClock } from '../hand-clock.ts';
import { outcomeOf } from '../outcome.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const NEVER = new AbortController().signal;
const OURS = { key: 'supported-arch', value: 'arm64', effect: 'NoSchedule' };
const FORBIDDEN = new ApiError(403, { reason: 'Forbidden', message: 'cannot patch' }, 'patch');
const DENIED = new ApiError(422, { message: "ValidatingAdmissionPolicy 'a' denied request: no" }, 'patch');
const CONFLICT = { kind: 'conflict' } as const;
/** A rule that sets the label example.com/arm on nodes of arm64. */
const RULES: LabelRules = {
  ...NO_RULES,
  rules: [{ label: 'example.com/arm', conditions: parseRule('kubernetes.io/arch=arm64').conditions }],
};

type Given = { readonly architecture?: string; readonly metadata?: JsonObject; readonly spec?: JsonObject };
type Refusal = Exclude<WriteResult, { kind: 'written' }> | Error;

/** A cluster whose API server has one node `n1`. */
function arrange(given: Given = {}, labels: LabelRules | undefined = undefined) {
  const clock = createHandClock();
  const nodes = createStore<Node>();
  const world = {
    bootstrapped: true,
    /** How the API server answers the next writes, if it does not carry them out. */
    refusals: [] as Refusal[],
    object: undefined as JsonObject | undefined,
    /** A policy denies every write whose patch has this text. */
    denies: undefined as string | undefined,
  };
  const writes: string[] = [];
  const [events, settled]: [string[], string[]] = [[], []];
  let [fetched, refused] = [0, 0];
  const put = ({ architecture = 'arm64', metadata = {}, spec = {} }: Given = given): void => {
    world.object = {
      metadata: { name: 'n1', uid: 'u1', labels: { 'kubernetes.io/arch': architecture }, ...metadata },
      spec,
      status: { nodeInfo: { architecture } },
    };
    nodes.put('n1', readNode(world.object));
  };
  put();
  const controller = createNodeController({
    nodes,
    rules: () => ({ taints: settings().taints, labels }),
    bootstrapped: (name) => name === 'n1' && world.bootstrapped,
    onSettled: (name) => settled.push(name),
    async fetch() {
      fetched += 1;
      return world.object && readNode(world.object);
    },
    async write({ kind, name, action }, patch) {
      writes.push(`${action} ${kind} ${name}`);
      if (world.denies !== undefined && JSON.stringify(patch).includes(world.denies)) throw DENIED;
      const refusal = world.refusals.shift();
      if (refusal instanceof Error) throw refusal;
      if (refusal !== undefined) return refusal;
      const object = jsonPatch(world.object ?? {}, JSON.stringify(patch));
      world.object = object;
      return { kind: 'written', object };
    },
    events: { emit: ({ reason, note }) => events.push(`${reason}: ${note}`) > 0 },
    clock,
    onRefused: () => {
      refused += 1;
    },
  });
  return {
    ...{ clock, world, nodes, controller, writes, events, put },
    /** Shows the node in the watch as it is now. */
    show: () => nodes.put('n1', readNode(world.object ?? {})),
    run: async () => outcomeOf(await controller.reconcile('n1', NEVER)),
    taints: () => objectAt(world.object ?? {}, 'spec').taints,
    labels: () => objectAt(objectAt(world.object ?? {}, 'metadata'), 'labels'),
    fetched: () => fetched,
    refused: () => refused,
  };
}

describe('the reconciliation of a node', () => {
  it('taints it by its architecture, once', async () => {
    const { run, show, taints, writes } = arrange();
    expect(await run()).to.deep.equal({ outcome: 'written' });
    expect(taints()).to.deep.equal([OURS]);
    show();
    expect(await run()).to.deep.equal({ outcome: 'unchanged' });
    expect(writes).to.deep.equal(['taint Node n1']);
  });

  it('waits until the pods are decided', async () => {
    const { run, world, writes } = arrange();
    world.bootstrapped = false;
    expect(await run()).to.deep.equal({ outcome: 'waiting' });
    expect(writes).to.deep.equal([]);
    world.bootstrapped = true;
    expect(await run()).to.deep.equal({ outcome: 'written' });
  });

  const alone: [what: string, given: Given, outcome: string][] = [
    ['that is being deleted', { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }, 'unchanged'],
    ['whose architecture is not known yet', { architecture: '' }, 'waiting'],
  ];
  for (const [what, given, outcome] of alone) {
    it(`leaves a node alone ${what}: ${outcome}`, async () => {
      const { run, writes } = arrange(given);
      expect(await run()).to.deep.equal({ outcome });
      expect(writes).to.deep.equal([]);
    });
  }

  it('leaves a label that another writer set, and reports it again although nothing changes, as Events expire', async () => {
    const { run, show, events, labels } = arrange({ metadata: { labels: { 'example.com/arm': 'no' } } }, RULES);
    expect(await run()).to.deep.equal({ outcome: 'written' });
    expect([labels(), events.length]).to.deep.equal([{ 'example.com/arm': 'no' }, 1]);
    expect(events[0]).to.match(/^LabelConflict: label example\.com\/arm=no was set by another writer/);
    show();
    expect(await run()).to.deep.equal({ outcome: 'unchanged', againInMs: 600_000 });
  });

  it('tries again at once after a conflict, with the node as it is then', async () => {
    const { run, world, fetched, writes, taints } = arrange();
    const other = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' };
    world.object = { ...world.object, spec: { taints: [other] } };
    world.refusals = [CONFLICT];
    expect(await run()).to.deep.equal({ outcome: 'written' });
    expect(taints()).to.deep.equal([other, OURS]);
    expect([fetched(), writes.length]).to.deep.equal([1, 2]);
  });

  it('leaves the fifth conflict to the queue', async () => {
    const { run, world, writes } = arrange();
    world.refusals = [CONFLICT, CONFLICT, CONFLICT, CONFLICT, CONFLICT];
    expect(await run()).to.deep.equal({ outcome: 'conflict' });
    expect(writes).to.have.length(5);
  });

  it('ends if the node is gone at the write, or after a conflict', async () => {
    const { run, world, writes } = arrange();
    world.refusals = [{ kind: 'gone' }];
    expect(await run()).to.deep.equal({ outcome: 'unchanged' });
    world.refusals = [CONFLICT];
    world.object = undefined;
    expect(await run()).to.deep.equal({ outcome: 'unchanged' });
    expect(writes).to.have.length(2);
  });

  it('leaves a node alone for ten minutes after another writer has undone three writes, with an Event', async () => {
    const { put, run, events, controller, writes, clock, fetched } = arrange();
    for (let time = 0; time < 3; time++) {
      put();
      expect(await run()).to.deep.equal({ outcome: 'written' });
    }
    put();
    expect(await run()).to.deep.equal({ outcome: 'conflict', againInMs: 10 * MINUTE });
    expect([controller.contested(), writes.length, fetched()]).to.deep.equal([1, 3, 0]);
    expect(events).to.have.length(1);
    expect(events[0]).to.match(/^WriteContested: .*supported-arch=arm64:NoSchedule.* three times in ten minutes$/);
    await clock.advance(10 * MINUTE);
    expect(await run()).to.deep.equal({ outcome: 'written' });
  });

  it('counts no write that was only recorded, as in plan, as undone', async () => {
    const { run, world } = arrange();
    world.refusals = Array.from({ length: 5 }, () => ({ kind: 'recorded' }) as const);
    for (let time = 0; time < 5; time++) expect(await run()).to.deep.equal({ outcome: 'written' });
  });

  it('forgets a node that is gone', async () => {
    const { run, nodes, controller } = arrange();
    await run();
    expect(controller.states.size).to.equal(1);
    nodes.delete('n1');
    expect(await run()).to.deep.equal({ outcome: 'unchanged' });
    expect(controller.states.size).to.equal(0);
  });

  it('reports a refusal that lasts, and not one that has ended in between', async () => {
    const { run, world, clock, events, refused, put } = arrange();
    const refuse = async (times: number) => {
      for (let time = 0; time < times; time++) {
        world.refusals = [FORBIDDEN];
        expect(await run().catch((reason: unknown) => reason)).to.equal(FORBIDDEN);
        await clock.advance(4 * SECOND);
      }
    };
    await refuse(2);
    put();
    await run();
    put();
    await refuse(1);
    expect(events).to.deep.equal([]);
    await refuse(2);
    expect(events).to.have.length(1);
    expect(events[0]).to.match(/^WriteRefused: .*cannot patch/);
    expect(refused()).to.equal(5);
  });

  it('reports no failed connection as a refusal', async () => {
    const { run, world, clock, events, refused } = arrange();
    for (let time = 0; time < 3; time++) {
      world.refusals = [new Error('connection reset')];
      await run().catch(() => undefined);
      await clock.advance(MINUTE);
    }
    expect([events, refused()]).to.deep.equal([[], 0]);
  });
});

describe('a node, if the API server refuses a label,', () => {
  it('gets its taint without the label', async () => {
    const { controller, world, writes, taints, labels, show } = arrange({}, RULES);
    world.denies = 'example.com/arm';
    const run = () => controller.reconcile('n1', NEVER).catch((error: unknown) => error);
    expect(await run()).to.equal(DENIED);
    expect(writes).to.deep.equal(['taint Node n1', 'taint Node n1']);
    expect(taints()).to.deep.equal([OURS]);
    expect(objectAt(world.object ?? {}, 'metadata').annotations).to.deep.equal({
      'archaware.dev/managed': '{"taints":["supported-arch=arm64:NoSchedule"]}',
    });
    show();
    expect(await run()).to.equal(DENIED);
    expect(writes.slice(2)).to.deep.equal(['label Node n1']);
    world.denies = undefined;
    expect(await run()).to.deep.include({ outcome: 'written' });
    expect(labels()['example.com/arm']).to.equal('true');
  });

  it('is left alone after another writer has undone three writes of the rest', async () => {
    const { put, run, world, writes, events, clock } = arrange({}, RULES);
    world.denies = 'example.com/arm';
    await run().catch(() => undefined);
    const count = writes.length;
    for (let time = 0; time < 60; time++) {
      put();
      await run().catch(() => undefined);
      await clock.advance(5 * SECOND);
    }
    // Each time one write is refused; the others are the taint alone.
    expect(writes.slice(count)).to.have.length.below(60 + 12);
    expect(events.filter((event) => event.startsWith('WriteContested'))).to.have.length(1);
  });
});
