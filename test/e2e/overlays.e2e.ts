import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { createAuthority } from '../../hack/cluster/certificates.ts';
import { at, listAt } from '../../hack/cluster/json.ts';
import { hasMutatingPolicies } from '../../hack/cluster/spawn.ts';
import { singleManifests } from '../../hack/manifests/single.ts';
import { nameOf, tolerations } from '../support/objects.ts';
import type { RunningController } from '../support/running.ts';
import { eventuallyTrusted, WEBHOOKS } from '../support/webhook.ts';
import { daemonSet, pod } from '../support/workloads.ts';
import { pathOf } from '../support/world.ts';
import { mayAccount } from './support/account.ts';
import { buildOverlay, type Overlay } from './support/overlay.ts';
import { admit, affinity, freshImage, GATE, gates, ON_ARM } from './support/placed.ts';
import { arrange, type Places } from './support/places.ts';
import { type LiveWorld, startWorld } from './support/world.ts';

const LABEL = 'accelerators/ncs2';
const DEVICE = 'feature.node.kubernetes.io/usb-ff_03e7_2485.present';

/** Rights beyond reading nodes and namespaces, as `verb resource`. */
const RIGHTS = [
  'patch nodes',
  'list pods',
  'patch pods',
  'watch daemonsets.apps',
  'patch daemonsets.apps',
  'get secrets',
  'get mutatingwebhookconfigurations.admissionregistration.k8s.io/archaware-controller',
  'delete mutatingwebhookconfigurations.admissionregistration.k8s.io/archaware-controller',
  'delete secrets/archaware-controller-webhook in archaware',
  'patch mutatingwebhookconfigurations.admissionregistration.k8s.io/archaware-controller',
  'create secrets in archaware',
  'update secrets/archaware-controller-webhook in archaware',
] as const;
type Right = (typeof RIGHTS)[number];

const PODS: readonly Right[] = ['list pods', 'patch pods', 'get secrets'];
const SETS: readonly Right[] = ['watch daemonsets.apps', 'patch daemonsets.apps'];
/** What `clean` needs for what any mode leaves. */
const CLEANS: readonly Right[] = [
  'get mutatingwebhookconfigurations.admissionregistration.k8s.io/archaware-controller',
  'delete mutatingwebhookconfigurations.admissionregistration.k8s.io/archaware-controller',
  'delete secrets/archaware-controller-webhook in archaware',
];
const CERTIFIED: readonly Right[] = RIGHTS.slice(-3);

type Promised = { readonly taints?: true; readonly key?: string; readonly affinity?: true; readonly labels?: true };

const OVERLAYS: readonly [name: string, promised: Promised, rights: readonly Right[]][] = [
  ['taints', { taints: true, key: 'supported-arch' }, ['patch nodes', ...PODS, ...SETS, ...CLEANS]],
  ['taints-1.30', { taints: true, key: 'supported-arch' }, ['patch nodes', ...PODS, ...SETS, ...CLEANS, ...CERTIFIED]],
  ['affinity', { affinity: true }, RIGHTS],
  ['both', { taints: true, key: 'supported-arch', affinity: true }, RIGHTS],
  ['provider-taints', { key: 'kubernetes.io/arch' }, RIGHTS],
  [
    'cert-manager',
    { taints: true, key: 'supported-arch', affinity: true },
    ['patch nodes', ...PODS, ...SETS, ...CLEANS],
  ],
  ['labels', { labels: true }, ['patch nodes', 'list pods', 'patch pods', ...SETS, ...CLEANS]],
];
/** Its policy for DaemonSets is of a kind that 1.36 brought. */
const served = OVERLAYS.filter(([name]) => name !== 'taints' || hasMutatingPolicies());

/** Of the cluster as a whole, those that the overlays have. */
const KINDS = [
  ...['clusterroles', 'clusterrolebindings', 'mutatingwebhookconfigurations', 'namespaces'],
  ...['validatingadmissionpolicies', 'validatingadmissionpolicybindings'],
  ...(hasMutatingPolicies() ? ['mutatingadmissionpolicies', 'mutatingadmissionpolicybindings'] : []),
];

describe('the single manifests', () => {
  it('are what kustomize makes', async () => {
    for (const { file, content } of await singleManifests()) {
      expect(await readFile(file, 'utf8'), `${file.pathname}: run npx tsx hack/manifests.ts`).to.equal(content);
    }
  });
});

for (const [name, promised, rights] of served) {
  describe(`overlay ${name}, on the real control plane, in this order`, () => {
    let world: LiveWorld;
    let places: Places;
    let overlay: Overlay;
    let ns: string;
    let flags: string[];
    let controller: RunningController;
    /** The log of the controller before the present one. */
    const earlier: string[] = [];

    before(async () => {
      overlay = await buildOverlay(name);
      const nodes = ['amd64', 'arm64'].map((architecture) => ({
        name: `${architecture}-1`,
        architecture,
        taints:
          promised.key === 'kubernetes.io/arch'
            ? [{ key: promised.key, value: architecture, effect: 'NoSchedule' as const }]
            : [],
      }));
      world = await startWorld({ nodes, manifest: overlay.manifest });
      places = await arrange(world);
      ns = await world.namespace('served');
      flags = ['--config', await places.file('config.yaml', overlay.config), ...overlay.flags, ...(await files())];
      controller = await world.run(flags);
      if (promised.affinity || name === 'taints-1.30') await eventuallyTrusted(world);
    });
    after(() => world?.stop());

    /** What the pod would have mounted. */
    async function files(): Promise<string[]> {
      if (promised.labels) {
        const rules = overlay.objects.find(
          ({ metadata }) => metadata.name === 'archaware-controller-labels-accelerators',
        );
        const texts = Object.entries(Object(at(rules, 'data'))).map(([rule, text]) => [rule, String(text)] as const);
        await places.mount('labels/accelerators', Object.fromEntries(texts));
        return ['--nodeLabels.directory', `${places.directory}/labels`];
      }
      if (name !== 'cert-manager') return [];
      const authority = createAuthority('cert-manager');
      const { certificate, key } = authority.issue('webhook', ['127.0.0.1']);
      const pair = { 'tls.crt': certificate, 'tls.key': key, 'ca.crt': authority.certificate };
      // Its injector does this.
      const caBundle = Buffer.from(authority.certificate).toString('base64');
      const patch = [0, 1, 2, 3].map((index) => ({
        op: 'add',
        path: `/webhooks/${index}/clientConfig/caBundle`,
        value: caBundle,
      }));
      expect((await world.cluster.request('PATCH', WEBHOOKS, patch)).status).to.equal(200);
      return ['--webhook.certificates', await places.mount('certificates', pair)];
    }

    const tolerated = (...architectures: readonly string[]) =>
      promised.key === undefined ? [] : architectures.map((value) => `${promised.key}=${value}:NoSchedule`);

    it('has the rights that it uses, and no others of these', async () => {
      const held: string[] = [];
      for (const right of RIGHTS) if (await mayAccount(world, right)) held.push(right);
      expect(held).to.have.members(rights);
    });

    if (promised.taints) {
      it('taints nodes', () => world.eventuallyTainted());
    }

    if (promised.affinity) {
      it('gates pods and releases them with what they need', async () => {
        const image = await freshImage(world, 'arm64');
        const created = await admit(world, pod(ns, 'gated', { images: [image] }));
        expect(gates(created)).to.deep.equal([GATE]);
        const released = await world.eventuallyRuns(ns, 'gated');
        expect(affinity(released)).to.deep.equal(ON_ARM);
        expect(tolerations(released)).to.deep.equal(tolerated('arm64'));
      });
    }

    if (promised.key !== undefined) {
      it('places pods and DaemonSets, and keeps what a DaemonSet got', async () => {
        const images = [world.image('multi')];
        await world.create(pod(ns, 'multi', { images }), daemonSet(ns, 'agent', { images }));
        await world.eventuallyTolerates(ns, 'multi', tolerated('amd64', 'arm64'));
        const settled = () =>
          world.eventually('a daemon pod on each node', async () => {
            const found = await world.get('DaemonSet', ns, 'agent');
            const isOurs = tolerations(at(found, 'spec', 'template')).join() === tolerated('amd64', 'arm64').join();
            const observed = at(found, 'status', 'observedGeneration') === at(found, 'metadata', 'generation');
            return isOurs && observed && at(found, 'status', 'numberReady') === 2 && found;
          });
        const generation = at(await settled(), 'metadata', 'generation');
        // As somebody does who applies his own manifest again.
        const template = { spec: { template: { spec: { tolerations: null } } } };
        // The API server reads new policies once a second.
        await world.eventually('what keeps the tolerations', async () => {
          const { body } = await world.cluster.request(
            'PATCH',
            `${pathOf('DaemonSet', ns, 'agent')}?dryRun=All`,
            template,
          );
          return tolerations(at(body, 'spec', 'template')).length > 0;
        });
        await world.patch('DaemonSet', ns, 'agent', template);
        expect(at(await settled(), 'metadata', 'generation')).to.equal(generation);
      });
    }

    if (promised.key !== undefined) {
      it('finds out with its rights, by a dry run, that this is kept', async () => {
        earlier.push(...controller.logs());
        await world.stopControllers();
        controller = await world.run(flags);
        await world.eventually('the verdict', async () => {
          return (await controller.metric('archaware_safety_net_holds', { net: 'daemonsets' })) === 1;
        });
      });
    }

    if (promised.labels) {
      it('sets labels and takes them back', async () => {
        const label = async () => at(await world.node('amd64-1'), 'metadata', 'labels', LABEL);
        await world.patch('Node', '', 'amd64-1', { metadata: { labels: { [DEVICE]: 'true' } } });
        await world.eventually('the label', async () => (await label()) === 'true');
        await world.patch('Node', '', 'amd64-1', { metadata: { labels: { [DEVICE]: null } } });
        await world.eventually('it to go', async () => (await label()) === undefined);
        await world.patch('Node', '', 'amd64-1', { metadata: { labels: { [DEVICE]: 'true' } } });
        await world.eventually('the label', async () => (await label()) === 'true');
      });
    }

    it('leaves nothing behind after clean and the deletion of its objects', async () => {
      await world.stopControllers();
      // Nothing would bring a bare pod back, so clean leaves it.
      for (const found of await world.list('Pod', ns)) {
        if (listAt(found, 'metadata', 'ownerReferences').length === 0) await world.remove('Pod', ns, nameOf(found));
      }
      const { code, stdout, stderr } = await world.command(['clean', '--yes', '--output', 'json', ...flags]);
      expect(code, stdout + stderr).to.equal(0);
      for (const node of await world.list('Node', '')) {
        expect(JSON.stringify(node), nameOf(node)).not.to.match(/archaware[.]dev|supported-arch|accelerators\//);
      }
      expect(JSON.stringify(await world.list('DaemonSet', ns))).not.to.match(/archaware[.]dev/);
      expect(
        JSON.stringify((await world.list('Pod', ns)).map((found) => at(found, 'metadata', 'annotations'))),
      ).not.to.match(/archaware[.]dev/);
      const deleted = await world.cluster.kubectl(['delete', '-f', '-', '--ignore-not-found'], {
        input: overlay.manifest,
      });
      expect(deleted.code, deleted.stderr).to.equal(0);
      const label = ['-l', 'app.kubernetes.io/name=archaware-controller'];
      const left = await world.cluster.kubectl(['get', KINDS.join(), ...label, '-o', 'name']);
      expect(left, left.stderr).to.deep.include({ code: 0, stdout: '' });
    });

    it('was refused nothing that it needed', async () => {
      const refused = (await world.cluster.auditedRequests()).filter(({ status }) => status === 403);
      // Whatever ran before, clean looks for a webhook of archaware.
      const sought = /\/(mutatingwebhookconfigurations|secrets)\/archaware-/;
      const asked = refused.filter(({ path }) => !sought.test(path));
      expect(asked.map(({ verb, path }) => `${verb} ${path}`)).to.deep.equal([]);
      expect(
        [...earlier, ...controller.logs()].filter((line) => /ValidatingAdmissionPolicy|forbidden/.test(line)),
      ).to.deep.equal([]);
    });
  });
}
