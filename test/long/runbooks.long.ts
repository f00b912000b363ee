import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { at } from '../../hack/cluster/json.ts';
import { binaries } from '../../hack/cluster/spawn.ts';
import { nodePool } from '../autoscalers/support/pools.ts';
import { gates } from '../e2e/support/placed.ts';
import { eventuallyOn, reviewsPods, whatIsThere } from '../e2e/support/real-checks.ts';
import { configurationEdit, installManifest, realWorldForAll, shellBlock } from '../e2e/support/real-world.ts';
import { isGoing, nameOf, ours, runs, scheduledOn, taints, tolerations } from '../support/objects.ts';
import { isTrusted } from '../support/webhook.ts';
import { pod, statefulSet } from '../support/workloads.ts';

const NS = 'shop';
const LEASE = 'archaware-controller';
const document = 'docs/alerts.md';
/** Longer than the Lease lasts. */
const STILL_MS = 20_000;

/** Each situation is made, and the steps of its runbook are done as they stand. */
describe('the runbooks on a real node', function () {
  this.timeout(300_000);
  const { real, world } = realWorldForAll();
  let own: string;
  let other: string;

  before(async () => {
    ({ own, other } = real);
    await installManifest(real);
    await configure(insecure());
    await real.script('kubectl apply -f archaware.yaml');
    await world.namespace(NS);
    await real.block('docs/install.md', 'kubectl wait node --all');
  });
  afterEach(async function () {
    if (this.currentTest?.state === 'failed') console.log(await whatIsThere(world));
  });

  const insecure = () => `registries: {insecure: ["${world.registry.nodeHost}"]}`;
  /** Puts the lines into the file that is applied again later, as docs/operating.md asks. */
  const configure = (...lines: readonly string[]) =>
    real.script(`sed -i -e '${configurationEdit(...lines)}' archaware.yaml`);
  const eventually = <T>(what: string, condition: () => Promise<T | false | undefined>) =>
    eventuallyOn(world)(what, condition);

  /** What a block prints on a terminal, where a command that fails does not end it. */
  async function look(document: string, text: string): Promise<string> {
    const { stdout, stderr } = await real.script(`set +e\n${await shellBlock(document, text)}\ntrue`);
    return stdout + stderr;
  }
  const step = (document: string, text: string, instead: Readonly<Record<string, string>> = {}) =>
    real.block(document, text, instead);

  const renewed = async () => String(at(await world.get('Lease', 'archaware', LEASE), 'spec', 'renewTime'));
  const eventuallyLed = () => {
    let first: string | undefined;
    return eventually('a leader that renews', async () => {
      const now = await renewed();
      first ??= now;
      return now !== 'undefined' && now !== first;
    });
  };
  /** `max(archaware_leader)` is 0: the Lease stands still for longer than it lasts. */
  async function eventuallyNotLed(): Promise<void> {
    let seen = '';
    let since = 0;
    await eventually('nobody to lead', async () => {
      const now = await renewed();
      if (now !== seen) [seen, since] = [now, performance.now()];
      return performance.now() - since > STILL_MS;
    });
  }
  const replicas = async () => (await world.list('Pod', 'archaware')).filter((one) => !isGoing(one));
  const eventuallyReady = () =>
    real.kubectl('-n', 'archaware', 'rollout', 'status', `deployment/${LEASE}`, '--timeout=2m');
  const podRuns = (name: string) => eventually(`${name} to run`, async () => runs(await world.get('Pod', NS, name)));
  const isGated = async (name: string) => gates(await world.get('Pod', NS, name)).length > 0;
  const allTaints = async () => (await world.list('Node', '')).flatMap(taints).sort();
  const eventuallyTainted = () =>
    eventually('every node to be tainted', async () => (await allTaints()).join() === ours(own, other).join());

  describe('no-leader', () => {
    const LEADER = 'kubectl -n archaware get lease archaware-controller';
    const WHY = 'kubectl -n archaware describe pods';
    afterEach(async () => {
      await eventuallyReady();
      await eventuallyLed();
    });

    it('somebody scaled it down: the page shows no pods, and scaling up helps', async () => {
      await real.kubectl('-n', 'archaware', 'scale', `deployment/${LEASE}`, '--replicas=0');
      await eventually('no replica', async () => (await replicas()).length === 0);
      expect(await look(document, LEADER)).to.match(/0\/0/);
      await real.kubectl('-n', 'archaware', 'scale', `deployment/${LEASE}`, '--replicas=2');
    });

    it('the right to the Lease is gone: the page shows "no", and the manifest brings it back', async () => {
      await real.kubectl('-n', 'archaware', 'delete', 'rolebinding', 'archaware-controller-lease');
      await eventuallyNotLed();
      expect(await look(document, WHY)).to.match(/^no$/m);
      await real.script('kubectl apply -f archaware.yaml');
    });

    it('the configuration has a mistake: the page shows exit code 3 and the line, and the one from before helps', async () => {
      await real.script('kubectl -n archaware edit configmap archaware-controller', 's/NoSchedule/Nonsense/');
      await real.kubectl('-n', 'archaware', 'delete', 'pod', '--all', '--wait=false');
      await eventually('both to have failed', async () => {
        const found = await replicas();
        const codes = found.map((one) =>
          at(one, 'status', 'containerStatuses', 0, 'lastState', 'terminated', 'exitCode'),
        );
        return codes.length === 2 && codes.every((code) => code === 3);
      });
      await eventuallyNotLed();
      const seen = await look(document, WHY);
      expect(seen)
        .to.match(/CrashLoopBackOff/)
        .and.match(/Exit Code:\s+3/);
      const [first] = await replicas();
      const said = await real.kubectl('-n', 'archaware', 'logs', nameOf(first), '--previous', '--tail=1');
      expect(said).to.match(/taints.effect.*Nonsense.*config.yaml:/);
      await real.script('kubectl apply -f archaware.yaml');
      await step(document, 'rollout restart');
    });

    it('an upgrade to an image that cannot be pulled: the page shows it, and rollout undo helps', async () => {
      await real.script('kubectl apply -f manifests/archaware-controller.yaml');
      await eventually('a replica that cannot pull', async () =>
        (await replicas()).some((one) =>
          /ImagePull/.test(String(at(one, 'status', 'containerStatuses', 0, 'state', 'waiting', 'reason'))),
        ),
      );
      expect(await look(document, WHY)).to.include('registry.invalid/');
      await step(document, 'rollout undo');
      await real.script('kubectl apply -f archaware.yaml');
    });
  });

  describe('pods-waiting', () => {
    it('a registry is down and images.unresolvable is wait: pods wait, and each way of the page helps', async () => {
      await real.script(
        'kubectl -n archaware edit configmap archaware-controller',
        's/unresolvable: open/unresolvable: wait/; s/fallbackAfter: 2m/fallbackAfter: 1s/',
      );
      await eventually('the configuration to apply', async () => {
        const read = ['--', 'node', '-p', 'fs.readFileSync("/etc/archaware/config.yaml", "utf8")'];
        const all = (await replicas()).map(nameOf);
        const seen = await Promise.all(all.map((name) => real.kubectl('-n', 'archaware', 'exec', name, ...read)));
        return seen.every((text) => text.includes('wait'));
      });
      world.registry.kill('SIGSTOP');
      try {
        const image = (tag: string) => world.image(`unknown-${tag}`);
        await world.create(
          pod(NS, 'gated', { images: [image('gated')] }),
          pod(NS, 'third', { images: [image('third')] }),
          statefulSet(NS, 'web', { images: [image('web')], workload: { podManagementPolicy: 'OrderedReady' } }),
        );
        await eventually('the Event', async () => (await world.events(NS, 'ImageUnresolvable')).length >= 3);
        const seen = await look(document, "custom-columns='NAMESPACE:.involvedObject.namespace");
        for (const name of ['gated', 'third', 'web-0'])
          expect(seen).to.match(new RegExp(`shop +${name} .*(timeout|unavailable)`));
        expect(await look(document, 'explain -n shop gated')).to.include('unknown-gated');
        await step(document, 'kubectl -n shop annotate pod gated');
        await step(document, 'kubectl -n shop patch statefulset web');
        await eventually(
          'web-0 to be placed',
          async () => tolerations(await world.get('Pod', NS, 'web-0')).join() === ours('amd64').join(),
        );
        expect(tolerations(await world.get('Pod', NS, 'third'))).to.deep.equal([]);
        await real.script(
          'kubectl -n archaware edit configmap archaware-controller',
          's/unresolvable: wait/unresolvable: open/',
        );
        await eventually(
          'the third to be open to all',
          async () => tolerations(await world.get('Pod', NS, 'third')).join() === ours(own, other).join(),
        );
      } finally {
        world.registry.kill('SIGCONT');
      }
      await real.script('kubectl apply -f archaware.yaml');
      await real.kubectl('-n', NS, 'delete', 'statefulset,pod', '--all', '--grace-period=1');
    });
  });

  describe('gates, and operating.md at 3 a.m.', () => {
    const OPERATING = 'docs/operating.md';
    before(async () => {
      const lines = ['webhook: {enabled: true}', 'placement: {mode: both}'];
      await real.block(
        'docs/changing-modes.md',
        'kubectl apply -f manifests/webhook.yaml',
        {},
        configurationEdit(...lines),
      );
      await configure(...lines);
      await eventually('every webhook to have a caBundle', () => isTrusted(world));
      await eventually('pods to be reviewed', () => reviewsPods(world, NS, world.image('index-both')));
    });

    it('a pod that holds the gate is released with its architecture', async () => {
      world.registry.kill('SIGSTOP');
      try {
        await world.create(pod(NS, 'gated', { images: [world.image('unknown-gate')] }));
        expect(await isGated('gated')).to.equal(true);
        expect(await look(document, 'GATES:.spec.schedulingGates')).to.match(
          /shop +gated +\S+ +archaware.dev\/architecture/,
        );
        expect(await look(document, 'explain -n shop gated')).to.include('unknown-gate');
        expect(await look(document, 'can-i patch pods')).to.match(/^yes$/m);
        await step(document, 'kubectl -n shop annotate pod gated');
        expect(await isGated('gated')).to.equal(false);
      } finally {
        world.registry.kill('SIGCONT');
      }
      await real.kubectl('-n', NS, 'delete', 'pod', 'gated', '--grace-period=1');
    });

    it('its rights are gone, pods are Pending and gated: kubectl alone lets all of them go, and back again', async () => {
      world.registry.kill('SIGSTOP');
      try {
        await world.create(pod(NS, 'gated', { images: [world.image('unknown-3am')] }));
        expect(await isGated('gated')).to.equal(true);
        await real.kubectl('delete', 'clusterrolebinding', 'archaware-controller', 'archaware-controller-webhook');
        const ignored = { 'archaware.dev/ignore': 'true' };
        await world.create(pod(NS, 'waits', { images: [world.image('index-both')], labels: ignored }));
        await eventually('it to be unschedulable', async () =>
          JSON.stringify(at(await world.get('Pod', NS, 'waits'), 'status')).includes('untolerated taint'),
        );
        await step(OPERATING, 'kubectl taint nodes --all supported-arch:NoSchedule-');
        await podRuns('waits');
        expect(await isGated('gated')).to.equal(true);
        await step(OPERATING, 'while read -r namespace pod index');
        await eventually('the gated one to be bound', async () => scheduledOn(await world.get('Pod', NS, 'gated')));
      } finally {
        world.registry.kill('SIGCONT');
      }
      await real.script('kubectl apply -f manifests/webhook.yaml');
      await step(OPERATING, 'kubectl apply -f archaware.yaml\nkubectl -n archaware scale');
      await eventuallyTainted();
      await real.kubectl('-n', NS, 'delete', 'pod', '--all', '--grace-period=1');
      await world.create(pod(NS, 'again', { images: [world.image(`index-${other}`)] }));
      await podRuns('again');
      expect(scheduledOn(await world.get('Pod', NS, 'again'))).to.equal(real.fake);
      await eventually('pods to be reviewed again', () => reviewsPods(world, NS, world.image('index-both')));
    });
  });

  describe('nodes-join-untainted and uninitialized-nodes', () => {
    const NAME = 'general';
    before(async () => {
      await world.cluster.apply(await readFile(join(binaries(), 'karpenter-crds.yaml'), 'utf8'));
      const pool = nodePool({ name: NAME, architectures: ['amd64', 'arm64'] });
      await eventually('the NodePool', async () => {
        await world.cluster.apply(JSON.stringify(pool));
        return true;
      });
    });

    it('nodes of one NodePool join without the taint: the page names it, and its limit stops it', async () => {
      const labels = { 'karpenter.sh/nodepool': NAME };
      await Promise.all(
        [0, 1, 2, 3].map((index) => world.cluster.createNode({ name: `joins-${index}`, architecture: other, labels })),
      );
      await eventually('the Events', async () => (await world.events('default', 'JoinedUntainted')).length > 0);
      const seen = await look(document, 'reason=JoinedUntainted');
      expect(seen)
        .to.include('JoinedUntainted')
        .and.match(new RegExp(`joins-0 +${other} +${NAME}`));
      await real.script(
        'kubectl -n archaware get configmap archaware-controller -o jsonpath="{.data.config\\.yaml}" > config.yaml',
      );
      const { stdout, stderr } = await real.block(document, 'main.js plan --config config.yaml', {
        'config.yaml': 'config.yaml || [ $? = 2 ]',
      });
      expect(stdout + stderr).to.match(new RegExp(`NodePool ${NAME}.*taint`));
      await step(document, 'kubectl patch nodepools.karpenter.sh NAME', { NAME });
      expect(await real.kubectl('get', 'nodepool', NAME, '-o', 'jsonpath={.spec.limits.cpu}')).to.equal('0');
    });

    it('a node that Karpenter does not initialize is found, and its NodeClaim can be deleted', async () => {
      const labels = { 'karpenter.sh/nodepool': NAME, 'karpenter.sh/registered': 'true' };
      await world.cluster.createNode({ name: 'hangs', architecture: other, labels });
      const claim = {
        apiVersion: 'karpenter.sh/v1',
        kind: 'NodeClaim',
        metadata: { name: 'hangs', labels: { 'karpenter.sh/nodepool': NAME } },
        spec: {
          nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' },
          requirements: [{ key: 'kubernetes.io/arch', operator: 'In', values: [other] }],
        },
      };
      await world.cluster.apply(JSON.stringify(claim));
      await eventually('it to be tainted', async () => taints(await world.node('hangs')).length === 1);
      expect(await look(document, 'reason=NodeNotInitialized')).to.match(/hangs +general +.*supported-arch/);
      expect(await look(document, 'kubectl get nodeclaims.karpenter.sh -o')).to.include('hangs');
      await step(document, 'nodeclaims.karpenter.sh NAME', { NAME: 'hangs' });
      for (const name of ['joins-0', 'joins-1', 'joins-2', 'joins-3', 'hangs']) await world.remove('Node', '', name);
    });
  });
});
