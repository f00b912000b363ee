import { expect } from 'chai';
import { createAuthority } from '../../hack/cluster/certificates.ts';
import type { Registry } from '../../hack/cluster/registry.ts';
import { FIXTURES } from '../../testimg/fixtures.ts';
import { startTestRegistry, type TestRegistry } from '../simulator/registry/registry.ts';
import { runs } from '../support/objects.ts';
import type { RunningController } from '../support/running.ts';
import { arrangeWebhook, eventuallyTrusted, type Webhook } from '../support/webhook.ts';
import { patching, startWebhookServer, type WebhookServer } from '../support/webhook-server.ts';
import { type PodOptions, pod } from '../support/workloads.ts';
import { imageAt } from '../support/world.ts';
import { admit, affinity, freshImage, GATE, gates, inSilence, onArch, required } from './support/placed.ts';
import { arrange, base64, type Places } from './support/places.ts';
import { type LiveWorld, startWorld } from './support/world.ts';

const ON_BOTH = { nodeAffinity: required([onArch('amd64', 'arm64')]) };
const ON_ARM = { nodeAffinity: required([onArch('arm64')]) };
/** Nobody is there, and nobody is to be asked. */
const BLOCKED = '10.99.0.1:5000';
const CONFIGURATIONS = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';

function fixture(tag: string) {
  const found = FIXTURES.find((one) => one.tag === tag);
  if (found === undefined) throw new Error(`no fixture ${tag}`);
  return found.build();
}

/** docs/conformance.md: registries and images, in mode affinity: what others test, and what neither of them does. */
describe('images as others test them, on the real control plane', () => {
  let world: LiveWorld;
  let webhook: Webhook;
  let places: Places;
  let controller: RunningController;
  let basic: Registry;
  /** Stores what the real one refuses, and fails on demand. */
  let scripted: TestRegistry;
  /** The host of one whose certificate nobody vouches for. */
  let selfSigned: string;
  let injector: WebhookServer;
  let count = 0;
  const ns = 'shop';

  before(async () => {
    world = await startWorld();
    places = await arrange(world);
    basic = await places.registry({ htpasswd: true });
    scripted = await startTestRegistry();
    injector = await startWebhookServer();
    world.allowInsecure(basic.host, scripted.host);
    webhook = await arrangeWebhook(world);
    const flags = ['--placement.mode', 'affinity', '--leaderElection.leaseDuration', '3s'];
    const quick = [
      '--images.fallbackAfter',
      '6s',
      '--images.cache.failureTtl',
      '1s',
      '--images.cache.alwaysTagTtl',
      '1s',
    ];
    const self = await places.front({ authority: createAuthority('nobody knows it') });
    world.allowInsecure(self.host);
    selfSigned = self.host;
    const policies = [{ name: 'quick', namespaces: ['falling-back'], unresolvable: 'fallback', fallback: ['arm64'] }];
    controller = await world.run([
      ...[...webhook.flags, ...flags, ...quick],
      ...[
        '--registries.timeout',
        '2s',
        '--registries.addresses.deny',
        '10.99.0.0/16',
        '--policies',
        JSON.stringify(policies),
      ],
    ]);
    await eventuallyTrusted(world);
    await world.namespace(ns);
  });
  after(async () => {
    await world?.stop();
    await Promise.all([places?.remove(), scripted?.stop(), injector?.stop()]);
  });

  const released = (name: string, namespace = ns) =>
    world.eventually(`the gate of ${name} to go`, async () => {
      const found = await world.get('Pod', namespace, name);
      return gates(found).length === 0 && found;
    });
  /** Creates a pod whose image is not known, and returns what it requires when it is released. */
  async function requires(image: string, options: Partial<PodOptions> = {}): Promise<unknown> {
    const name = `pod-${++count}`;
    expect(gates(await admit(world, pod(ns, name, { images: [image], ...options })))).to.deep.equal([GATE]);
    return affinity(await released(name));
  }

  it('a pull secret with a pattern of hosts is used', async () => {
    const { username, password } = basic.account;
    const auths = { [basic.host.replace('127.0.0.1', '127.*.0.*')]: { auth: base64(`${username}:${password}`) } };
    await world.create({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'by-pattern', namespace: ns },
      type: 'kubernetes.io/dockerconfigjson',
      data: { '.dockerconfigjson': base64(JSON.stringify({ auths })) },
    });
    expect(await requires(imageAt(basic.host, 'arm64'), { pullSecrets: ['by-pattern'] })).to.deep.equal(ON_ARM);
  });

  it('a registry with a self-signed certificate is asked if registries.insecure names it', async () => {
    expect(await requires(imageAt(selfSigned, 'arm64'))).to.deep.equal(ON_ARM);
  });

  const names: readonly [what: string, name: (image: string, digest: string) => string][] = [
    ['a port and a tag', (image) => `${image}:multi`],
    ['a port and a digest', (image, digest) => `${image}@${digest}`],
    ['a tag and a digest (the digest counts)', (image, digest) => `${image}:no-such-tag@${digest}`],
  ];
  for (const [what, name] of names) {
    it(`an image with ${what} is found`, async () => {
      const repository = `names-${++count}`;
      // What is known of a digest would answer under any name.
      const digest = scripted.put(repository, 'multi', ['amd64', 'arm64'], { note: repository });
      expect(await requires(name(`${scripted.host}/${repository}`, digest))).to.deep.equal(ON_BOTH);
    });
  }

  it('a known tag is not looked up again, except with imagePullPolicy: Always', async () => {
    scripted.put('policies', 'kept', ['amd64', 'arm64']);
    scripted.put('policies', 'always', ['amd64', 'arm64']);
    const requests = (tag: string) =>
      scripted.requests().filter(({ path }) => path.endsWith(`/manifests/${tag}`)).length;
    await requires(`${scripted.host}/policies:kept`);
    await requires(`${scripted.host}/policies:always`, { pullPolicy: 'Always' });
    await world.eventually('it to be asked for again', async () => {
      for (const [tag, pullPolicy] of [
        ['kept', 'IfNotPresent'],
        ['always', 'Always'],
      ] as const) {
        const images = [`${scripted.host}/policies:${tag}`];
        await admit(world, pod(ns, `again-${++count}`, { images, pullPolicy }));
      }
      return requests('always') > 1;
    });
    expect(requests('kept')).to.equal(1);
  });

  it('a registry with a denied address is not asked, and its pods are released when images.fallbackAfter is over', async () => {
    expect(await requires(`${BLOCKED}/app:1`)).to.equal(undefined);
    await world.eventuallyEvent(ns, 'ImageUnresolvable', /10\.99\.0\.1.*\(forbidden-address\)/);
  });

  it('pods of an image that cannot be inspected use the fallback', async () => {
    const namespace = await world.namespace('falling-back');
    await world.create(pod(namespace, 'missing', { images: [world.image('nope')] }));
    expect(affinity(await released('missing', namespace))).to.deep.equal(ON_ARM);
  });

  describe('and as neither of them does', () => {
    const shapes: readonly [what: string, tag: string, wanted: unknown][] = [
      ['an entry without a platform, answered by its config', 'unnamed', ON_BOTH],
      [
        'variants, which do not decide',
        'wide',
        { nodeAffinity: required([onArch('386', 'amd64', 'arm', 'arm64', 'ppc64le', 'riscv64', 's390x')]) },
      ],
    ];
    for (const [what, tag, wanted] of shapes) {
      it(`an index with ${what}`, async () => {
        scripted.load('shapes', tag, fixture(tag));
        expect(await requires(`${scripted.host}/shapes:${tag}`)).to.deep.equal(wanted);
      });
    }

    it('an image of schema 1 is named in an Event, and its pods are released when images.fallbackAfter is over', async () => {
      scripted.load('shapes', 'schema1', fixture('schema1'));
      expect(await requires(`${scripted.host}/shapes:schema1`)).to.equal(undefined);
      await world.eventuallyEvent(ns, 'ImageUnresolvable', /schema 1/);
    });

    const withVolume = (tag: string) => {
      const image = { reference: `${scripted.host}/volumes:${tag}`, pullPolicy: 'IfNotPresent' };
      return { spec: { volumes: [{ name: 'data', image }] } };
    };

    it('the image of a volume narrows the set if it is an index', async () => {
      scripted.put('volumes', 'index', ['arm64']);
      expect(await requires(await freshImage(world, 'multi'), withVolume('index'))).to.deep.equal(ON_ARM);
    });

    it('the image of a volume does not narrow the set if it is a single manifest', async () => {
      scripted.put('volumes', 'single', ['arm64'], { single: true });
      expect(await requires(await freshImage(world, 'multi'), withVolume('single'))).to.deep.equal(ON_BOTH);
    });

    it('a registry that answers 429 is not asked for as long as it says, and its pods stay gated', async () => {
      scripted.put('limited', 'one', ['arm64']);
      scripted.put('limited', 'two', ['arm64']);
      scripted.clearRequests();
      scripted.inject({ kind: 'status', status: 429, retryAfter: '2' }, { path: /limited/, times: 1 });
      expect(await requires(`${scripted.host}/limited:one`)).to.deep.equal(ON_ARM);
      expect(await requires(`${scripted.host}/limited:two`)).to.deep.equal(ON_ARM);
      const statuses = scripted
        .requests()
        .filter(({ path }) => path.includes('/limited/manifests/'))
        .map(({ status }) => status);
      expect(statuses).to.deep.equal([429, 200, 200]);
      await world.eventuallyEvent(ns, 'ImageUnresolvable', /\(rate-limited\)/);
    });

    it('a registry that never answers delays only its own pods, and for a limited time', async () => {
      scripted.inject({ kind: 'hang' }, { path: /silent/ });
      const images = [`${scripted.host}/silent:one`];
      await world.create(pod(ns, 'silent', { images }));
      expect(await requires(await freshImage(world, 'arm64'))).to.deep.equal(ON_ARM);
      expect(gates(await world.get('Pod', ns, 'silent'))).to.deep.equal([GATE]);
      expect(affinity(await released('silent'))).to.equal(undefined);
      scripted.clearFaults();
    });

    it('a sidecar that another webhook injects later narrows the affinity', async () => {
      const sidecar = { name: 'mesh', image: world.image('arm64') };
      await requires(sidecar.image);
      const known = await freshImage(world, 'multi');
      await requires(known);
      injector.answer('/inject', () => patching([{ op: 'add', path: '/spec/containers/-', value: sidecar }]));
      const webhooks = [injector.webhook('inject', { namespaceSelector: { matchLabels: { mesh: 'on' } } })];
      const metadata = { name: 'sidecar-injector' };
      const configuration = { apiVersion: 'admissionregistration.k8s.io/v1', kind: 'MutatingWebhookConfiguration' };
      await world.cluster.request('POST', CONFIGURATIONS, { ...configuration, metadata, webhooks });
      const meshed = await world.namespace('meshed', { mesh: 'on' });
      await world.eventually('an injected pod', async () => {
        const found = await admit(world, pod(meshed, `known-${++count}`, { images: [known] }));
        return injector.calls.length > 0 && JSON.stringify(affinity(found)) === JSON.stringify(ON_ARM);
      });
      const unknown = await freshImage(world, 'multi');
      await inSilence(world, async () => {
        const found = await admit(world, pod(meshed, 'unknown', { images: [unknown] }));
        expect(gates(found)).to.deep.equal([GATE]);
      });
      expect(affinity(await released('unknown', meshed))).to.deep.equal(ON_ARM);
    });
  });

  describe('and in the end', () => {
    it('clean right after the installation removes everything, and gated pods run', async () => {
      await inSilence(world, async () => {
        const found = await admit(world, pod(ns, 'last', { images: [world.image('docker-list')] }));
        expect(gates(found)).to.deep.equal([GATE]);
        await controller.stop();
        const { code, stderr } = await world.command(['clean', '--yes']);
        expect(code, stderr).to.equal(0);
      });
      await world.eventually('it to run', async () => runs(await world.get('Pod', ns, 'last')));
      expect((await world.cluster.request('GET', `${CONFIGURATIONS}/archaware-controller`)).status).to.equal(404);
    });
  });
});
