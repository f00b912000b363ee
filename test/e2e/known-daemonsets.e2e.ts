import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { hasMutatingPolicies } from '../../hack/cluster/spawn.ts';
import { knownImagesPath } from '../../src/names.ts';
import { knownImages, readAnswers } from '../../src/placement/publish/known-images.ts';
import { settings } from '../placement/objects.ts';
import { at, object } from '../simulator/json.ts';
import { annotation, ours, tolerations } from '../support/objects.ts';
import { arrangeWebhook, eventuallyTrusted } from '../support/webhook.ts';
import { daemonSet, pod, type WorkloadOptions } from '../support/workloads.ts';
import { pathOf } from '../support/world.ts';
import { type LiveWorld, startWorld } from './support/world.ts';

const MANIFEST = new URL('../../manifests/publish.yaml', import.meta.url);
const PATH = knownImagesPath('archaware');
const NS = 'agents';
const RECORD = 'archaware.dev/tolerations';
const AS_US = 'fieldManager=archaware-controller';

const BOTH = 'r.example/both:1';
const AMD = 'r.example/amd:1';
const ARM = 'r.example/arm:1';
const NEW = 'r.example/new:1';
const ANSWERS = new Map([
  [BOTH, 'amd64,arm64'],
  [AMD, 'amd64'],
  [ARM, 'arm64'],
]);

const own = (value: string) => ({ key: 'supported-arch', operator: 'Equal', value, effect: 'NoSchedule' });
const theirs = { key: 'example.com/own', operator: 'Exists' };
const live = { key: 'example.com/arch', operator: 'Equal', value: 'amd64', effect: 'NoSchedule' };
/** A record as the policy writes it. */
const record = (given: readonly object[], past: readonly string[] = []) => ({
  [RECORD]: `{"images":[],${past.length === 0 ? '' : `"past":${JSON.stringify(past)},`}"subject":"","tolerations":${JSON.stringify(given)}}`,
});
const past = (value: string) => `supported-arch=${value}:NoSchedule`;

describe('templates of DaemonSets, placed in their author’s own request', () => {
  let world: LiveWorld;

  before(async function () {
    if (!hasMutatingPolicies()) this.skip();
    world = await startWorld();
    await world.cluster.apply(await readFile(MANIFEST, 'utf8'));
    await world.namespace(NS);
    await publish(true);
  });
  after(() => world?.stop());
  afterEach(() => world.stopControllers());

  const path = pathOf('DaemonSet', NS, 'agent');
  const collection = path.slice(0, path.lastIndexOf('/'));
  const request = (...args: Parameters<LiveWorld['cluster']['request']>) => world.cluster.request(...args);

  /** Publishes as a leader would, and waits until the policy uses it. */
  async function publish(daemonSets: boolean): Promise<void> {
    const metadata = {
      ...{ name: 'known', namespace: 'archaware', labels: { 'app.kubernetes.io/name': 'archaware-controller' } },
    };
    const wanted = knownImages(ANSWERS, settings(), [], daemonSets);
    const whole = { apiVersion: 'archaware.dev/v1', kind: 'KnownImages', metadata, ...wanted };
    await world.eventually('the kind to be served', async () => {
      await request('DELETE', PATH);
      return (await request('POST', PATH.replace(/\/known$/, ''), whole)).status === 201;
    });
    const expected = daemonSets ? ours('amd64', 'arm64').join() : '';
    await world.eventually('the policy to use it', async () => {
      const made = daemonSet(NS, 'tried', { images: [BOTH] });
      return found((await request('POST', `${collection}?dryRun=All`, made)).body).tolerates.join() === expected;
    });
  }

  function found(body: unknown) {
    const tolerates = tolerations(at(body, 'spec', 'template'));
    return { tolerates, recorded: annotation(body, RECORD) };
  }

  const options = (images: readonly string[], more: Partial<WorkloadOptions> = {}): WorkloadOptions => ({
    ...{ images, ...more },
  });

  const created: [what: string, options: WorkloadOptions, wanted: readonly string[]][] = [
    ['one image', options([BOTH]), ours('amd64', 'arm64')],
    ['what all images have', options([BOTH, AMD]), ours('amd64')],
    ['an init container', options([BOTH], { initImages: [ARM] }), ours('arm64')],
    ['nothing in common', options([AMD, ARM]), []],
    ['an image that is not published', options([BOTH, NEW]), []],
    ['an own toleration', options([AMD], { tolerations: [theirs] }), ['example.com/own:', ...ours('amd64')]],
    ['one toleration is there already', options([BOTH], { tolerations: [own('amd64')] }), ours('amd64', 'arm64')],
    ['a template to be ignored', options([BOTH], { labels: { 'archaware.dev/ignore': 'true' } }), []],
    ['a statement', options([NEW], { annotations: { 'archaware.dev/architectures': 'arm64' } }), ours('arm64')],
    ['Windows', options([BOTH], { spec: { os: { name: 'windows' } } }), []],
    ['more than 200 containers', options(Array.from({ length: 201 }, () => BOTH)), []],
  ];
  for (const [what, made, wanted] of created) {
    it(`a new DaemonSet, ${what}: ${wanted.join(' ') || 'nothing'}`, async () => {
      const answer = await request('POST', `${collection}?dryRun=All`, daemonSet(NS, 'tried', made));
      expect(answer.status, JSON.stringify(answer.body).slice(0, 300)).to.equal(201);
      expect(found(answer.body).tolerates).to.deep.equal([...wanted].sort());
    });
  }

  it('records what it gave, and leaves a template that tolerates everything', async () => {
    const tried = async (made: WorkloadOptions) =>
      found((await request('POST', `${collection}?dryRun=All`, daemonSet(NS, 'tried', made))).body).recorded;
    expect(await tried(options([AMD]))).to.equal(record([own('amd64')])[RECORD]);
    expect(await tried(options([AMD], { tolerations: [{ operator: 'Exists' }] }))).to.equal(undefined);
  });

  describe('an update', () => {
    type Template = { readonly image: string; readonly tolerations?: readonly Readonly<Record<string, unknown>>[] };
    type Row = {
      readonly what: string;
      /** The DaemonSet before it, as archaware left it. */
      readonly before: Template & { readonly annotations?: Readonly<Record<string, string>> };
      /** What its author sends: a patch of the image alone, or the whole object without archaware's annotation. */
      readonly update: Template & { readonly isWhole?: boolean };
      readonly wanted: readonly string[];
      readonly recorded?: string | undefined;
    };
    const placed = {
      image: BOTH,
      tolerations: ['amd64', 'arm64'].map(own),
      annotations: record(['amd64', 'arm64'].map(own)),
    };
    const narrow = {
      image: AMD,
      tolerations: [own('amd64')],
      annotations: record([own('amd64')], [past('arm64')]),
    };
    const rows: Row[] = [
      {
        what: 'to an image that runs on less',
        ...{ before: placed, update: { image: AMD }, wanted: ours('amd64') },
        recorded: record([own('amd64')], [past('arm64')])[RECORD],
      },
      {
        what: 'to an image that runs on more',
        ...{ before: narrow, update: { image: BOTH }, wanted: ours('amd64', 'arm64') },
        recorded: record(['amd64', 'arm64'].map(own))[RECORD],
      },
      {
        what: 'to an image that runs elsewhere',
        ...{ before: narrow, update: { image: ARM }, wanted: ours('arm64') },
        recorded: record([own('arm64')], [past('amd64')])[RECORD],
      },
      {
        what: 'of the whole object, to an image that runs on less',
        ...{ before: placed, update: { image: AMD, isWhole: true }, wanted: ours('amd64') },
        recorded: record([own('amd64')], [past('arm64')])[RECORD],
      },
      {
        what: 'of the whole object, to an image that is not published',
        ...{ before: placed, update: { image: NEW, isWhole: true }, wanted: ours('amd64', 'arm64') },
        recorded: placed.annotations[RECORD],
      },
      {
        what: 'of the whole object, with the same image',
        ...{ before: placed, update: { image: BOTH, isWhole: true }, wanted: ours('amd64', 'arm64') },
        recorded: placed.annotations[RECORD],
      },
      {
        what: 'to an image that is not published',
        ...{ before: placed, update: { image: NEW }, wanted: ours('amd64', 'arm64') },
        recorded: placed.annotations[RECORD],
      },
      {
        what: 'as an undo would send it, with a toleration of the past',
        before: narrow,
        update: { image: BOTH, tolerations: ['amd64', 'arm64'].map(own) },
        wanted: ours('amd64', 'arm64'),
        // The controller takes the second one over, because it knows whether a server-side apply set the list.
        recorded: narrow.annotations[RECORD],
      },
      {
        what: 'with a second equal toleration, which is the author’s',
        before: placed,
        update: { image: AMD, tolerations: [own('arm64'), own('amd64'), own('arm64')] },
        wanted: ours('amd64', 'arm64'),
        recorded: record([own('amd64')], [past('arm64')])[RECORD],
      },
      {
        what: 'that leaves a toleration for an earlier taint',
        before: {
          ...{ image: BOTH, tolerations: [live, own('amd64'), own('arm64')] },
          annotations: record([live, own('amd64'), own('arm64')]),
        },
        update: { image: AMD },
        wanted: ['example.com/arch=amd64:NoSchedule', ...ours('amd64')],
        recorded: record([live, own('amd64')], [past('arm64')])[RECORD],
      },
    ];
    for (const { what, before, update, wanted, recorded } of rows) {
      it(`${what}: ${wanted.join(' ')}`, async () => {
        const source = daemonSet(NS, 'agent', options([before.image], { tolerations: before.tolerations ?? [] }));
        const metadata = { ...source.metadata, annotations: before.annotations };
        const made = await request('POST', `${collection}?${AS_US}`, { ...source, metadata });
        expect(made.status, JSON.stringify(made.body).slice(0, 300)).to.equal(201);
        try {
          expect(found(made.body).tolerates, 'before').to.deep.equal(
            tolerations({ spec: { tolerations: before.tolerations } }),
          );
          const next = daemonSet(NS, 'agent', options([update.image], { tolerations: update.tolerations ?? [] }));
          const tolerating = update.tolerations === undefined ? {} : { tolerations: update.tolerations };
          const containers = [{ name: 'main-0', image: update.image }];
          const answer = update.isWhole
            ? await request('PUT', `${path}?dryRun=All`, {
                ...next,
                metadata: {
                  ...next.metadata,
                  resourceVersion: at(object(made.body), 'metadata', 'resourceVersion'),
                },
              })
            : await request('PATCH', `${path}?dryRun=All`, {
                spec: { template: { spec: { containers, ...tolerating } } },
              });
          expect(answer.status, JSON.stringify(answer.body).slice(0, 300)).to.equal(200);
          expect(found(answer.body)).to.deep.equal({ tolerates: [...wanted].sort(), recorded });
        } finally {
          await request('DELETE', path);
        }
      });
    }
  });

  it('does nothing where DaemonSets are not served', async () => {
    await publish(false);
    await publish(true);
  });

  describe('with the controller', () => {
    before(async () => {
      await request('DELETE', PATH);
    });

    const eventuallyPublished = (image: string) =>
      world.eventually(`${image} to be published`, async () => {
        const { status, body } = await request('GET', PATH);
        return status === 200 && readAnswers(object(body)).has(image);
      });
    const state = async () => {
      const body = object(await world.get('DaemonSet', NS, 'rolled'));
      return { ...found(body), generation: at(body, 'metadata', 'generation') };
    };
    const kubectl = async (...args: readonly string[]) => {
      const { code, stdout, stderr } = await world.cluster.kubectl(['-n', NS, ...args]);
      expect(code, stdout + stderr).to.equal(0);
    };
    const eventually = async (generation: number, wanted: readonly string[]) => {
      await world.eventually(`generation ${generation}, complete record`, async () => {
        const now = await state();
        if (now.generation === generation && /"subject":"[0-9a-f]+"/.test(String(now.recorded ?? ''))) return true;
        throw new Error(JSON.stringify(now));
      });
      const { tolerates } = await state();
      expect(tolerates).to.deep.equal([...wanted].sort());
    };

    it('makes no revision of its own, and kubectl rollout undo brings the author’s last one back', async () => {
      await world.run(['--placement.publish', '--bootstrap.timeout', '2s']);
      const spec = { nodeSelector: { 'example.com/nowhere': '' } };
      for (const tag of ['multi', 'amd64']) {
        await world.create(pod(NS, `uses-${tag}`, { images: [world.image(tag)], spec }));
        await eventuallyPublished(world.image(tag));
      }
      await world.eventually('the policy to use it', async () => {
        const made = daemonSet(NS, 'tried', { images: [world.image('amd64')] });
        return found((await request('POST', `${collection}?dryRun=All`, made)).body).tolerates.length === 1;
      });
      await world.create(daemonSet(NS, 'rolled', { images: [world.image('multi')] }));
      await eventually(1, ours('amd64', 'arm64'));
      await kubectl('set', 'image', 'daemonset/rolled', `main-0=${world.image('amd64')}`);
      await eventually(2, ours('amd64'));
      await kubectl('rollout', 'undo', 'daemonset/rolled');
      await eventually(3, ours('amd64', 'arm64'));
      const { body } = await request('GET', pathOf('DaemonSet', NS, 'rolled'));
      expect(JSON.stringify(at(body, 'spec', 'template'))).to.include(world.image('multi'));

      await world.stopControllers();
      await kubectl('set', 'image', 'daemonset/rolled', `main-0=${world.image('amd64')}`);
      expect((await state()).tolerates, 'while no replica runs').to.deep.equal(ours('amd64'));
    });

    it('with the webhook alone, too: archaware-keep restores nothing that it took out', async () => {
      await request('DELETE', PATH);
      await world.remove('DaemonSet', NS, 'rolled');
      const webhook = await arrangeWebhook(world);
      await world.run(['--bootstrap.timeout', '2s', ...webhook.flags]);
      await eventuallyTrusted(world);
      // Looks both images up.
      await world.create(pod(NS, 'hooked', { images: ['multi', 'amd64'].map((tag) => world.image(tag)) }));
      await world.eventuallyTolerates(NS, 'hooked', ours('amd64'));
      await world.create(daemonSet(NS, 'rolled', { images: [world.image('multi')] }));
      await eventually(1, ours('amd64', 'arm64'));
      await kubectl('set', 'image', 'daemonset/rolled', `main-0=${world.image('amd64')}`);
      await eventually(2, ours('amd64'));
      await kubectl('rollout', 'undo', 'daemonset/rolled');
      await eventually(3, ours('amd64', 'arm64'));
    });
  });
});
