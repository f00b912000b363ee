import { expect } from 'chai';
import { type JsonObject, objectAt } from '../../../src/kit/json.ts';
import { readRecord, withRollout } from '../../../src/placement/objects/template-record.ts';
import type { Settings } from '../../../src/placement/settings.ts';
import { requires, term } from '../../placement/affinities.ts';
import { failed, known, policyOf, settings, toleration } from '../../placement/objects.ts';
import { describePlacing } from '../placing.ts';
import { arrangeDaemonSets, asWritten, type DaemonSetGiven, KEY, leftBehind, shown } from './world.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const RESTARTED = { 'kubectl.kubernetes.io/restartedAt': '2026-01-01T00:00:00Z' };
const IGNORE = { 'archaware.dev/ignore': 'true' };

describe('the reconciliation of a DaemonSet', () => {
  describePlacing(KEY, () => {
    const arranged = arrangeDaemonSets();
    const { now, daemonSets } = arranged;
    return { ...arranged, tolerated: () => shown(now()), remove: () => void daemonSets.delete(KEY) };
  });

  it('writes the tolerations of its images, and waits until the watch shows them', async () => {
    const { put, run, show, now, writes, decided, clock, asked } = arrangeDaemonSets();
    put();
    // Its rollout is looked at again and again until it is back.
    expect(await run()).to.deep.equal({ outcome: 'written', againInMs: 15 * SECOND });
    expect(shown(now())).to.equal('arm64');
    expect(now().recorded).to.include('"images":["app"]').and.to.include('"rollout":"awaited 3"');
    expect(decided, 'before a pod shows that the change is let in').to.deep.equal([]);
    await clock.advance(SECOND);
    expect(await run()).to.deep.equal({ outcome: 'unchanged', againInMs: 15 * SECOND });
    show();
    expect(await run()).to.deep.equal({ outcome: 'unchanged', againInMs: undefined });
    expect(writes).to.deep.equal(['tolerate DaemonSet shop/agent']);
    expect(asked, 'the images of an unchanged template').to.have.length(1);
  });

  it('narrows a guess once the images are known', async () => {
    const { put, run, world, now, show } = arrangeDaemonSets();
    world.answers.app = failed(120);
    put();
    await run();
    expect(now().recorded).to.include('"images":[]');
    show();
    world.answers.app = known('linux/arm64');
    expect(await run()).to.include({ outcome: 'written' });
    expect(shown(now())).to.equal('arm64');
  });

  it('keeps what it wrote when the images cannot be looked up any more', async () => {
    const { put, run, world, now, show, writes } = arrangeDaemonSets();
    put();
    await run();
    show();
    const { spec, metadata } = asWritten(now());
    put({ images: ['new'], spec: { ...spec, serviceAccountName: 'other' }, metadata });
    world.answers.new = failed(120);
    expect(await run()).to.deep.equal({ outcome: 'unchanged', againInMs: MINUTE });
    expect([shown(now()), writes.length]).to.deep.equal(['arm64', 1]);
  });

  const again: [what: string, change: DaemonSetGiven, settings: Partial<Settings>, asks: boolean][] = [
    ['an annotation', { metadata: { annotations: { x: 'y' } } }, {}, false],
    ['its template', { templateLabels: { x: 'y' } }, {}, true],
    ['the DaemonSet itself, for another of its name', { uid: 'u2' }, {}, true],
    ['the settings that decide', {}, { schedulable: ['arm64'] }, true],
  ];
  for (const [what, change, changed, asks] of again) {
    it(`${asks ? 'looks its images up again' : 'asks nothing'} after a change of ${what}`, async () => {
      const { put, run, asked, world } = arrangeDaemonSets();
      put({ images: ['app', 'other'] });
      await run();
      asked.length = 0;
      world.settings = settings(changed);
      put({ images: ['app', 'other'], ...change });
      await run();
      expect(asked.length > 0).to.equal(asks);
    });
  }

  it('leaves what an earlier process wrote, without a lookup', async () => {
    const { put, run, asked, writes } = arrangeDaemonSets();
    put(asWritten(await leftBehind()));
    expect(await run()).to.deep.equal({ outcome: 'unchanged', againInMs: undefined });
    expect([asked, writes]).to.deep.equal([[], []]);
  });

  for (const [before, after] of [
    ['linux/amd64', 'linux/amd64,linux/arm64'],
    ['linux/amd64,linux/arm64', 'linux/amd64'],
  ] as const) {
    const [was, is] = [before, after].map((text) => text.replaceAll('linux/', '')) as [string, string];
    it(`gets the platforms of today when its author restarts it: ${was} becomes ${is}`, async () => {
      const { put, run, world, now, show, asked } = arrangeDaemonSets();
      world.answers.app = known(before);
      put();
      await run();
      show();
      world.answers.app = known(after);
      await run();
      expect([shown(now()), asked.length], 'without a change of its author').to.deep.equal([was, 1]);
      const restart = { ...asWritten(now()), templateAnnotations: RESTARTED };
      put(restart);
      expect(await run()).to.include({ outcome: 'written' });
      expect(shown(now())).to.equal(is);

      const later = arrangeDaemonSets();
      later.world.answers.app = known(after);
      later.put(restart);
      expect(await later.run(), 'in a process that starts after the restart').to.include({ outcome: 'written' });
      expect(shown(later.now())).to.equal(is);
    });
  }

  it('leaves a restarted template as it is while its images cannot be looked up, and looks them up again in the next process', async () => {
    const restart = { ...asWritten(await leftBehind()), templateAnnotations: RESTARTED };
    for (let process = 0; process < 2; process++) {
      const { put, run, world, asked, writes } = arrangeDaemonSets();
      world.answers.app = failed(120);
      put(restart);
      expect(await run()).to.include({ outcome: 'unchanged' });
      expect([asked.length, writes]).to.deep.equal([1, []]);
    }
  });

  it('adds the images to a record without them by a write to metadata alone', async () => {
    const left = await leftBehind();
    const recorded = left.recorded ?? '';
    const { put, run, asked, now } = arrangeDaemonSets();
    put(asWritten({ ...left, recorded: JSON.stringify(readRecord(recorded).tolerations) }));
    expect(await run()).to.include({ outcome: 'written' });
    expect([now().recorded, shown(now()), asked]).to.deep.equal([withRollout(recorded, undefined), 'arm64', []]);
  });

  it('uses the pull secrets of the service account only if the template names none', async () => {
    const { put, run, asked, accounts } = arrangeDaemonSets();
    put({ spec: { serviceAccountName: 'agent' } });
    await run();
    put({ uid: 'u2', spec: { imagePullSecrets: [{ name: 'own' }] } });
    await run();
    expect(asked).to.deep.equal(['app of-account', 'app own']);
    expect(accounts).to.deep.equal(['agent']);
  });

  it('asks for no architecture in the mode affinity where its author does, or where its images are a guess', async () => {
    const { put, run, world, writes, clock } = arrangeDaemonSets({ mode: 'affinity' });
    put({ spec: { affinity: requires(term('arch In s390x')) } });
    expect(await run()).to.include({ outcome: 'unchanged' });
    put({ spec: { nodeSelector: { 'kubernetes.io/arch': 'arm64' } } });
    expect(await run()).to.include({ outcome: 'unchanged' });
    world.answers.app = failed(120);
    put({ templateLabels: { changed: 'yes' } });
    await clock.advance(1);
    expect(await run()).to.include({ outcome: 'unchanged' });
    expect(writes).to.deep.equal([]);
  });

  const skipped: [what: string, given: DaemonSetGiven, settings: Partial<Settings>][] = [
    ['with the label archaware.dev/ignore', { labels: IGNORE }, {}],
    ['with that label on its template', { templateLabels: IGNORE }, {}],
    ['that is being deleted', { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }, {}],
    ['where DaemonSets are ignored', {}, { daemonSets: 'ignore' }],
  ];
  for (const [what, given, more] of skipped) {
    it(`leaves a DaemonSet alone ${what}`, async () => {
      const { put, run, writes, asked, decided, controller } = arrangeDaemonSets(more);
      put(given);
      expect(await run()).to.deep.equal({ outcome: 'unchanged' });
      expect([writes, asked, decided]).to.deep.equal([[], [], [KEY]]);
      expect(controller.states.get(KEY)?.decision?.kind).to.equal('skip');
    });
  }

  it('is treated as the policy for its template says', async () => {
    const podSelector = [{ key: 'app', operator: 'in', values: ['agent'] }] as const;
    const policy = policyOf('p', { schedulable: ['amd64'] }, { podSelector });
    const { put, run, now } = arrangeDaemonSets({ policies: [policy] });
    put({ spec: { containers: [] }, templateLabels: { app: 'agent' } });
    await run();
    expect(shown(now())).to.equal('amd64');
  });

  it('decides a DaemonSet that is not ignored any more', async () => {
    const { put, run } = arrangeDaemonSets();
    put({ labels: IGNORE });
    await run();
    put();
    expect(await run()).to.include({ outcome: 'written' });
  });

  it('is a conflict if a webhook takes the tolerations out of the same write', async () => {
    const { put, run, world } = arrangeDaemonSets();
    put();
    const undone = (object: JsonObject) => {
      const template = { metadata: { labels: {} }, spec: { containers: [{ image: 'app' }] } };
      const { annotations: _annotations, ...metadata } = objectAt(object, 'metadata');
      return { ...object, metadata, spec: { template } };
    };
    world.webhook = undone;
    expect(await run()).to.deep.equal({ outcome: 'conflict' });
  });

  it('leaves a template alone for ten minutes after another writer has undone three writes, with an Event', async () => {
    const { put, run, events, controller, writes, clock } = arrangeDaemonSets();
    for (let time = 0; time < 3; time++) {
      put();
      expect(await run()).to.include({ outcome: 'written' });
    }
    put();
    expect(await run()).to.deep.equal({ outcome: 'conflict', againInMs: 10 * MINUTE });
    expect(events.map((event) => event.split(':')[0])).to.deep.equal(['WriteContested']);
    expect([controller.contested(), writes.length]).to.deep.equal([1, 3]);
    await clock.advance(10 * MINUTE);
    expect(await run()).to.include({ outcome: 'written' });
  });

  it('does not say that its images do not run there if another installation adds the same with another key', async () => {
    const left = await leftBehind();
    const { put, run, events } = arrangeDaemonSets();
    const both = [...(left.template.tolerations ?? []), toleration('other=arm64:NoSchedule')];
    const recorded = JSON.stringify({ ...JSON.parse(left.recorded ?? ''), tolerations: both });
    const given = asWritten({ ...left, recorded, template: { ...left.template, tolerations: both } });
    for (let time = 0; time < 4; time++) {
      put(given);
      await run();
    }
    expect(events.join()).to.match(/^WriteContested: another writer added .* for another key or architectures than/);
  });
});
