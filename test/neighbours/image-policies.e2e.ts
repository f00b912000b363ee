import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { type Cluster, startCluster } from '../../hack/cluster/cluster.ts';
import { at, listAt } from '../../hack/cluster/json.ts';
import { type Registry, startRegistry } from '../../hack/cluster/registry.ts';
import type { Component } from '../../hack/cluster/spawn.ts';
import { withRealNames } from '../../hack/release/names.ts';
import { arrangeHelm, CHART_PATH, type Helm } from '../e2e/support/helm.ts';
import { nameOf, runs } from '../support/objects.ts';
import { pod } from '../support/workloads.ts';
import { startKyverno, startPolicyController, trusting } from './support/image-policies.ts';
import { signKeyless, type Trust } from './support/keyless.ts';
import { CANDIDATES, namesOf, needsImagePolicies, pushCandidates } from './support/released.ts';

const EXAMPLES = new URL('../../docs/examples/', import.meta.url);
const POLICIES = '/apis/policy.sigstore.dev/v1beta1/clusterimagepolicies/archaware-controller';
const NAMESPACE = 'archaware';
const PODS = `/api/v1/namespaces/${NAMESPACE}/pods`;

/** The signatures are those of a Sigstore of the test's own, in the place of the public one. */
describe('the policies of docs/examples, which admit only a signed image', function () {
  this.timeout(240_000);
  let registry: Registry;
  let trust: Trust;
  let cluster: Cluster;
  let program: Component;
  let reference: (tag: string) => string;

  before(async function () {
    needsImagePolicies(this);
    registry = await startRegistry();
    const pushed = await pushCandidates(registry);
    ({ reference } = pushed);
    trust = await signKeyless(pushed.attestations);
  });
  after(async () => {
    await trust?.stop();
    await registry?.remove();
  });

  async function begin(start: () => Promise<Component>): Promise<void> {
    cluster = await startCluster();
    for (const architecture of ['amd64', 'arm64'])
      await cluster.createNode({ name: `${architecture}-1`, architecture });
    await cluster.kubectl(['create', 'namespace', NAMESPACE]);
    program = await start();
  }
  async function end(): Promise<void> {
    await program?.stop();
    await cluster?.stop();
  }
  const example = async (file: string) =>
    withRealNames(await readFile(new URL(file, EXAMPLES), 'utf8'), namesOf(registry));

  /** What the API server answers to a pod with the image, which it does not store. */
  const tryPod = (image: string, name = 'tried', namespace = NAMESPACE) =>
    cluster.request(
      'POST',
      `/api/v1/namespaces/${namespace}/pods?dryRun=All`,
      pod(namespace, name, { images: [image] }),
    );
  const imageOf = (body: unknown) => at(listAt(at(body, 'spec', 'template') ?? body, 'spec', 'containers')[0], 'image');
  const message = (body: unknown) => String(at(body, 'message'));
  const eventuallyRefused = () =>
    cluster.waitFor('the policy to be in force', async () => (await tryPod(reference('nothing'))).status !== 201);

  /** What both programs do. */
  function admitsOnlyTheReleased(refusal: (tag: string) => RegExp) {
    for (const { tag, what, admitted } of CANDIDATES) {
      it(`${admitted ? 'admits' : 'refuses'} an image ${what}`, async () => {
        const { status, body } = await tryPod(reference(tag));
        if (admitted) {
          expect(status, message(body)).to.equal(201);
          expect(imageOf(body)).to.equal(reference(tag));
        } else {
          expect(status).to.be.oneOf([400, 403]);
          expect(message(body)).to.match(refusal(tag));
        }
      });
    }
  }

  describe('Kyverno', () => {
    let helm: Helm;

    before(async () => {
      await begin(() => startKyverno(cluster));
      await cluster.apply(await trusting(await example('kyverno.yaml'), trust));
      await eventuallyRefused();
      helm = await arrangeHelm(cluster.kubeconfig);
    });
    after(async () => {
      await helm?.remove();
      await end();
    });
    const signature = /archaware's image has no signature of its release workflow/;
    const provenance = /archaware's image has no provenance of its release workflow/;

    admitsOnlyTheReleased((tag) => (tag === 'unproven' ? provenance : signature));

    it('refuses a tag without a digest', async () => {
      const { status, body } = await tryPod(reference('0.2.0').replace(/@.*/, ''));
      expect(status).to.equal(400);
      expect(message(body)).to.contain('does not have a digest');
    });

    describe('beside the chart of archaware, in this order', () => {
      const upgrade = (tag: string) => {
        const [repository = '', digest = ''] = reference(tag)
          .replace(/:[^:@]+@/, '@')
          .split('@');
        const release = ['upgrade', '--install', 'archaware', CHART_PATH, '--namespace', NAMESPACE];
        return helm.run(release, { image: { repository, digest } });
      };
      const replicas = async () => listAt((await cluster.request('GET', PODS)).body, 'items');
      const eventuallyRunning = (tag: string) =>
        cluster.waitFor(`both replicas to run ${tag}`, async () => {
          const found = await replicas();
          const digest = reference(tag).replace(/.*@/, '');
          const right = found.filter((one) => runs(one) && String(imageOf(one)).endsWith(digest));
          return found.length === 2 && right.length === 2 && found.map(nameOf);
        });
      let names: readonly string[];

      it('admits a signed release', async () => {
        const { code, stderr } = await upgrade('0.2.0');
        expect(code, stderr).to.equal(0);
        names = await eventuallyRunning('0.2.0');
      });

      it('refuses an upgrade to an image that is not signed, and the replicas stay', async () => {
        const { code, stderr } = await upgrade('fork');
        expect(code).to.equal(1);
        expect(stderr).to.match(signature);
        expect((await replicas()).map(nameOf)).to.have.members([...names]);
      });

      it('admits the next signed release', async () => {
        const { code, stderr } = await upgrade('0.2.1');
        expect(code, stderr).to.equal(0);
        await eventuallyRunning('0.2.1');
      });
    });
  });

  describe("Sigstore's policy-controller", () => {
    before(async () => {
      await begin(() => startPolicyController(cluster, trust));
      await cluster.apply(await example('sigstore-policy-controller.yaml'));
      const label = ['label', 'namespace', NAMESPACE, 'policy.sigstore.dev/include=true'];
      expect((await cluster.kubectl(label)).code).to.equal(0);
      await cluster.waitFor('the policy to be read', async () => {
        const { body } = await cluster.request('GET', POLICIES);
        return listAt(body, 'status', 'conditions').some(
          (one) => at(one, 'type') === 'Ready' && at(one, 'status') === 'True',
        );
      });
      await eventuallyRefused();
      await cluster.waitFor('an image to be admitted', async () => (await tryPod(reference('0.2.0'))).status === 201);
    });
    after(end);

    admitsOnlyTheReleased(() => /failed policy: archaware-controller/);
  });

  afterEach(async function () {
    if (this.currentTest?.state !== 'failed') return;
    const log = await readFile(join(cluster.directory, `${program?.name}.log`), 'utf8');
    console.log(log.split('\n').slice(-20).join('\n'));
  });
});
