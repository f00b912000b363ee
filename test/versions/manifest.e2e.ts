import { delimiter } from 'node:path';
import { expect } from 'chai';
import { type Cluster, startCluster } from '../../hack/cluster/cluster.ts';
import { at, listAt } from '../../hack/cluster/json.ts';
import { binaries, hasMutatingPolicies, olderKubernetes } from '../../hack/cluster/spawn.ts';
import { type StandIn, standInForDeployment } from '../e2e/support/stand-in.ts';
import { runBundle } from '../support/controller-process.ts';
import { blocksOf, makeWorkplace, startDocumentRegistry, type Workplace } from '../support/doc-blocks.ts';
import { nameOf, ours, taints } from '../support/objects.ts';

const version = olderKubernetes();
const MAIN = 'manifests/archaware-controller.yaml';
const MANIFEST = hasMutatingPolicies() ? MAIN : 'manifests/archaware-controller-1.30.yaml';
const LABEL = ['-l', 'app.kubernetes.io/name=archaware-controller'];
const KINDS = [
  ...['clusterroles', 'clusterrolebindings', 'mutatingwebhookconfigurations', 'namespaces'],
  ...['validatingadmissionpolicies', 'validatingadmissionpolicybindings'],
  ...(hasMutatingPolicies() ? ['mutatingadmissionpolicies', 'mutatingadmissionpolicybindings'] : []),
];

/** In this order: each step goes on with what the one before has left. */
describe(`the single manifest on Kubernetes ${version}, as docs/install.md says`, () => {
  let cluster: Cluster;
  let standIn: StandIn;
  let registry: Awaited<ReturnType<typeof startDocumentRegistry>>;
  let workplace: Workplace;

  before(async () => {
    if (!version) throw new Error('ARCHAWARE_KUBERNETES names no version: run npm run test:versions');
    [cluster, registry, workplace] = await Promise.all([startCluster(), startDocumentRegistry(), makeWorkplace()]);
    for (const architecture of ['amd64', 'arm64']) {
      await cluster.createNode({ name: `${architecture}-1`, architecture });
    }
    standIn = standInForDeployment(cluster, registry.environment);
  });
  after(async () => {
    await standIn?.stop().finally(() => cluster?.stop());
    await Promise.all([registry?.stop(), workplace?.remove()]);
  });

  /** Runs the block of docs/install.md that holds the text, with the manifest for this version. */
  async function block(text: string) {
    const found = (await blocksOf('docs/install.md')).find(({ script }) => script.includes(text));
    if (found === undefined) throw new Error(`docs/install.md has no block with ${text}`);
    const script = found.script.replaceAll(MAIN, MANIFEST);
    const PATH = [binaries(), process.env.PATH].join(delimiter);
    return workplace.run({ ...found, script }, { ...registry.environment, PATH, KUBECONFIG: cluster.kubeconfig });
  }

  it('runs on that version', async () => {
    const { body } = await cluster.request('GET', '/version');
    expect(at(body, 'gitVersion')).to.match(new RegExp(`^v${version}[.]`));
  });

  it('is refused for the kind that is missing where it is the one for 1.36 and later', async function () {
    if (hasMutatingPolicies()) this.skip();
    const wrong = ['apply', '--dry-run=server', '-f', MAIN];
    const { code, stderr } = await cluster.kubectl(wrong);
    expect(code).to.equal(1);
    expect(stderr).to.include('no matches for kind "MutatingAdmissionPolicy"');
  });

  it('is applied without a warning', async () => {
    const { stderr } = await block('kubectl -n archaware rollout status');
    expect(stderr).to.equal('');
  });

  it('has every expression of its policies accepted', async () => {
    const path = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies';
    const policies = await cluster.waitFor('the policies to be type checked', async () => {
      const found = listAt((await cluster.request('GET', path)).body, 'items');
      const isChecked = (policy: unknown) =>
        at(policy, 'status', 'observedGeneration') === at(policy, 'metadata', 'generation');
      return found.length > 0 && found.every(isChecked) && found;
    });
    const warnings = policies.flatMap((policy) =>
      listAt(policy, 'status', 'typeChecking', 'expressionWarnings').map(
        (one) => `${nameOf(policy)}: ${at(one, 'warning')}`,
      ),
    );
    expect(warnings).to.deep.equal([]);
  });

  it('taints every node', async () => {
    await block('kubectl wait node --all');
    for (const architecture of ['amd64', 'arm64']) {
      const { body } = await cluster.request('GET', `/api/v1/nodes/${architecture}-1`);
      expect(taints(body)).to.deep.equal(ours(architecture));
    }
  });

  it('is taken away by clean and kubectl delete, as its first lines say', async () => {
    await cluster.kubectl(['-n', 'archaware', 'scale', 'deployment', 'archaware-controller', '--replicas=0']);
    const flags = ['--yes', '--timeout', '1m', '--kubeconfig', cluster.kubeconfig];
    const { code, stdout, stderr } = await runBundle(['clean', ...flags]);
    expect(code, stdout + stderr).to.equal(0);
    const deleted = await cluster.kubectl(['delete', '--ignore-not-found', '-f', MANIFEST]);
    expect(deleted).to.deep.include({ code: 0, stderr: '' });
    const left = await cluster.kubectl(['get', KINDS.join(), ...LABEL, '-o', 'name']);
    expect(left, left.stderr).to.deep.include({ code: 0, stdout: '' });
    const nodes = listAt((await cluster.request('GET', '/api/v1/nodes')).body, 'items');
    expect(JSON.stringify(nodes)).not.to.match(/archaware|supported-arch/);
  });
});
