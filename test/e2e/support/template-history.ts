import { expect } from 'chai';
import { at, listAt } from '../../../hack/cluster/json.ts';
import { isObject } from '../../../src/kit/json.ts';
import { IGNORE_LABEL } from '../../../src/names.ts';
import { readDaemonSet } from '../../../src/placement/objects/daemonset.ts';
import { readRecord } from '../../../src/placement/objects/template-record.ts';
import { manifestWithoutDeployment } from '../../support/manifest.ts';
import { annotation, ours, runs, scheduledOn, tolerations, uidOf } from '../../support/objects.ts';
import { daemonSet } from '../../support/workloads.ts';
import { pathOf } from '../../support/world.ts';
import type { LiveWorld } from './world.ts';

const RECORD = 'archaware.dev/tolerations';
const OWN = { key: 'example.com/own', operator: 'Exists' };
const OWN_TEXT = 'example.com/own:';
const AS_US = '?fieldManager=archaware-controller';
const toleration = (value: string) => ({ key: 'supported-arch', operator: 'Equal', value, effect: 'NoSchedule' });

/** What other people's tools do to a template that archaware has written to. */
export function describeTemplateHistory(world: () => LiveWorld): void {
  before(async () => {
    await world().stopControllers();
    await world().run();
  });

  const get = (namespace: string, name = 'agent') => world().get('DaemonSet', namespace, name);
  const read = async (namespace: string, name = 'agent') => {
    const found = await get(namespace, name);
    return readDaemonSet(isObject(found) ? found : {});
  };
  const tolerates = async (namespace: string, name = 'agent') =>
    tolerations(at(await get(namespace, name), 'spec', 'template'));
  const generation = async (namespace: string, name = 'agent') =>
    at(await get(namespace, name), 'metadata', 'generation');
  const uids = async (namespace: string) => (await world().pods(namespace, 'agent')).map(uidOf).sort();

  /** Waits until the template tolerates exactly this, and archaware owns nothing of it. */
  const eventually = (namespace: string, name: string, wanted: readonly string[]) =>
    world().eventually(`${name} to tolerate ${wanted.join(' ')}, and its list to be given back`, async () => {
      const found = (await tolerates(namespace, name)).join(' ');
      const { entry } = await read(namespace, name);
      if (found === [...wanted].sort().join(' ') && entry?.ownsSpec === false) return true;
      throw new Error(`it tolerates ${found}, entry ${JSON.stringify(entry)}`);
    });

  const eventuallyRunsOn = (namespace: string, nodes: readonly string[]) =>
    world().eventually(`agent to run on ${nodes.join(' ')}`, async () => {
      const { rolledOut, desired } = await read(namespace);
      const names = (await world().pods(namespace, 'agent')).filter(runs).map((pod) => scheduledOn(pod) ?? '');
      return rolledOut && desired === nodes.length && names.sort().join() === [...nodes].sort().join();
    });

  async function kubectl(args: readonly string[], object?: unknown): Promise<string> {
    const input = object === undefined ? {} : { input: JSON.stringify(object) };
    const { code, stdout, stderr } = await world().cluster.kubectl([...args], input);
    expect(code, stdout + stderr).to.equal(0);
    return stdout;
  }
  const apply = (object: unknown) => kubectl(['apply', '--server-side', '--field-manager=author', '-f', '-'], object);
  const setImage = (namespace: string, tag: string) =>
    kubectl(['-n', namespace, 'set', 'image', 'daemonset/agent', `main-0=${world().image(tag)}`]);
  const undo = (namespace: string, ...more: readonly string[]) =>
    kubectl(['-n', namespace, 'rollout', 'undo', 'daemonset/agent', ...more]);

  it('is right after kubectl rollout undo, which goes to what archaware had narrowed', async () => {
    const namespace = await world().namespace('undone');
    const revisions = async () =>
      listAt(JSON.parse(await kubectl(['-n', namespace, 'get', 'controllerrevisions', '-o', 'json'])), 'items');
    // Its first revision is its author's template only if the DaemonSet controller sees it before archaware writes.
    const source = daemonSet(namespace, 'agent', { images: [world().image('multi')] });
    await world().create({ ...source, metadata: { ...source.metadata, labels: { [IGNORE_LABEL]: 'true' } } });
    await world().eventually('the first revision', async () => (await revisions()).length > 0);
    await world().patch('DaemonSet', namespace, 'agent', { metadata: { labels: { [IGNORE_LABEL]: null } } });
    const wide = ['amd64-1', 'amd64-2', 'arm64-1'];
    const narrow = ['amd64-1', 'amd64-2'];
    await eventually(namespace, 'agent', ours('amd64', 'arm64'));
    await eventuallyRunsOn(namespace, wide);

    // Right after archaware's own write, an undo would take its tolerations away.
    const first = await generation(namespace);
    await undo(namespace);
    expect(await generation(namespace)).to.equal(first);

    // The usual accident: a release that was built for one architecture.
    await setImage(namespace, 'amd64');
    await eventually(namespace, 'agent', ours('amd64'));
    await eventuallyRunsOn(namespace, narrow);
    const past = async () => readRecord((await read(namespace)).recorded).past.map(({ value }) => value);
    expect(await past()).to.deep.equal(['arm64']);
    for (let time = 0; time < 2; time++) {
      await undo(namespace);
      await eventually(namespace, 'agent', ours('amd64'));
      await eventuallyRunsOn(namespace, narrow);
    }
    expect(await past()).to.deep.equal(['arm64']);

    const authors = (await revisions()).find((item) => {
      const template = at(item, 'data', 'spec', 'template');
      const image = at(listAt(template, 'spec', 'containers')[0], 'image');
      return image === world().image('multi') && tolerations(template).length === 2;
    });
    await undo(namespace, `--to-revision=${at(authors, 'revision')}`);
    await eventually(namespace, 'agent', ours('amd64', 'arm64'));
    await eventuallyRunsOn(namespace, wide);
    expect(readRecord((await read(namespace)).recorded).tolerations).to.have.length(2);
    expect(await past()).to.deep.equal([]);
  });

  it('gets its record back when somebody removes it, and nothing rolls', async () => {
    const namespace = await world().namespace('forgotten');
    await world().create(daemonSet(namespace, 'agent', { images: [world().image('multi')], tolerations: [OWN] }));
    const wanted = [OWN_TEXT, ...ours('amd64', 'arm64')];
    await eventually(namespace, 'agent', wanted);
    await eventuallyRunsOn(namespace, ['amd64-1', 'amd64-2', 'arm64-1']);
    const before = [await generation(namespace), await uids(namespace)];
    const path = pathOf('DaemonSet', namespace, 'agent');
    const forget = { metadata: { annotations: { [RECORD]: null } } };

    // By hand: archaware-keep does not let the record go.
    const byHand = await world().cluster.request('PATCH', path, forget);
    expect(annotation(byHand.body, RECORD)).to.be.a('string');

    // As an earlier version of archaware does, or as on a cluster without archaware-keep.
    const gone = await world().cluster.request('PATCH', path + AS_US, forget);
    expect(annotation(gone.body, RECORD)).to.equal(undefined);
    await world().eventually('the record', async () => readRecord((await read(namespace)).recorded).basis?.subject);
    expect([await generation(namespace), await uids(namespace)]).to.deep.equal(before);
    expect(await tolerates(namespace)).to.deep.equal(wanted.sort());
    await world().patch('DaemonSet', namespace, 'agent', { spec: { template: { spec: { tolerations: [OWN] } } } });
    expect(await tolerates(namespace), 'protected again').to.deep.equal(wanted.sort());
  });

  it('is given back where an earlier version kept its list, and nothing rolls', async () => {
    const namespace = await world().namespace('earlier');
    await world().stopControllers();
    const source = daemonSet(namespace, 'agent', { images: [world().image('multi')], tolerations: [OWN] });
    await apply(source);
    const list = ['amd64', 'arm64'].map(toleration);
    const written = [
      { op: 'replace', path: '/spec/template/spec/tolerations', value: [OWN, ...list] },
      { op: 'add', path: '/metadata/annotations', value: { [RECORD]: JSON.stringify(list) } },
    ];
    await world().cluster.request('PATCH', pathOf('DaemonSet', namespace, 'agent') + AS_US, written);
    expect((await read(namespace)).entry?.ownsSpec).to.equal(true);
    await eventuallyRunsOn(namespace, ['amd64-1', 'amd64-2', 'arm64-1']);
    const before = [await generation(namespace), await uids(namespace)];
    await world().run();
    await eventually(namespace, 'agent', [OWN_TEXT, ...ours('amd64', 'arm64')]);
    await apply(source);
    expect([await generation(namespace), await uids(namespace)]).to.deep.equal(before);
  });

  // The last one, because it removes everything.
  describe('after clean', () => {
    after(async () => {
      // Clean has removed the policies that restore tolerations.
      await world().cluster.apply(await manifestWithoutDeployment());
    });

    it('is its author’s alone, and the table names what is left', async () => {
      const namespace = await world().namespace('cleaned');
      const images = [world().image('multi')];
      await apply(daemonSet(namespace, 'agent', { images, tolerations: [OWN] }));
      await apply(daemonSet(namespace, 'lost', { images, tolerations: [OWN] }));
      const authors = ['amd64', 'arm64'].map(toleration);
      await world().create(daemonSet(namespace, 'authors', { images, tolerations: authors }));
      for (const name of ['agent', 'lost']) await eventually(namespace, name, [OWN_TEXT, ...ours('amd64', 'arm64')]);
      await world().stopControllers();
      const forget = { metadata: { annotations: { [RECORD]: null } } };
      await world().cluster.request('PATCH', pathOf('DaemonSet', namespace, 'lost') + AS_US, forget);
      const { code, stdout, stderr } = await world().command(['clean', '--yes', '--pods', 'keep']);
      expect(code, stdout + stderr).to.equal(0);
      expect(stdout)
        .to.match(/tolerations of DaemonSets, kept +0 +1/)
        .and.match(/DaemonSet +cleaned +authors +tolerates/);
      for (const name of ['agent', 'lost']) {
        const { entry, recorded } = await read(namespace, name);
        expect([await tolerates(namespace, name), recorded, entry]).to.deep.equal([[OWN_TEXT], undefined, undefined]);
      }
      expect(await tolerates(namespace, 'authors')).to.deep.equal(ours('amd64', 'arm64'));
      await apply(daemonSet(namespace, 'agent', { images, tolerations: [OWN] }));
    });
  });
}
