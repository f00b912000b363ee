import { expect } from 'chai';
import { ApiError } from '../../../src/kube/errors.ts';
import { readRecord } from '../../../src/placement/objects/template-record.ts';
import { failed, known, pending, toleration } from '../../placement/objects.ts';
import { arrangeDaemonSets, shown } from './world.ts';

const MINUTE = 60_000;
const AMD = toleration('supported-arch=amd64:NoSchedule');
const ARM = toleration('supported-arch=arm64:NoSchedule');
const OURS = { manager: 'archaware-controller', operation: 'Update', fieldsV1: {} };
const LOST = { spec: { tolerations: [AMD, ARM] }, metadata: { managedFields: [OURS] } };

describe('a template with tolerations of archaware and no record', () => {
  it('is recorded again before its images are known, by a write to metadata alone', async () => {
    const { put, run, show, now, writes, asked, world } = arrangeDaemonSets();
    world.answers.app = pending;
    put(LOST);
    const before = now();
    expect(await run()).to.deep.equal({ outcome: 'written' });
    expect([now().template, asked]).to.deep.equal([before.template, []]);
    expect(readRecord(now().recorded)).to.deep.include({ tolerations: [AMD, ARM] });
    show();
    expect(await run()).to.include({ outcome: 'waiting' });
    world.answers.app = known('linux/arm64');
    expect(await run()).to.include({ outcome: 'written' });
    expect(shown(now()), 'once its images are known').to.equal('arm64');
    expect(writes).to.have.length(2);
  });

  it('is not changed by a guess', async () => {
    const { put, run, show, now, world, writes } = arrangeDaemonSets();
    world.answers.app = failed(120);
    put({ ...LOST, spec: { tolerations: [ARM] } });
    await run();
    show();
    expect(await run()).to.include({ outcome: 'unchanged' });
    expect([shown(now()), writes.length]).to.deep.equal(['arm64', 1]);
  });

  const alone: [given: string, more: Parameters<ReturnType<typeof arrangeDaemonSets>['put']>[0]][] = [
    ['archaware never wrote to it', { ...LOST, metadata: { managedFields: [{ ...OURS, manager: 'helm' }] } }],
    ['they have another effect', { ...LOST, spec: { tolerations: [{ ...ARM, effect: 'NoExecute' }] } }],
    ['they are wider', { ...LOST, spec: { tolerations: [{ key: 'supported-arch', operator: 'Exists' }] } }],
    ['they are limited in time', { ...LOST, spec: { tolerations: [{ ...ARM, tolerationSeconds: 5 }] } }],
    ['their value is no architecture', { ...LOST, spec: { tolerations: [{ ...ARM, value: 'zz1' }] } }],
    ['it is ignored', { ...LOST, labels: { 'archaware.dev/ignore': 'true' } }],
  ];
  for (const [given, more] of alone) {
    it(`is its author's where ${given}`, async () => {
      const { put, run, world, writes } = arrangeDaemonSets();
      world.answers.app = pending;
      put(more);
      await run();
      expect(writes).to.deep.equal([]);
    });
  }

  it('is only looked at in the mode observe', async () => {
    const { put, run, writes } = arrangeDaemonSets({ mode: 'observe' });
    put(LOST);
    await run();
    expect(writes).to.deep.equal([]);
  });

  it('is decided without its record where the API server refuses the record, and tried again after ten minutes', async () => {
    const { put, run, world, writes, clock, decided } = arrangeDaemonSets();
    world.answers.app = known('linux/amd64,linux/arm64');
    world.refusal = new ApiError(422, { message: 'ValidatingAdmissionPolicy denied request: no' }, 'patch');
    put(LOST);
    expect(await run()).to.deep.equal({ outcome: 'unchanged', againInMs: 10 * MINUTE });
    expect(await run()).to.deep.equal({ outcome: 'unchanged', againInMs: 10 * MINUTE });
    expect([writes.length, decided.length]).to.deep.equal([1, 2]);
    world.refusal = undefined;
    await clock.advance(11 * MINUTE);
    expect(await run()).to.include({ outcome: 'written' });
  });

  it('is decided again after a conflict', async () => {
    const { put, run, world } = arrangeDaemonSets();
    world.refusal = { kind: 'conflict' };
    put(LOST);
    expect(await run()).to.deep.equal({ outcome: 'conflict' });
  });

  it('is left alone once another writer has removed its record three times', async () => {
    const { put, run, world, writes, events } = arrangeDaemonSets();
    world.answers.app = known('linux/amd64,linux/arm64');
    for (let time = 0; time < 6; time++) {
      put(LOST);
      await run();
    }
    expect(writes).to.have.length(3);
    expect(events).to.have.length(1);
    expect(events[0]).to.include('WriteContested').and.to.include('annotation archaware.dev/tolerations');
  });

  it('has its list given back as well, if an earlier version kept it', async () => {
    const { put, run, show, writes, now, world, clock } = arrangeDaemonSets();
    world.answers.app = known('linux/amd64,linux/arm64');
    put({ ...LOST, metadata: { managedFields: [{ ...OURS, fieldsV1: { 'f:spec': {} } }] } });
    for (let time = 0; time < 4; time++) {
      await run();
      show();
      await clock.advance(2 * MINUTE);
    }
    expect(writes.map((text) => text.split(' ')[0])).to.have.members(['tolerate', 'tolerate', 'give-back']);
    expect(now().entry).to.deep.equal({ index: 0, ownsSpec: false });
  });
});
