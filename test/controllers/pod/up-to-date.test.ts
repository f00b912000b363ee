import { expect } from 'chai';
import { createMemory, createRecords, type ObjectRecord } from '../../../src/controllers/memory.ts';
import { follows, wasLeftAsWritten } from '../../../src/controllers/pod/decision.ts';
import { objectAt } from '../../../src/kit/json.ts';
import { type Decision, standing } from '../../../src/placement/decide.ts';
import { readNamespace } from '../../../src/placement/objects/namespace.ts';
import { type Pod, readPod } from '../../../src/placement/objects/pod.ts';
import type { Settings } from '../../../src/placement/settings.ts';
import { settings } from '../../placement/objects.ts';
import { createHandClock } from '../hand-clock.ts';
import { arrangePod, GATED, KEY } from './world.ts';

/** The record of a pod that was decided so. */
function recordOf(decision: ObjectRecord['decision']): ObjectRecord {
  const record = createRecords().of(KEY, 'u1');
  const memory = createMemory({ canonicalOf: (image) => image }, createHandClock());
  if (decision !== undefined) memory.remember(KEY, record, { subjectKey: '', settings: settings() }, decision);
  return record;
}

const EARLIER = standing(['amd64'], undefined);

describe('the event of a pod', () => {
  it('needs no reconciliation if nothing that decides has changed', async () => {
    const { put, run, show, now, controller } = arrangePod();
    put();
    expect(controller.isUpToDate(KEY, now())).to.equal(false);
    await run();
    show();
    expect(controller.isUpToDate(KEY, now())).to.equal(true);
    expect(controller.isUpToDate(KEY, { ...now(), resourceVersion: '99', generation: 99 })).to.equal(true);
  });

  it('needs one after somebody removed the gate: before Kubernetes 1.33 that leaves the generation', async () => {
    const { put, run, now, controller } = arrangePod();
    put({ spec: { ...GATED, containers: [{ image: 'app' }, { image: 'other' }] } });
    await run();
    expect(controller.isUpToDate(KEY, now()), 'gated').to.equal(true);
    expect(controller.isUpToDate(KEY, { ...now(), gated: undefined }), 'released').to.equal(false);
  });

  const changes: [what: string, change: Partial<Pod>][] = [
    ['another uid', { uid: 'u2' }],
    ['another image', { images: [{ image: 'other', pullPolicy: '' }] }],
    ['a deletion', { deleting: true }],
    ['fewer tolerations', { tolerations: [] }],
    ['another namespace, which is not known', { namespace: 'unknown' }],
  ];
  for (const [what, change] of changes) {
    it(`needs one after ${what}`, async () => {
      const { put, run, now, controller } = arrangePod();
      put();
      await run();
      expect(controller.isUpToDate(KEY, { ...now(), ...change })).to.equal(false);
    });
  }

  it('needs one after other settings, unless the pod is placed and bound', async () => {
    const { put, run, show, now, controller, world } = arrangePod();
    put();
    await run();
    show();
    world.settings = settings({ schedulable: ['arm64'] });
    expect(controller.isUpToDate(KEY, now())).to.equal(false);
    expect(controller.isUpToDate(KEY, { ...now(), nodeName: 'n1' })).to.equal(true);
  });

  const owned: [what: string, kind: string, settings: Partial<Settings>, change: Partial<Pod>, isUpToDate: boolean][] =
    [
      ['when a daemon pod is bound', 'DaemonSet', {}, { nodeName: 'n1' }, false],
      ['while its DaemonSet leaves a pod alone', 'DaemonSet', { daemonSets: 'ignore' }, {}, true],
      ['when it loses that DaemonSet', 'DaemonSet', { daemonSets: 'ignore' }, { owner: undefined }, false],
    ];
  for (const [what, kind, given, change, isUpToDate] of owned) {
    it(`needs ${isUpToDate ? 'none' : 'one'} ${what}`, async () => {
      const { put, run, show, now, controller } = arrangePod(given);
      put({ metadata: { ownerReferences: [{ kind, name: 'o', uid: 'o', controller: true }] } });
      await run();
      show();
      expect(controller.isUpToDate(KEY, { ...now(), ...change })).to.equal(isUpToDate);
    });
  }

  it('needs none if it shows the write under way', async () => {
    const { put, run, controller, world } = arrangePod();
    put();
    const seen: boolean[] = [];
    world.webhook = (object) => {
      const shown = readPod({ ...object, metadata: { ...objectAt(object, 'metadata'), generation: 3 } });
      for (const pod of [shown, { ...shown, tolerations: [] }, { ...shown, phase: 'Failed' }])
        seen.push(controller.isUpToDate(KEY, pod));
      return object;
    };
    await run();
    expect(seen).to.deep.equal([true, false, false]);
  });

  it('needs one if it looks like a write that failed', async () => {
    const [failed, succeeded] = [arrangePod(), arrangePod()];
    failed.world.refusal = { kind: 'conflict' };
    for (const { put, run } of [failed, succeeded]) {
      put();
      await run();
    }
    expect(failed.controller.isUpToDate(KEY, succeeded.now())).to.equal(false);
  });

  it('is no proof of a write if it is older than the answer to that write', async () => {
    const { put, run, now, controller } = arrangePod();
    put();
    await run();
    controller.isUpToDate(KEY, { ...now(), resourceVersion: '1' });
    expect(controller.isUpToDate(KEY, { ...now(), tolerations: [] })).to.equal(false);
  });
});

describe('the pods that follow the architectures of the cluster', () => {
  it('are those whose images say nothing, and those that say all', async () => {
    const { put, run, controller } = arrangePod();
    put();
    await run();
    expect([...controller.followers()]).to.deep.equal([]);
    put({ uid: 'u2', annotations: { 'archaware.dev/architectures': 'all' } });
    await run();
    expect([...controller.followers()]).to.deep.equal([KEY]);
  });

  const cluster: Decision = { ...EARLIER, basis: 'cluster', followsCluster: true };
  const hold: Decision = { kind: 'hold', reason: 'no-common-architecture', images: [] };
  const rows: [given: string, decision: ObjectRecord['decision'], nodeName: string | undefined, expected: boolean][] = [
    ['follows the cluster', cluster, undefined, true],
    ['follows the cluster, and has a node', cluster, 'n1', true],
    ['an earlier process placed', EARLIER, undefined, true],
    ['an earlier process placed, and has a node', EARLIER, 'n1', false],
    ['was placed on its images', { ...cluster, basis: 'images', followsCluster: false }, undefined, false],
    ['is held', hold, undefined, false],
    ['is skipped', { kind: 'skip', reason: 'ignored' }, undefined, false],
    ['was not decided', undefined, undefined, false],
  ];
  for (const [given, decision, nodeName, expected] of rows) {
    it(`${expected ? 'have' : 'do not have'} one that ${given}`, () => {
      const record = recordOf(decision);
      expect(follows(record, readPod({ spec: { nodeName } }))).to.equal(expected);
    });
  }
});

describe('a pod that an earlier process placed', () => {
  const pod = readPod({ metadata: { namespace: 'shop', name: 'web' }, spec: { containers: [{ image: 'app' }] } });
  const namespace = readNamespace({ metadata: { name: 'shop' } });
  const rows: [given: string, decision: Decision | undefined, changed: Partial<Settings>, isLeft: boolean][] = [
    ['stays under equal settings, read again', EARLIER, {}, true],
    ['stays under a policy of another name', EARLIER, { policy: 'other' }, true],
    ['is decided under other schedulable architectures', EARLIER, { schedulable: ['arm64'] }, false],
    ['is decided if its images decided last', { ...EARLIER, basis: 'images' }, {}, false],
    ['is decided if nothing was decided', undefined, {}, false],
  ];
  for (const [given, decision, changed, isLeft] of rows) {
    it(given, () => {
      const record = recordOf(decision);
      expect(wasLeftAsWritten(record, { pod, namespace, settings: settings(changed) })).to.equal(isLeft);
    });
  }
});
