import { expect } from 'chai';
import { createAuthority } from '../../hack/cluster/certificates.ts';
import { at } from '../../hack/cluster/json.ts';
import { CRDS } from '../e2e/support/chart-crds.ts';
import {
  eventuallyNoObjects,
  eventuallyOn,
  isTrusted,
  nothingIsLeft,
  reviewsPods,
  whatIsThere,
} from '../e2e/support/real-checks.ts';
import { applyOverlay, type Own, uninstallOverlay } from '../e2e/support/real-overlay.ts';
import { needsRealWorld, type RealWorld, startRealWorld } from '../e2e/support/real-world.ts';
import type { LiveWorld } from '../e2e/support/world.ts';
import { nameOf, scheduledOn, taints } from '../support/objects.ts';
import { deployment } from '../support/workloads.ts';

const NS = 'shop';
const WEBHOOKS = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/archaware-controller';
const PATH = '/mutate/3b7e41c0a9';
const LABEL = 'accelerators/ncs2';
const DEVICE = 'feature.node.kubernetes.io/usb-ff_03e7_2485.present';
const LABELS = { nodeLabels: { directory: '/etc/archaware-labels' } };

type Row = Own & {
  /** Nodes get archaware's taint. */
  readonly tainted?: true;
  /** New pods are reviewed. */
  readonly reviewed?: true;
  /** A DaemonSet is reviewed. */
  readonly called?: true;
  /** The provider's taint stands on the nodes of the other architecture. */
  readonly provided?: true;
  readonly certManager?: true;
  readonly labels?: true;
};

/** Every overlay, and the components that the documents name, each on top of one that it is for. */
const ROWS: readonly Row[] = [
  { overlay: 'taints', tainted: true },
  { overlay: 'taints', components: ['labels'], config: LABELS, tainted: true, labels: true },
  { overlay: 'taints-1.30', tainted: true, called: true },
  { overlay: 'affinity', reviewed: true, called: true },
  { overlay: 'affinity', components: ['without-taints'], reviewed: true, called: true },
  {
    overlay: 'both',
    components: ['keep', 'evict', 'network-policy', 'alerts'],
    tainted: true,
    reviewed: true,
    called: true,
  },
  { overlay: 'provider-taints', provided: true, called: true },
  { overlay: 'provider-taints', components: ['without-node-taints'], provided: true, called: true },
  {
    overlay: 'provider-taints',
    components: ['webhook-pods'],
    config: { placement: { mode: 'both' } },
    provided: true,
    reviewed: true,
    called: true,
  },
  {
    overlay: 'cert-manager',
    config: { webhook: { certificates: '/etc/archaware-certificates', path: PATH } },
    lines: [
      'patches:',
      '- target: {kind: MutatingWebhookConfiguration}',
      '  patch: |',
      ...[0, 1].map((index) => `    - {op: add, path: /webhooks/${index}/clientConfig/service/path, value: ${PATH}}`),
    ],
    certManager: true,
    tainted: true,
    reviewed: true,
    called: true,
  },
  { overlay: 'labels', labels: true },
];

describe('each overlay on a real node', function () {
  this.timeout(300_000);
  let real: RealWorld;
  let world: LiveWorld;
  let own: string;
  let other: string;
  let theirs: string;

  before(async function () {
    needsRealWorld(this);
    real = await startRealWorld();
    ({ world, own, other } = real);
    theirs = `kubernetes.io/arch=${other}:NoSchedule`;
    await world.cluster.apply(CRDS);
  });
  after(() => real?.stop());
  afterEach(async function () {
    if (this.currentTest?.state === 'failed') console.log(await whatIsThere(world));
  });

  const eventually = <T>(what: string, condition: () => Promise<T | false | undefined>) =>
    eventuallyOn(world)(what, condition);

  for (const row of ROWS) {
    it(`${[row.overlay, ...(row.components ?? [])].join(' + ')} is installed, places pods, and is uninstalled`, async () => {
      if (row.provided) {
        await real.kubectl('taint', 'node', real.fake, theirs);
      }
      await Promise.all([applyOverlay(real, row), row.certManager && standInForCertManager()]);
      if (row.tainted) await real.block('docs/install.md', 'kubectl wait node --all');
      if (row.called) await eventually('every webhook to have a caBundle', () => isTrusted(world));
      await world.namespace(NS);
      if (row.reviewed) {
        await eventually('new pods to be reviewed', () => reviewsPods(world, NS, world.image('index-both')));
      }
      if (row.overlay !== 'labels') await placesPods(row);
      if (row.labels) await setsLabels();
      // A pod of the other architecture may get to no node that runs it once nothing holds it: clean would wait for it.
      await real.kubectl('-n', NS, 'delete', 'deployment', '--all', '--ignore-not-found');
      await world.create(deployment(NS, 'web', { images: [world.image('index-both')] }));
      await real.kubectl('-n', NS, 'rollout', 'status', 'deployment/web', '--timeout=2m');
      await uninstallOverlay(real);
      await eventuallyNoObjects(real);
      await nothingIsLeft(world, { others: row.provided ? [theirs] : [], keepsPods: true });
      if (row.provided) await real.kubectl('taint', 'node', real.fake, `${theirs}-`);
      await real.kubectl('delete', 'namespace', NS);
    });
  }

  /** One pod of each kind: for this machine's architecture, for the other one, and for both. */
  async function placesPods(row: Row): Promise<void> {
    // Images for the other architecture alone are kept off the nodes that the provider does not taint by affinity only.
    const isKept = row.provided !== true || row.reviewed === true;
    const kinds = [`program-${own}`, 'index-both', ...(isKept ? [`index-${other}`] : [])];
    await world.create(...kinds.map((tag) => deployment(NS, tag, { images: [world.image(tag)] })));
    for (const tag of kinds) {
      const found = await eventually(`${tag} to run`, async () => {
        const [one] = await world.pods(NS, tag);
        return at(one, 'status', 'phase') === 'Running' && one;
      });
      if (tag === `program-${own}`) expect(scheduledOn(found), tag).to.equal(real.node.name);
      if (tag === `index-${other}`) expect(scheduledOn(found), tag).to.equal(real.fake);
    }
    if (row.overlay === 'affinity') {
      for (const node of await world.list('Node', '')) expect(taints(node), nameOf(node)).to.deep.equal([]);
    }
  }

  async function setsLabels(): Promise<void> {
    const label = async () => at(await world.node(real.node.name), 'metadata', 'labels', LABEL);
    await world.patch('Node', '', real.node.name, { metadata: { labels: { [DEVICE]: 'true' } } });
    await eventually('the label', async () => (await label()) === 'true');
    await world.patch('Node', '', real.node.name, { metadata: { labels: { [DEVICE]: null } } });
    await eventually('the label to go', async () => (await label()) === undefined);
    await world.patch('Node', '', real.node.name, { metadata: { labels: { [DEVICE]: 'true' } } });
    await eventually('the label', async () => (await label()) === 'true');
  }

  /** What cert-manager and its injector do with the Certificate of the overlay. */
  async function standInForCertManager(): Promise<void> {
    const path = '/apis/cert-manager.io/v1/namespaces/archaware/certificates/archaware-controller';
    const wanted = await eventually('the Certificate', async () => {
      const { status, body } = await world.cluster.request('GET', path);
      return status === 200 && body;
    });
    const authority = createAuthority('cert-manager');
    const [name = ''] = Object(at(wanted, 'spec', 'dnsNames'));
    const { certificate, key } = authority.issue('webhook', [name]);
    const base64 = (text: string) => Buffer.from(text).toString('base64');
    const secret = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: at(wanted, 'spec', 'secretName'), namespace: 'archaware' },
      data: {
        'tls.crt': base64(certificate),
        'tls.key': base64(key),
        'ca.crt': base64(authority.certificate),
      },
    };
    await world.cluster.apply(JSON.stringify(secret));
    await eventually('the injection', async () => {
      const patch = [0, 1].map((index) => ({
        op: 'add',
        path: `/webhooks/${index}/clientConfig/caBundle`,
        value: base64(authority.certificate),
      }));
      return (await world.cluster.request('PATCH', WEBHOOKS, patch)).status === 200;
    });
  }
});
