import { expect } from 'chai';
import type { JsonObject } from '../../../src/kit/json.ts';
import type { Settings } from '../../../src/placement/settings.ts';
import { failed, known, pending, toleration } from '../../placement/objects.ts';
import { describePlacing } from '../placing.ts';
import { arrangePod, GATED, KEY, NEVER, type PodGiven, shown } from './world.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const BOUND = { nodeName: 'n1' };

describe('the reconciliation of a pod', () => {
  describePlacing(KEY, () => {
    const arranged = arrangePod();
    const { now, pods } = arranged;
    return { ...arranged, tolerated: () => shown(now()), remove: () => void pods.delete(KEY) };
  });

  it('writes the tolerations of its images, and waits until the watch shows them', async () => {
    const { put, run, show, now, writes, decided, placed, clock } = arrangePod();
    put();
    await clock.advance(3 * SECOND);
    expect(await run()).to.deep.equal({ outcome: 'written', againInMs: undefined });
    expect(shown(now())).to.equal('arm64');
    expect(placed).to.deep.equal([3]);
    expect(decided).to.deep.equal([KEY]);
    await clock.advance(SECOND);
    expect(await run()).to.deep.equal({ outcome: 'unchanged', againInMs: 29 * SECOND });
    show();
    expect(await run()).to.deep.equal({ outcome: 'unchanged' });
    expect(writes).to.deep.equal(['tolerate shop/web']);
  });

  it('releases a gated pod, and says in its result what was written', async () => {
    const { put, controller, now, writes } = arrangePod({ mode: 'both' });
    put({ spec: GATED });
    const { outcome, detail } = await controller.reconcile(KEY, NEVER);
    expect([outcome, detail]).to.deep.equal(['written', 'tolerates arm64; requires kubernetes.io/arch in (arm64)']);
    expect([shown(now()), writes]).to.deep.equal(['arm64', ['release shop/web']]);
  });

  it('keeps the gate of a pod that asks for an architecture which its index lacks, in a mode with affinity', async () => {
    const { put, run, world, writes, events, now, clock } = arrangePod({ mode: 'affinity' });
    const index = (platforms: string) => Object.assign(known(platforms), { isIndex: true });
    world.answers.app = index('linux/arm64');
    put({ spec: { ...GATED, nodeSelector: { 'kubernetes.io/arch': 's390x' } } });
    expect(await run()).to.include({ outcome: 'held', againInMs: 600_000 });
    expect([writes, events]).to.deep.equal([
      [],
      [
        'NoCommonArchitecture: requires kubernetes.io/arch=s390x by its nodeSelector, which its images do not have: app (linux/arm64)',
      ],
    ]);
    world.answers.app = index('linux/arm64,linux/s390x');
    await clock.advance(600_000);
    expect(await run()).to.include({ outcome: 'written' });
    expect(now().gated).to.equal(undefined);
  });

  it('writes no guess to a pod that was bound meanwhile, but what is known', async () => {
    const { put, run, world, bind, now } = arrangePod();
    world.answers.app = failed(120);
    put();
    bind();
    expect(String(await run().catch((error: unknown) => error))).to.include('rejected our request');
    expect(shown(now())).to.equal('');
    world.answers.app = known('linux/arm64');
    expect(await run()).to.include({ outcome: 'written' });
    expect(shown(now())).to.equal('arm64');
  });

  it('writes an Event for a pod that asks for another architecture than its image has, and decides again after ten minutes', async () => {
    const { put, run, show, now, world, clock, events } = arrangePod();
    world.answers.app = known('linux/amd64');
    put({ spec: { nodeSelector: { 'kubernetes.io/arch': 'arm64' } } });
    expect(await run()).to.deep.equal({ outcome: 'written', againInMs: 10 * MINUTE });
    expect(shown(now())).to.equal('amd64');
    const note = 'requires kubernetes.io/arch=arm64 by its nodeSelector, but its images run on amd64 only';
    expect(events).to.deep.equal([`NoCommonArchitecture: ${note}`]);
    show();
    await clock.advance(MINUTE);
    expect(await run()).to.deep.equal({ outcome: 'unchanged', againInMs: 9 * MINUTE });
    world.answers.app = known('linux/amd64,linux/arm64');
    await clock.advance(9 * MINUTE);
    expect(await run()).to.deep.equal({ outcome: 'written', againInMs: undefined });
    expect(shown(now())).to.equal('amd64,arm64');
    expect(events).to.have.length(1);
  });

  it('looks again at such a pod if an earlier process placed it', async () => {
    const { put, run, show, now, world, clock, events } = arrangePod();
    world.answers.app = known('linux/amd64,linux/arm64');
    const managedFields = [
      { manager: 'archaware-controller', operation: 'Update', fieldsV1: { 'f:spec': { 'f:tolerations': {} } } },
    ];
    const tolerations = [toleration('supported-arch=amd64:NoSchedule')];
    put({ spec: { nodeSelector: { 'kubernetes.io/arch': 'arm64' }, tolerations }, metadata: { managedFields } });
    expect(await run()).to.deep.equal({ outcome: 'unchanged', againInMs: 10 * MINUTE });
    expect(events).to.deep.equal([
      'NoCommonArchitecture: requires kubernetes.io/arch=arm64 by its nodeSelector, but by what archaware wrote to it before, its images run on amd64 only',
    ]);
    await clock.advance(10 * MINUTE);
    expect(await run()).to.deep.equal({ outcome: 'written', againInMs: undefined });
    expect(shown(now())).to.equal('amd64,arm64');
    show();
    expect(await run()).to.deep.equal({ outcome: 'unchanged' });
  });

  it('says in its Event when a pod that waits starts at the latest, the same time at each retry', async () => {
    const { put, run, world, clock, events } = arrangePod();
    put();
    // Just before a full second, so that a few milliseconds would make it the next one.
    await clock.advance(5 * SECOND + 990);
    const first = Math.ceil((clock.wall() + 119_000) / 1000) * 1000;
    for (let seconds = 1; seconds < 120; seconds += 10) {
      world.answers.app = failed(seconds);
      await run();
      await clock.advance(10 * SECOND + 7);
    }
    const time = new Date(first).toISOString().slice(11, 19);
    expect(events).to.deep.equal([
      `ImageUnresolvable: image app could not be resolved (unavailable) at registry.example.com: connection refused; the pod starts by itself at ${time} UTC at the latest`,
    ]);
    world.answers.app = failed(121);
    await run();
    expect(events.slice(1).map((event) => event.split(':')[0])).to.deep.equal(['OpenPlacement']);
  });

  const OTHER_GATE = { schedulingGates: [...GATED.schedulingGates, { name: 'example.com/wait' }] };
  const TWO_IMAGES = { containers: [{ image: 'app' }, { image: 'new' }] };
  const outlooks: readonly (readonly [what: string, given: Partial<Settings>, spec: JsonObject, end: RegExp])[] = [
    ['it waits until a lookup succeeds', { unresolvable: 'wait' }, {}, /; the pod waits until a lookup succeeds \(.*$/],
    ['nothing about a pod that has a node', {}, BOUND, /: connection refused$/],
    ['nothing in the mode observe, which holds no pod', { mode: 'observe' }, {}, /: connection refused$/],
    ['nothing about a pod with a gate of others', { mode: 'both' }, OTHER_GATE, /: connection refused$/],
    ['nothing while another lookup may be the last', {}, TWO_IMAGES, /: connection refused$/],
  ];
  for (const [what, given, spec, end] of outlooks) {
    it(`says in the Event of a pod that waits: ${what}`, async () => {
      const { put, run, world, events } = arrangePod(given, false);
      world.answers.app = failed(5);
      put({ spec });
      await run();
      expect(events).to.have.length(1);
      expect(events[0]).to.match(end);
    });
  }

  it('keeps the gate of a pod that it holds, and says when it decides again', async () => {
    const { put, run, clock, writes } = arrangePod();
    put({ spec: { ...GATED, containers: [{ image: 'app' }, { image: 'other' }] } });
    await run();
    await clock.advance(4 * MINUTE);
    expect(await run()).to.deep.equal({ outcome: 'held', againInMs: 6 * MINUTE });
    expect(writes).to.deep.equal([]);
  });

  const IGNORED = { labels: { 'archaware.dev/ignore': 'true' } };
  const DELETED = { deletionTimestamp: '2026-01-01T00:00:00Z' };
  const skipped: [what: string, given: PodGiven, outcome: string, writes: string[]][] = [
    ['with the label archaware.dev/ignore', { metadata: IGNORED }, 'unchanged', []],
    ['with the label and the gate', { metadata: IGNORED, spec: GATED }, 'written', ['release shop/web']],
    ['that is being deleted', { metadata: DELETED, spec: GATED }, 'unchanged', []],
    ['that has ended', { phase: 'Failed', spec: GATED }, 'unchanged', []],
  ];
  for (const [what, given, outcome, expected] of skipped) {
    it(`leaves a pod alone ${what}: ${outcome}`, async () => {
      const { put, run, writes, decided, asked, now } = arrangePod();
      put(given);
      expect(await run()).to.deep.equal({ outcome });
      expect(writes).to.deep.equal(expected);
      expect(shown(now()).split(' ')[0]).to.equal('');
      expect([decided, asked]).to.deep.equal([[KEY], []]);
      expect(await run()).to.include({ outcome: 'unchanged' });
      expect(writes).to.deep.equal(expected);
    });
  }

  it('tries again to release an ignored pod after a conflict', async () => {
    const { put, run, world, decided } = arrangePod();
    world.refusal = { kind: 'conflict' };
    put({ metadata: IGNORED, spec: GATED });
    expect(await run()).to.deep.equal({ outcome: 'conflict' });
    expect(decided).to.deep.equal([]);
    world.refusal = undefined;
    expect(await run()).to.include({ outcome: 'written' });
  });

  it('is a conflict if another webhook takes the tolerations out of the same write', async () => {
    const { put, run, world, controller } = arrangePod();
    world.webhook = (object) => ({ ...object, spec: { containers: [{ image: 'app' }] } });
    put();
    expect(await run()).to.deep.equal({ outcome: 'conflict' });
    for (let time = 0; time < 3; time++) expect(await run()).to.deep.equal({ outcome: 'conflict' });
    expect(controller.contested()).to.equal(0);
    expect(await run()).to.deep.equal({ outcome: 'conflict', againInMs: 10 * MINUTE });
    expect(controller.contested()).to.equal(1);
  });

  const preferences: [what: string, mode: Settings['mode'], spec: JsonObject, reported: number][] = [
    ['in the mode affinity', 'affinity', GATED, 1],
    ['in the mode taints', 'taints', GATED, 0],
    ['of a bound pod', 'both', BOUND, 0],
  ];
  for (const [what, mode, spec, reported] of preferences) {
    it(`reports an invalid preference ${what}: ${reported} times`, async () => {
      const { put, run, events } = arrangePod({ mode });
      put({ spec, metadata: { labels: { 'archaware.dev/preferred': 'x64!' } } });
      await run();
      expect(events.filter((event) => event.startsWith('ConfigurationRejected'))).to.have.length(reported);
    });
  }

  it('looks up the images of a bound pod in its turn', async () => {
    const { put, run, world, asked, recalled, turns, clock } = arrangePod();
    world.answers.app = pending;
    put({ spec: BOUND });
    expect(await run()).to.include({ outcome: 'waiting' });
    expect([asked, recalled]).to.deep.equal([[], ['app']]);
    await clock.advance(200);
    expect(turns).to.deep.equal([KEY]);
    await run();
    expect(asked).to.deep.equal(['app']);
  });

  it('looks up the images of a bound pod at once if nothing is paced, as in plan, and counts no time to place', async () => {
    const { put, run, asked, placed } = arrangePod({}, false);
    put({ spec: BOUND });
    expect(await run()).to.include({ outcome: 'written' });
    expect([asked, placed]).to.deep.equal([['app'], []]);
  });

  it('adds nothing to a bound pod in the mode affinity, and asks nothing', async () => {
    const { put, run, asked, writes } = arrangePod({ mode: 'affinity' }, false);
    put({ spec: BOUND });
    expect(await run()).to.include({ outcome: 'unchanged' });
    expect([asked, writes]).to.deep.equal([[], []]);
    put({ uid: 'u2', spec: GATED });
    expect(await run()).to.include({ outcome: 'written' });
    expect([asked, writes]).to.deep.equal([['app'], ['release shop/web']]);
  });
});

describe('a pod that an earlier process placed', () => {
  const fieldsV1 = { 'f:spec': { 'f:tolerations': {} } };
  const PLACED = {
    spec: { tolerations: [toleration('supported-arch=arm64:NoSchedule')] },
    metadata: { managedFields: [{ manager: 'archaware-controller', operation: 'Update', fieldsV1 }] },
  };

  it('is left as it is, without a lookup, until something calls for another decision', async () => {
    const { put, run, asked, controller, writes } = arrangePod();
    put(PLACED);
    expect(await run()).to.deep.equal({ outcome: 'unchanged', againInMs: undefined });
    put(PLACED);
    expect(await run()).to.include({ outcome: 'unchanged' });
    expect(asked).to.deep.equal([]);
    controller.invalidate(KEY);
    await run();
    expect([asked, writes]).to.deep.equal([['app'], []]);
  });

  it('is left as it is after another pod of its name was decided', async () => {
    const { put, run, asked } = arrangePod();
    put();
    await run();
    put({ ...PLACED, uid: 'u2', image: 'other' });
    await run();
    expect(asked).to.deep.equal(['app']);
  });

  it('is decided by its images once this process has decided it so', async () => {
    const { put, run, asked, show } = arrangePod();
    put();
    await run();
    show();
    put({ ...PLACED, image: 'other' });
    await run();
    expect(asked).to.deep.equal(['app', 'other']);
  });

  it('is decided again when an architecture joins, unless it is bound', async () => {
    const { put, run, controller } = arrangePod();
    put(PLACED);
    await run();
    expect([...controller.followers()]).to.deep.equal([KEY]);
    put({ ...PLACED, spec: { ...PLACED.spec, ...BOUND } });
    await run();
    expect([...controller.followers()]).to.deep.equal([]);
  });
});
