import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { type Cluster, startCluster } from '../../hack/cluster/cluster.ts';
import { at, listAt } from '../../hack/cluster/json.ts';
import type { ManifestObject } from '../../hack/manifests/kustomize.ts';
import { arrangeHelm, CHART_PATH, type Helm, objectsIn, RELEASE } from '../e2e/support/helm.ts';
import { WEBHOOKS } from '../support/webhook.ts';
import { argoDifferences, needsClients } from './support/clients.ts';

const MANIFESTS = new URL('../../manifests/', import.meta.url);
const DEPLOYMENT = '/apis/apps/v1/namespaces/archaware/deployments/archaware-controller';
const VALUES = { config: { placement: { mode: 'both' }, webhook: { enabled: true } } };
const SCALE = ['-n', 'archaware', 'scale', 'deployment/archaware-controller'];
/** Without a leader nothing runs: what the leader writes is written here, under its field manager. */
const AS_LEADER = '?fieldManager=archaware-controller';
const WAYS = [
  ['Helm 4', 'helm'],
  ['Helm 3', 'helm3'],
] as const;

describe("archaware's own objects, beside the programs that install them, in this order", function () {
  this.timeout(240_000);
  let cluster: Cluster;
  let bundle: string;

  before(async function () {
    needsClients(this);
    cluster = await startCluster({ kwok: false, schedulerAndManager: false });
    bundle = Buffer.from(await readFile(cluster.caFile)).toString('base64');
    await cluster.kubectl(['create', 'namespace', 'archaware']);
  });
  after(() => cluster?.stop());

  /** What the leader writes into the webhook's configuration. */
  async function leaderWrites(path: string): Promise<void> {
    const hooks = listAt((await cluster.request('GET', WEBHOOKS)).body, 'webhooks');
    const patch = hooks.flatMap((_, index) => [
      { op: 'add', path: `/webhooks/${index}/clientConfig/caBundle`, value: bundle },
      { op: 'add', path: `/webhooks/${index}/clientConfig/service/path`, value: path },
    ]);
    expect((await cluster.request('PATCH', WEBHOOKS + AS_LEADER, patch)).status).to.equal(200);
  }
  /** Returns how each webhook is called: its path, and whether it is trusted; those that are alike once. */
  const called = async () => {
    const hooks = listAt((await cluster.request('GET', WEBHOOKS)).body, 'webhooks').map((hook) => {
      const isTrusted = at(hook, 'clientConfig', 'caBundle') === bundle;
      return `${at(hook, 'clientConfig', 'service', 'path')} ${isTrusted}`;
    });
    return [...new Set(hooks)];
  };
  const replicas = async () => at((await cluster.request('GET', DEPLOYMENT)).body, 'spec', 'replicas');
  const kubectl = async (args: readonly string[], input?: string) => {
    const { code, stdout, stderr } = await cluster.kubectl(args, input === undefined ? {} : { input });
    expect(code, stdout + stderr).to.equal(0);
    return stdout;
  };

  for (const [name, program] of WAYS) {
    describe(`by ${name}`, () => {
      let helm: Helm;
      before(async () => {
        helm = await arrangeHelm(cluster.kubeconfig, program);
      });
      after(async () => {
        await helm.run(['uninstall', ...RELEASE, '--no-hooks']);
        await helm.remove();
      });
      it('installs without a path, and upgrades leave alone what the leader wrote', async () => {
        await helm.must(['install', ...RELEASE, CHART_PATH], VALUES);
        expect(await called()).to.deep.equal(['undefined false']);
        await leaderWrites('/mutate/one');
        await helm.must(['upgrade', ...RELEASE, CHART_PATH], VALUES);
        await helm.must(['upgrade', ...RELEASE, CHART_PATH], { ...VALUES, replicas: 3 });
        expect([await called(), await replicas()]).to.deep.equal([['/mutate/one true'], 3]);
      });

      it('goes back to any revision after the leader has renewed the path, and leaves it alone', async () => {
        await leaderWrites('/mutate/two');
        for (const revision of ['2', '1', '3']) {
          await helm.must(['rollback', ...RELEASE, revision]);
          expect(await called(), revision).to.deep.equal(['/mutate/two true']);
        }
        expect(await replicas()).to.equal(3);
      });

      it('has no difference that Argo CD sees', async () => {
        const objects = objectsIn(await helm.must(['get', 'manifest', ...RELEASE]));
        expect(objects.map(({ kind }) => kind)).to.include.members(['MutatingAdmissionPolicy', 'Deployment']);
        for (const serverSideDiff of [false, true]) {
          expect(await argoDifferences(cluster, objects, { serverSideDiff })).to.deep.equal({});
        }
      });

      it('upgrades after the emergency, which brings back the replicas and the webhook', async () => {
        await kubectl([...SCALE, '--replicas=0']);
        await kubectl(['delete', 'mutatingwebhookconfiguration', 'archaware-controller']);
        await helm.must(['upgrade', ...RELEASE, CHART_PATH], { ...VALUES, replicas: 3 });
        expect([await called(), await replicas()]).to.deep.equal([['undefined false'], 3]);
        await leaderWrites('/mutate/three');
        await helm.must(['upgrade', ...RELEASE, CHART_PATH], { ...VALUES, replicas: 2 });
        expect([await called(), await replicas()]).to.deep.equal([['/mutate/three true'], 2]);
      });
    });
  }

  for (const flags of [[], ['--server-side']]) {
    describe(['by kubectl apply', ...flags].join(' '), () => {
      let objects: readonly ManifestObject[];
      let input: string;
      before(async () => {
        const files = ['archaware-controller.yaml', 'webhook.yaml'].map((name) => new URL(name, MANIFESTS));
        const all = objectsIn((await Promise.all(files.map((file) => readFile(file, 'utf8')))).join('\n---\n'));
        // Nothing would end the namespace here: no controller of Kubernetes runs.
        objects = all.filter(({ kind }) => kind !== 'Namespace');
        input = objects.map((object) => JSON.stringify(object)).join('\n---\n');
      });
      after(() => kubectl(['delete', '--ignore-not-found', '-f', '-'], input));

      it('applies the manifests again, and leaves alone what the leader wrote', async () => {
        await kubectl(['apply', ...flags, '-f', '-'], input);
        await leaderWrites('/mutate/four');
        await kubectl(['apply', ...flags, '-f', '-'], input);
        expect(await called()).to.deep.equal(['/mutate/four true']);
        expect(await kubectl(['diff', ...flags, '-f', '-'], input)).to.equal('');
      });

      it('has no difference that Argo CD sees', async () => {
        for (const serverSideDiff of [false, true]) {
          expect(await argoDifferences(cluster, objects, { serverSideDiff })).to.deep.equal({});
        }
      });
    });
  }
});
