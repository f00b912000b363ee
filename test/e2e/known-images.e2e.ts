import { expect } from 'chai';
import type { Method } from '../../hack/cluster/client.ts';
import { listAt } from '../../hack/cluster/json.ts';
import { at, type JsonObject, object } from '../simulator/json.ts';
import { ours, tolerations } from '../support/objects.ts';
import { leads } from '../support/running.ts';
import { arrangeWebhook, eventuallyTrusted, WEBHOOKS } from '../support/webhook.ts';
import { type PodOptions, pod } from '../support/workloads.ts';
import { AMD, ANSWERS, ARM, BOTH, installKnown, KNOWN, own, publish, publishedOf } from './support/known-images.ts';
import { affinity, eventuallyReleased } from './support/placed.ts';
import { needsMutatingPolicies, worldForAll } from './support/world.ts';

const POLICY = '/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies/archaware-place';
const BINDING = '/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings/archaware-place';
const CRD = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/knownimages.archaware.dev';
const NS = 'shop';
const FLAGS = ['--placement.publish', '--bootstrap.timeout', '2s'];
const NOWHERE = { nodeSelector: { 'example.com/nowhere': '' } };

const DIGEST = `r.example:5000/x/y@sha256:${'a'.repeat(64)}`;
const PUBLISHED = new Map([
  ...ANSWERS,
  [DIGEST, 'amd64,arm64'],
  ['nginx', '386,amd64,arm64,s390x'],
  ['r.example/single:1', '=amd64'],
  ['r.example/stated:1', '!arm64'],
  // What a stranger might write: none of it is the value of a taint.
  ['r.example/odd:1', 'amd64,gpu,ARM64'],
]);
const volume = (reference: string, pullPolicy = 'IfNotPresent') => ({
  volumes: [{ name: 'v', image: { reference, pullPolicy } }],
});
const stated = (value: string) => ({ annotations: { 'archaware.dev/architectures': value } });
const record = (value: string, images: string) => ({
  'archaware.dev/managed': `{"tolerations":[${JSON.stringify(own(value))}],"required":[],"by":"archaware-place","images":"${images}"}`,
});

describe('placed when created, by the policy archaware-place', () => {
  const world = worldForAll({}, needsMutatingPolicies);

  before(async () => {
    await installKnown(world);
    await world.namespace(NS);
    await world.namespace('left-alone');
    await world.namespace('ignored', { 'archaware.dev/ignore': 'true' });
  });
  afterEach(() => world.stopControllers());

  const request = (method: Method, path: string, body?: unknown) => world.cluster.request(method, path, body);

  const publishAll = (flags: Parameters<typeof publish>[2] = {}) =>
    publish(world, PUBLISHED, { excluded: ['left-alone'], ...flags });

  /** What a new pod would have, as `amd64 arm64`; its record after ` | `. */
  async function tried(
    options: PodOptions,
    more: Readonly<Record<string, unknown>> = {},
    namespace = NS,
  ): Promise<string> {
    const made = pod(namespace, 'tried', options);
    const whole = { ...made, metadata: { ...made.metadata, ...more } };
    const { status, body } = await request('POST', `/api/v1/namespaces/${namespace}/pods?dryRun=All`, whole);
    expect(status, JSON.stringify(body).slice(0, 300)).to.equal(201);
    return tolerations(object(body))
      .map((each) => each.replace(/^supported-arch=(\w+):NoSchedule$/, '$1'))
      .join(' ');
  }

  const eventuallyInForce = () =>
    world.eventually('the policy to be in force', async () => (await tried({ images: [BOTH] })) === 'amd64 arm64');

  describe('what it answers', () => {
    before(async () => {
      await publishAll();
      await eventuallyInForce();
    });

    const rows: [
      what: string,
      options: PodOptions,
      wanted: string,
      more?: Readonly<Record<string, unknown>>,
      namespace?: string,
    ][] = [
      ['one image', { images: [BOTH] }, 'amd64 arm64'],
      ['a short name, as it is spelled', { images: ['nginx'] }, '386 amd64 arm64 s390x'],
      ['a digest', { images: [DIGEST] }, 'amd64 arm64'],
      ['what all images have', { images: [BOTH, AMD] }, 'amd64'],
      ['nothing in common', { images: [AMD, ARM] }, ''],
      ['an image that is not published', { images: [BOTH, 'r.example/new:1'] }, ''],
      ['the beginning of a published name', { images: ['r.example/both'] }, ''],
      ['the end of a published name', { images: ['both:1'] }, ''],
      ['an init container', { images: [BOTH], initImages: [AMD] }, 'amd64'],
      ['a sidecar', { images: [BOTH], sidecarImages: [AMD] }, 'amd64'],
      ['an image volume with an index', { images: [BOTH], spec: volume(AMD) }, 'amd64'],
      ['an image volume with a single manifest', { images: [BOTH], spec: volume('r.example/single:1') }, 'amd64 arm64'],
      ['a single manifest in a container', { images: [BOTH, 'r.example/single:1'] }, 'amd64'],
      ['an image volume that is not published', { images: [BOTH], spec: volume('r.example/new:1') }, ''],
      ['an answer of images.overrides', { images: ['r.example/stated:1'] }, 'arm64'],
      ['images that are never pulled', { images: [BOTH], pullPolicy: 'Never' }, ''],
      ['a volume that is never pulled', { images: [BOTH], spec: volume('r.example/new:1', 'Never') }, 'amd64 arm64'],
      ['a published text that is no architecture', { images: ['r.example/odd:1'] }, 'amd64'],
      ['one toleration is there already', { images: [BOTH], tolerations: [own('amd64')] }, 'amd64 arm64'],
      ['a statement', { images: ['r.example/new:1'], ...stated('amd64, ARM64') }, 'amd64 arm64'],
      ['the statement all', { images: [BOTH], ...stated('all') }, ''],
      ['a statement with a mistake', { images: [BOTH], ...stated('x64') }, ''],
      ['a pod to be ignored', { images: [BOTH], labels: { 'archaware.dev/ignore': 'true' } }, ''],
      ['a namespace to be ignored', { images: [BOTH] }, '', {}, 'ignored'],
      ['a namespace that is left alone', { images: [BOTH] }, '', {}, 'left-alone'],
      ['a pod with a node', { images: [BOTH], spec: { nodeName: 'amd64-1' } }, ''],
      ['Windows', { images: [BOTH], spec: { os: { name: 'windows' } } }, ''],
      ['Windows by a selector', { images: [BOTH], spec: { nodeSelector: { 'kubernetes.io/os': 'windows' } } }, ''],
      [
        'an affinity that speaks of the operating system',
        { images: [BOTH], spec: required([{ key: 'kubernetes.io/os', operator: 'In', values: ['windows'] }]) },
        '',
      ],
      [
        'an affinity for a zone',
        { images: [BOTH], spec: required([{ key: 'zone', operator: 'In', values: ['a'] }]) },
        'amd64 arm64',
      ],
      [
        'a pod of a DaemonSet, whose template is served',
        { images: [BOTH] },
        '',
        { ownerReferences: [{ apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'd', uid: 'u', controller: true }] },
      ],
      ['more than 200 containers', { images: Array.from({ length: 201 }, () => BOTH) }, ''],
      [
        'a forged record takes from its author only',
        { images: [AMD], tolerations: [own('arm64')], annotations: record('arm64', AMD.repeat(2)) },
        'amd64',
      ],
      ['a forged record that claims to be done', { images: [AMD], annotations: record('arm64', AMD) }, ''],
    ];
    for (const [what, options, wanted, more, namespace] of rows) {
      it(`${what}: ${wanted === '' ? 'nothing' : wanted}`, async () => {
        expect(await tried(options, more, namespace)).to.equal(wanted);
      });
    }

    it('leaves tolerations that cover the taint already', async () => {
      for (const toleration of [{ operator: 'Exists' }, { key: 'supported-arch', operator: 'Exists' }]) {
        const made = pod(NS, 'tried', { images: [BOTH], tolerations: [toleration] });
        const { body } = await request('POST', `/api/v1/namespaces/${NS}/pods?dryRun=All`, made);
        expect(at(body, 'metadata', 'annotations')).to.equal(undefined);
      }
    });

    it('records what it gave, and keeps the annotations of others', async () => {
      const made = pod(NS, 'tried', { images: [AMD], annotations: { a: 'b' } });
      const { body } = await request('POST', `/api/v1/namespaces/${NS}/pods?dryRun=All`, made);
      expect(at(body, 'metadata', 'annotations')).to.deep.equal({ a: 'b', ...record('amd64', AMD) });
    });

    it('does nothing for another taint, and keeps to architectures.schedulable', async () => {
      await publishAll({ taints: { manage: true, key: 'example.com/arch', effect: 'NoSchedule', nodeSelector: [] } });
      await world.eventually('it to do nothing', async () => (await tried({ images: [BOTH] })) === '');
      await publishAll({ schedulable: ['arm64'] });
      await world.eventually('arm64 alone', async () => (await tried({ images: [BOTH] })) === 'arm64');
      expect(await tried({ images: [AMD] })).to.equal('');
    });
  });

  describe('in a request that others change as well', () => {
    before(async () => {
      await publishAll();
      await world.cluster.apply(JSON.stringify(sidecarPolicy('NARROWER', AMD)));
      await world.cluster.apply(JSON.stringify(sidecarPolicy('UNKNOWN', 'r.example/new:1')));
      await world.cluster.apply(JSON.stringify(sidecarPolicy('APART', ARM)));
      await eventuallyInForce();
    });
    after(async () => {
      for (const what of SIDECARS) {
        await world.cluster.kubectl([
          'delete',
          'mutatingadmissionpolicies,mutatingadmissionpolicybindings',
          `sidecar-${what.toLowerCase()}`,
        ]);
      }
    });

    const rows: [what: string, inject: string, image: string, wanted: string][] = [
      ['a sidecar that runs on less', 'NARROWER', BOTH, 'amd64'],
      ['a sidecar that is not published', 'UNKNOWN', BOTH, ''],
      ['a sidecar that has nothing in common', 'APART', AMD, ''],
    ];
    for (const [what, inject, image, wanted] of rows) {
      it(`${what}: ${wanted === '' ? 'nothing' : wanted}`, async () => {
        await world.eventually('the sidecar', async () => {
          const { body } = await request(
            'POST',
            `/api/v1/namespaces/${NS}/pods?dryRun=All`,
            pod(NS, 'tried', { images: [image], labels: { inject } }),
          );
          return listAt(body, 'spec', 'containers').length === 2;
        });
        expect(await tried({ images: [image], labels: { inject } })).to.equal(wanted);
      });
    }
  });

  describe('with the controller', () => {
    before(async () => {
      await request('DELETE', KNOWN);
    });

    const eventuallyPublished = (image: string, answer: string) =>
      world.eventually(`${image} to be published`, async () => (await publishedOf(world, image)) === answer);
    const leading = async (...flags: readonly string[]) => {
      const controller = await world.run([...FLAGS, ...flags]);
      await world.eventually('it to lead', () => leads(controller));
      return controller;
    };
    const create = async (name: string, ...tags: readonly string[]) => {
      await world.create(pod(NS, name, { images: tags.map((tag) => world.image(tag)), spec: NOWHERE }));
    };
    /** What a pod had at the moment of its creation, before anybody could patch it. */
    const atCreation = async (name: string, ...tags: readonly string[]) => {
      const made = pod(NS, name, { images: tags.map((tag) => world.image(tag)), spec: NOWHERE });
      const { status, body } = await request('POST', `/api/v1/namespaces/${NS}/pods`, made);
      expect(status).to.equal(201);
      return tolerations(object(body));
    };

    it('publishes what it found, places the next pod without a write, and goes on while no replica runs', async () => {
      const controller = await leading();
      await create('first', 'multi', 'amd64');
      await world.eventuallyTolerates(NS, 'first', ours('amd64'));
      await eventuallyPublished(world.image('amd64'), '=amd64');
      expect(await controller.metric('archaware_published_images')).to.equal(2);
      await world.eventually(
        'the policy to know',
        async () => (await tried({ images: [world.image('amd64')] })) === 'amd64',
      );
      expect(await atCreation('second', 'multi', 'amd64')).to.deep.equal(ours('amd64'));
      await world.eventually(
        'the second to be counted',
        async () => (await controller.metric('archaware_pods', { outcome: 'placed' })) === 2,
      );
      expect(at(await world.get('Pod', NS, 'second'), 'metadata', 'generation')).to.equal(1);
      const { stdout } = await world.command(['explain', `${NS}/second`, '-v']);
      expect(stdout).to.include('archaware-place');
      await world.stopControllers();
      expect(await atCreation('third', 'amd64')).to.deep.equal(ours('amd64'));
      expect(await atCreation('unknown', 'arm64')).to.deep.equal([]);
      const again = await leading();
      await world.eventuallyTolerates(NS, 'unknown', ours('arm64'));
      await eventuallyPublished(world.image('amd64'), '=amd64');
      expect(await again.metric('archaware_image_resolutions_total', { result: 'ok' })).to.equal(1);
    });

    it('checks a published tag again by its use', async () => {
      const controller = await leading('--images.cache.tagTtl', '1s');
      await create('moves-1', 'multi');
      await world.eventuallyTolerates(NS, 'moves-1', ours('amd64', 'arm64'));
      await eventuallyPublished(world.image('multi'), 'amd64,arm64');
      const before = await controller.metric('archaware_resolver_cache_total', { result: 'revalidated' });
      await world.eventually('it to be asked about again', async () => {
        await request('DELETE', `/api/v1/namespaces/${NS}/pods/moves-2?gracePeriodSeconds=0`);
        await create('moves-2', 'multi');
        return (
          ((await controller.metric('archaware_resolver_cache_total', { result: 'revalidated' })) ?? 0) > (before ?? 0)
        );
      });
    });

    it('goes together with the webhook in the mode both, which adds the affinity', async () => {
      const webhook = await arrangeWebhook(world);
      const controller = await leading('--placement.mode', 'both', ...webhook.flags);
      await eventuallyTrusted(world);
      await create('both-1', 'multi');
      await eventuallyPublished(world.image('multi'), 'amd64,arm64');
      await world.eventually(
        'the policy to know',
        async () => (await tried({ images: [world.image('multi')] })) !== '',
      );
      for (const [name, tags, architectures] of [
        ['both-2', ['multi'], ['amd64', 'arm64']],
        ['both-3', ['multi', 'arm64'], ['arm64']],
      ] as const) {
        await create(name, ...tags);
        const placed = await world.eventuallyTolerates(NS, name, ours(...architectures));
        const pod = await eventuallyReleased(world, NS, name);
        expect(JSON.stringify(affinity(pod) ?? ''), JSON.stringify(placed)).to.include(JSON.stringify(architectures));
      }
      expect(await controller.metric('archaware_admission_reviews_total', { outcome: 'error' })).to.be.oneOf([
        0,
        undefined,
      ]);
      await world.stopControllers();
      await request('DELETE', WEBHOOKS);
    });

    it('says in status what is published, and that it is left over where nothing should be; clean takes it back', async () => {
      await leading();
      await create('counted', 'amd64');
      await eventuallyPublished(world.image('amd64'), '=amd64');
      await world.eventually('status to say it', async () =>
        /published +\d+ images/.test(
          (await world.command(['status', '--kubeconfig', world.cluster.kubeconfig, '--placement.publish'])).stdout,
        ),
      );
      const taints = { input: 'placement: {mode: taints}\n' };
      const left = await world.command(['status', '--kubeconfig', world.cluster.kubeconfig, '--config', '-'], taints);
      expect(left.stdout.replaceAll(/\s+/g, ' ')).to.include(
        'placement.publish is false, and archaware-place still places new pods',
      );
      await world.stopControllers();
      await world.command(['clean', '--yes', '--kubeconfig', world.cluster.kubeconfig]);
      for (const path of [POLICY, BINDING, KNOWN]) expect((await request('GET', path)).status, path).to.equal(404);
      await installKnown(world);
    });
  });

  describe('when something of it is missing', () => {
    before(async () => {
      await publishAll();
      await eventuallyInForce();
    });

    const rows: [what: string, path: string][] = [
      ['the object', KNOWN],
      ['the binding', BINDING],
      ['the policy', POLICY],
      ['the kind', CRD],
    ];
    for (const [what, path] of rows) {
      it(`${what}: new pods are created unchanged, and placed again once it is back`, async () => {
        expect((await request('DELETE', path)).status).to.equal(200);
        await world.eventually('it to do nothing', async () => (await tried({ images: [BOTH] })) === '');
        await installKnown(world);
        await publishAll();
        await eventuallyInForce();
      });
    }

    it('the API server: it places pods again once it is back, without a replica', async () => {
      await world.cluster.stopApiServer();
      await world.cluster.startApiServer();
      await eventuallyInForce();
    });
  });
});

function required(matchExpressions: readonly JsonObject[]) {
  const nodeSelectorTerms = [{ matchExpressions }];
  return { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } } };
}

const SIDECARS = ['NARROWER', 'UNKNOWN', 'APART'];

/** A policy of somebody else that adds a sidecar to pods with a label. */
function sidecarPolicy(inject: string, image: string) {
  const metadata = { name: `sidecar-${inject.toLowerCase()}` };
  const [apiVersion, resourceRules] = [
    'admissionregistration.k8s.io/v1',
    [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
  ];
  const value = `Object.spec.containers{name: 'injected', image: '${image}'}`;
  const expression = `object.spec.containers.exists(c, c.name == 'injected') ? [] :
    [JSONPatch{op: 'add', path: '/spec/containers/-', value: ${value}}]`;
  const policy = {
    ...{ apiVersion, kind: 'MutatingAdmissionPolicy', metadata },
    spec: {
      ...{ failurePolicy: 'Fail', reinvocationPolicy: 'IfNeeded', matchConstraints: { resourceRules } },
      matchConditions: [
        { name: 'labelled', expression: `object.metadata.?labels['inject'].orValue('') == '${inject}'` },
      ],
      mutations: [{ patchType: 'JSONPatch', jsonPatch: { expression } }],
    },
  };
  const binding = { apiVersion, kind: 'MutatingAdmissionPolicyBinding', metadata, spec: { policyName: metadata.name } };
  return { apiVersion: 'v1', kind: 'List', items: [policy, binding] };
}
