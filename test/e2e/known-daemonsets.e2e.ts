import { expect } from 'chai';
import { at, object } from '../simulator/json.ts';
import { annotation, ours, tolerations } from '../support/objects.ts';
import { runWithWebhook } from '../support/webhook.ts';
import { daemonSet, pod, type WorkloadOptions } from '../support/workloads.ts';
import { pathOf } from '../support/world.ts';
import {
  AMD,
  ANSWERS,
  ARM,
  BOTH,
  installKnown,
  KNOWN,
  NEW,
  own,
  publish,
  publishedOf,
} from './support/known-images.ts';
import { type LiveWorld, needsMutatingPolicies, worldForAll } from './support/world.ts';

const NS = 'agents';
const RECORD = 'archaware.dev/tolerations';
const AS_US = 'fieldManager=archaware-controller';

const theirs = { key: 'example.com/own', operator: 'Exists' };
const live = { key: 'example.com/arch', operator: 'Equal', value: 'amd64', effect: 'NoSchedule' };
/** A record as the policy writes it. */
const record = (given: readonly object[], past: readonly string[] = []) => ({
  [RECORD]: `{"images":[],${past.length === 0 ? '' : `"past":${JSON.stringify(past)},`}"subject":"","tolerations":${JSON.stringify(given)}}`,
});
const past = (value: string) => `supported-arch=${value}:NoSchedule`;

describe('templates of DaemonSets, placed in their author’s own request', () => {
  const world = worldForAll({}, needsMutatingPolicies);

  before(async () => {
    await installKnown(world);
    await world.namespace(NS);
    await served(true);
  });
  afterEach(() => world.stopControllers());

  const path = pathOf('DaemonSet', NS, 'agent');
  const collection = path.slice(0, path.lastIndexOf('/'));
  const request = (...args: Parameters<LiveWorld['cluster']['request']>) => world.cluster.request(...args);
  const tried = (made: WorkloadOptions) => request('POST', `${collection}?dryRun=All`, daemonSet(NS, 'tried', made));

  /** Publishes, and waits until the policy uses it. */
  async function served(daemonSets: boolean): Promise<void> {
    await publish(world, ANSWERS, { isForDaemonSets: daemonSets });
    const expected = daemonSets ? ours('amd64', 'arm64').join() : '';
    await world.eventually('the policy to use it', async () => {
      return found((await tried({ images: [BOTH] })).body).tolerates.join() === expected;
    });
  }

  function found(body: unknown) {
    const tolerates = tolerations(at(body, 'spec', 'template'));
    return { tolerates, recorded: annotation(body, RECORD) };
  }

  const created: [what: string, options: WorkloadOptions, wanted: readonly string[]][] = [
    ['one image', { images: [BOTH] }, ours('amd64', 'arm64')],
    ['what all images have', { images: [BOTH, AMD] }, ours('amd64')],
    ['an init container', { images: [BOTH], initImages: [ARM] }, ours('arm64')],
    ['nothing in common', { images: [AMD, ARM] }, []],
    ['an image that is not published', { images: [BOTH, NEW] }, []],
    ['an own toleration', { images: [AMD], tolerations: [theirs] }, ['example.com/own:', ...ours('amd64')]],
    ['one toleration is there already', { images: [BOTH], tolerations: [own('amd64')] }, ours('amd64', 'arm64')],
    ['a template to be ignored', { images: [BOTH], labels: { 'archaware.dev/ignore': 'true' } }, []],
    ['a statement', { images: [NEW], annotations: { 'archaware.dev/architectures': 'arm64' } }, ours('arm64')],
    ['Windows', { images: [BOTH], spec: { os: { name: 'windows' } } }, []],
    ['more than 200 containers', { images: Array.from({ length: 201 }, () => BOTH) }, []],
  ];
  for (const [what, made, wanted] of created) {
    it(`a new DaemonSet, ${what}: ${wanted.join(' ') || 'nothing'}`, async () => {
      const answer = await tried(made);
      expect(answer.status, JSON.stringify(answer.body).slice(0, 300)).to.equal(201);
      expect(found(answer.body).tolerates).to.deep.equal([...wanted].sort());
    });
  }

  it('records what it gave, and leaves a template that tolerates everything', async () => {
    const given = found((await tried({ images: [AMD] })).body);
    expect(given.recorded).to.equal(record([own('amd64')])[RECORD]);
    const everything = found((await tried({ images: [AMD], tolerations: [{ operator: 'Exists' }] })).body);
    expect(everything.recorded).to.equal(undefined);
  });

  describe('an update', () => {
    const [amd, arm] = [own('amd64'), own('arm64')];
    /** A template as archaware left it, or as its author sends it; `isWhole`: without archaware's annotation, in place of a patch. */
    type Template = { readonly image: string; readonly tolerations?: (typeof amd)[]; readonly isWhole?: true };
    const placed = { image: BOTH, tolerations: [amd, arm], annotations: record([amd, arm]) };
    const narrow = { image: AMD, tolerations: [amd], annotations: record([amd], [past('arm64')]) };
    const earlier = { image: BOTH, tolerations: [live, amd, arm], annotations: record([live, amd, arm]) };
    const rows: [
      what: string,
      before: typeof placed,
      update: Template,
      wanted: (typeof amd)[],
      recorded: typeof placed.annotations,
    ][] = [
      ['to an image that runs on less', placed, { image: AMD }, [amd], narrow.annotations],
      ['to an image that runs on more', narrow, { image: BOTH }, [amd, arm], placed.annotations],
      ['to an image that runs elsewhere', narrow, { image: ARM }, [arm], record([arm], [past('amd64')])],
      [
        'of the whole object, to one that runs on less',
        placed,
        { image: AMD, isWhole: true },
        [amd],
        narrow.annotations,
      ],
      [
        'of the whole object, to one that is not published',
        placed,
        { image: NEW, isWhole: true },
        [amd, arm],
        placed.annotations,
      ],
      [
        'of the whole object, with the same image',
        placed,
        { image: BOTH, isWhole: true },
        [amd, arm],
        placed.annotations,
      ],
      ['to an image that is not published', placed, { image: NEW }, [amd, arm], placed.annotations],
      // The controller takes the toleration of the past over, because it knows whether a server-side apply set the list.
      ['as an undo would send it', narrow, { image: BOTH, tolerations: [amd, arm] }, [amd, arm], narrow.annotations],
      [
        'with a second one, which is the author’s',
        placed,
        { image: AMD, tolerations: [arm, amd, arm] },
        [amd, arm],
        narrow.annotations,
      ],
      ['that leaves an earlier taint’s', earlier, { image: AMD }, [live, amd], record([live, amd], [past('arm64')])],
    ];
    for (const [what, before, update, wanted, recorded] of rows) {
      it(`${what}: ${tolerations({ spec: { tolerations: wanted } }).join(' ')}`, async () => {
        const made = (given: Template) =>
          daemonSet(NS, 'agent', { images: [given.image], tolerations: given.tolerations ?? [] });
        const source = { ...made(before), metadata: { name: 'agent', namespace: NS, annotations: before.annotations } };
        const { status, body } = await request('POST', `${collection}?${AS_US}`, source);
        expect(status, JSON.stringify(body).slice(0, 300)).to.equal(201);
        try {
          const resourceVersion = at(object(body), 'metadata', 'resourceVersion');
          const { isWhole, image, ...tolerating } = update;
          const template = { spec: { containers: [{ name: 'main-0', image }], ...tolerating } };
          const answer = isWhole
            ? await request('PUT', `${path}?dryRun=All`, {
                ...made(update),
                metadata: { name: 'agent', resourceVersion },
              })
            : await request('PATCH', `${path}?dryRun=All`, { spec: { template } });
          expect(answer.status, JSON.stringify(answer.body).slice(0, 300)).to.equal(200);
          const tolerates = tolerations({ spec: { tolerations: wanted } });
          expect(found(answer.body)).to.deep.equal({ tolerates, recorded: recorded[RECORD] });
        } finally {
          await request('DELETE', path);
        }
      });
    }
  });

  it('does nothing where DaemonSets are not served', async () => {
    await served(false);
    await served(true);
  });

  describe('with the controller', () => {
    before(async () => {
      await request('DELETE', KNOWN);
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
        await world.eventually('it to be published', () => publishedOf(world, world.image(tag)));
      }
      await world.eventually('the policy to use it', async () => {
        return found((await tried({ images: [world.image('amd64')] })).body).tolerates.length === 1;
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
      await request('DELETE', KNOWN);
      await world.remove('DaemonSet', NS, 'rolled');
      await runWithWebhook(world, '--bootstrap.timeout', '2s');
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
