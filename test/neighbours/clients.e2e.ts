import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { parseAllDocuments } from 'yaml';
import { at } from '../../hack/cluster/json.ts';
import { arrangeHelm, type Helm } from '../e2e/support/helm.ts';
import { worldForAll } from '../e2e/support/world.ts';
import { ours, taints, tolerations, uidOf } from '../support/objects.ts';
import { daemonSet, type KubernetesObject, pod } from '../support/workloads.ts';
import {
  argoClient,
  argoDifferences,
  type Client,
  fluxClient,
  helmClient,
  kubectlClient,
  needsClients,
} from './support/clients.ts';

const OWN = { key: 'example.com/own', operator: 'Exists' };
const OWN_TEXT = 'example.com/own:';
const SETS = ['own', 'plain'];
/** Those that apply a bare pod as well. A server-side apply of one conflicts once: see the last test. */
const WITH_POD = new Set([
  'kubectl apply',
  'Helm 3',
  'Argo CD with ServerSideDiff',
  'Argo CD with ServerSideApply',
  'Flux',
]);
const PAGE = new URL('../../docs/gitops.md', import.meta.url);
const TOLD_MS = 240_000;

type Revision = { readonly tag: 'multi' | 'amd64'; readonly mark: string };

/** In this order: each client goes on with what it has applied before archaware came. */
describe('the programs with which other people apply objects, beside archaware', function () {
  this.timeout(300_000);
  const world = worldForAll({}, needsClients);
  let helms: readonly Helm[] = [];
  let clients: ReadonlyMap<string, Client>;

  before(async () => {
    const { kubeconfig } = world.cluster;
    const [helm, helm3] = await Promise.all([arrangeHelm(kubeconfig), arrangeHelm(kubeconfig, 'helm3')]);
    helms = [helm, helm3];
    const all = [
      kubectlClient(world),
      kubectlClient(world, '--server-side'),
      helmClient('Helm 4', helm, '--rollback-on-failure'),
      helmClient('Helm 3', helm3, '--atomic'),
      argoClient(world, 'Argo CD with ServerSideDiff', { serverSideDiff: true }),
      argoClient(world, 'Argo CD with ignoreDifferences', { ignore: await ignoredOfPage() }),
      argoClient(world, 'Argo CD with ServerSideApply', { serverSideApply: true, serverSideDiff: true }),
      fluxClient(world),
    ];
    clients = new Map(all.map((client) => [client.name, client]));
    for (const client of all) {
      const ns = await world.namespace(namespaceOf(client.name));
      await client.apply(ns, objects(client.name, FIRST));
    }
    await world.run();
    for (const client of all) await settled(client, FIRST);
    for (const node of ['amd64-1', 'arm64-1']) {
      await eventually(`the taint of ${node}`, async () => taints(await world.node(node)).length > 0);
    }
  });
  after(() => Promise.all(helms.map((helm) => helm.remove())));

  const FIRST: Revision = { tag: 'multi', mark: 'one' };
  const namespaceOf = (name: string) => name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');
  const eventually = <T>(what: string, condition: () => Promise<T | false | undefined>) =>
    world.cluster.waitFor(what, condition, TOLD_MS);
  const clientOf = (name: string): Client => {
    const found = clients.get(name);
    if (found) return found;
    throw new Error(`no client ${name}`);
  };

  /** What the repository has: a DaemonSet with tolerations of its own, one without, and for some a bare pod with tolerations. */
  function objects(name: string, { tag, mark }: Revision): KubernetesObject[] {
    const ns = namespaceOf(name);
    const images = [world.image(tag)];
    const workload = { updateStrategy: { rollingUpdate: { maxUnavailable: '100%' } } };
    const common = { images, annotations: { mark }, workload };
    return [
      daemonSet(ns, 'own', { ...common, tolerations: [OWN] }),
      daemonSet(ns, 'plain', common),
      ...(WITH_POD.has(name) ? [single(ns, mark)] : []),
    ];
  }

  const single = (ns: string, mark: string) =>
    pod(ns, 'single', { images: [world.image('multi')], labels: { mark }, tolerations: [OWN] });
  const sets = (ns: string) => Promise.all(SETS.map((name) => world.get('DaemonSet', ns, name)));
  const generations = async (ns: string) => (await sets(ns)).map((set) => Number(at(set, 'metadata', 'generation')));
  const templates = async (ns: string) => (await sets(ns)).map((set) => at(set, 'spec', 'template'));
  const expected = ({ tag }: Revision) => {
    const wanted = tag === 'multi' ? ours('amd64', 'arm64') : ours('amd64');
    return [[...wanted, OWN_TEXT].sort(), wanted];
  };

  /** Waits until the templates have what archaware adds, nothing rolls, and archaware has nothing left to write to them. */
  async function settled({ name }: Client, revision: Revision): Promise<void> {
    const ns = namespaceOf(name);
    await eventually(`${ns} to have the tolerations of archaware`, async () => {
      const found = await sets(ns);
      const present = found.map((set) => tolerations(at(set, 'spec', 'template')));
      if (JSON.stringify(present) !== JSON.stringify(expected(revision))) throw new Error(JSON.stringify(present));
      return found.every(
        (set) =>
          at(set, 'metadata', 'annotations', 'archaware.dev/tolerations') !== undefined &&
          at(set, 'status', 'observedGeneration') === at(set, 'metadata', 'generation') &&
          at(set, 'status', 'updatedNumberScheduled') === at(set, 'status', 'desiredNumberScheduled') &&
          at(set, 'status', 'numberAvailable') === at(set, 'status', 'desiredNumberScheduled'),
      );
    });
    if (!WITH_POD.has(name)) return;
    await eventually(`the pod of ${ns} to be placed`, async () =>
      tolerations(await world.get('Pod', ns, 'single')).includes('supported-arch=arm64:NoSchedule'),
    );
  }

  async function sees(client: Client, revision: Revision): Promise<string> {
    const ns = namespaceOf(client.name);
    return (await client.differences?.(ns, objects(client.name, revision))) ?? '';
  }

  const NAMES = [
    'kubectl apply',
    'kubectl apply --server-side',
    'Helm 4',
    'Helm 3',
    'Argo CD with ServerSideDiff',
    'Argo CD with ignoreDifferences',
    'Argo CD with ServerSideApply',
    'Flux',
  ];
  for (const name of NAMES) {
    describe(`${name}, in this order`, () => {
      const ns = namespaceOf(name);
      const second: Revision = { tag: 'multi', mark: 'two' };
      const narrow: Revision = { tag: 'amd64', mark: 'two' };

      it('sees no difference, applies the same three times, and nothing changes', async () => {
        const client = clientOf(name);
        const [before, uids] = await Promise.all([generations(ns), podUids(ns)]);
        expect(await sees(client, FIRST)).to.equal('');
        for (const _ of [1, 2, 3]) await client.apply(ns, objects(name, FIRST));
        expect(await sees(client, FIRST)).to.equal('');
        expect(await generations(ns)).to.deep.equal(before);
        expect((await templates(ns)).map((template) => tolerations(template))).to.deep.equal(expected(FIRST));
        expect(await podUids(ns)).to.deep.equal(uids);
      });

      it('applies a change, and the tolerations stay in the same request', async () => {
        const [before, client] = [await generations(ns), clientOf(name)];
        // A comparison that saw nothing would pass all these tests.
        if (client.differences) expect(await sees(client, second)).not.to.equal('');
        await client.apply(ns, objects(name, second));
        const after = await sets(ns);
        expect(after.map((set) => tolerations(at(set, 'spec', 'template')))).to.deep.equal(expected(second));
        expect(after.map((set) => at(set, 'spec', 'template', 'metadata', 'annotations', 'mark'))).to.deep.equal([
          'two',
          'two',
        ]);
        expect(after.map((set) => Number(at(set, 'metadata', 'generation')))).to.deep.equal(before.map((n) => n + 1));
        if (!WITH_POD.has(name)) return;
        expect(at(await world.get('Pod', ns, 'single'), 'metadata', 'labels', 'mark')).to.equal('two');
        expect(await sees(client, second)).to.equal('');
      });

      it('applies again after archaware has taken a toleration back', async () => {
        const client = clientOf(name);
        await client.apply(ns, objects(name, narrow));
        await settled(client, narrow);
        const before = await generations(ns);
        await client.apply(ns, objects(name, narrow));
        expect(await sees(client, narrow)).to.equal('');
        expect(await generations(ns)).to.deep.equal(before);
      });

      if (!name.startsWith('Helm')) return;

      it('goes back to the revision before', async () => {
        const client = clientOf(name);
        const last = { tag: 'multi', mark: 'three' } as const;
        await client.apply(ns, objects(name, last));
        await settled(client, last);
        await client.rollBack?.(ns);
        await settled(client, narrow);
        await client.rollBack?.(ns);
        await settled(client, last);
      });

      it('goes back by itself from an upgrade that fails', async () => {
        const client = clientOf(name);
        const before = await templates(ns);
        const changed = objects(name, { tag: 'multi', mark: 'four' });
        const refused = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'Not_a_name', namespace: ns } };
        await client.applyOrGoBack?.(ns, [...changed, refused]);
        expect(await templates(ns)).to.deep.equal(before);
      });
    });
  }

  it('applies a bare pod server-side again, which takes --force-conflicts once', async () => {
    const ns = await world.namespace('pods');
    const again = kubectlClient(world, '--server-side');
    await again.apply(ns, [single(ns, 'one')]);
    await eventually('the pod to be placed', async () =>
      tolerations(await world.get('Pod', ns, 'single')).includes('supported-arch=arm64:NoSchedule'),
    );
    await kubectlClient(world, '--server-side', '--force-conflicts').apply(ns, [single(ns, 'one')]);
    for (const mark of ['one', 'two']) await again.apply(ns, [single(ns, mark)]);
    const placed = await world.get('Pod', ns, 'single');
    expect(tolerations(placed)).to.deep.equal([...ours('amd64', 'arm64'), OWN_TEXT].sort());
  });

  it("is OutOfSync in Argo CD's default comparison where a DaemonSet has tolerations of its own, and only there", async () => {
    const name = 'Argo CD with ignoreDifferences';
    expect(Object.keys(await argoDifferences(world.cluster, objects(name, FIRST), {}))).to.deep.equal([
      'DaemonSet own',
    ]);
  });

  /** Of the pods that are not of a DaemonSet. */
  const podUids = async (ns: string) =>
    (await world.list('Pod', ns)).filter((one) => at(one, 'metadata', 'name') === 'single').map(uidOf);
});

/** The field `ignoreDifferences` of the page about GitOps. */
async function ignoredOfPage(): Promise<unknown> {
  const blocks = (await readFile(PAGE, 'utf8')).matchAll(/```yaml\n(.*?)```/gs);
  for (const document of [...blocks].flatMap(([, block = '']) => parseAllDocuments(block))) {
    const found = at(document.toJS(), 'spec', 'ignoreDifferences') ?? at(document.toJS(), 'ignoreDifferences');
    if (found !== undefined) return found;
  }
  throw new Error('docs/gitops.md has no ignoreDifferences');
}
