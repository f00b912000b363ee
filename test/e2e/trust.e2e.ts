import { expect } from 'chai';
import { at, listAt } from '../../hack/cluster/json.ts';
import { runBundle } from '../support/controller-process.ts';
import { manifestWithoutDeployment } from '../support/manifest.ts';
import { ours, taints, tolerations } from '../support/objects.ts';
import { installation } from '../support/product.ts';
import { leads } from '../support/running.ts';
import { runWithWebhook } from '../support/webhook.ts';
import { deployment, pod } from '../support/workloads.ts';
import { pathOf } from '../support/world.ts';
import { add, connectAsAccount } from './support/account.ts';
import { affinity, eventuallyReleased, freshImage, GATE, gates, inSilence, ON_ARM } from './support/placed.ts';
import { worldForAll } from './support/world.ts';

const ARM = { 'archaware.dev/architectures': 'arm64' };
const NOWHERE = { nodeSelector: { 'example.com/nowhere': '' } };
const BOTH = ['--placement.mode', 'both', '--bootstrap.timeout', '2s'];

describe('nothing is lost and nothing is made worse, on the real control plane', () => {
  const world = worldForAll();

  afterEach(() => world.stopControllers());

  it('keeps the gate while a policy of its own does not fit, says so, and releases the pod once it does', async () => {
    const controller = await runWithWebhook(world, ...BOTH);
    await world.eventually('it to lead', () => leads(controller));
    const ns = await world.namespace('misfit');
    const image = await freshImage(world, 'arm64');
    await world.create(pod(ns, 'probe', { images: [image], annotations: ARM, spec: NOWHERE }));
    await world.eventuallyTolerates(ns, 'probe', ours('arm64'));
    await world.cluster.apply(await manifestWithoutDeployment({ taints: ['another-key:NoSchedule'] }));
    await world.eventually('the policy to be in force', () => isRefused(ns, 'probe'));
    await inSilence(world, () => world.create(pod(ns, 'held', { images: [image] })));
    await world.eventuallyEvent(ns, 'WriteRefused', /archaware-guard-pods/);
    const held = await world.get('Pod', ns, 'held');
    expect([gates(held), affinity(held)]).to.deep.equal([[GATE], undefined]);
    expect(await controller.metric('archaware_writes_refused_total', { controller: 'pod' })).to.be.at.least(1);
    await world.cluster.apply(await manifestWithoutDeployment());
    const released = await eventuallyReleased(world, ns, 'held');
    expect(affinity(released)).to.deep.equal(ON_ARM);
    expect(tolerations(released)).to.deep.equal(ours('arm64'));
  });

  /** Whether the policies prevent archaware's own account from adding one more of its tolerations to a pod. */
  async function isRefused(namespace: string, name: string): Promise<boolean> {
    const account = await connectAsAccount(world);
    const toleration = { key: 'supported-arch', operator: 'Equal', value: 'amd64', effect: 'NoSchedule' };
    const patch = [add('/spec/tolerations/-', toleration)];
    const { status } = await account.request('PATCH', `${pathOf('Pod', namespace, name)}?dryRun=All`, patch);
    await account.close();
    return status === 422;
  }

  describe('a tenant that imitates the installation', () => {
    const TENANT = 'aaa-tenant';
    const DEDICATED = { key: 'dedicated', value: 'payments', effect: 'NoSchedule' };

    before(async () => {
      await world.namespace(TENANT);
      const edit = ['--clusterrole=edit', '--user=mallory'];
      await world.cluster.kubectl(['create', 'rolebinding', 'mallory', '-n', TENANT, ...edit]);
      const labels = { 'app.kubernetes.io/name': 'archaware-controller' };
      const volumeMounts = [{ name: 'c', mountPath: '/etc/archaware' }];
      const args = ['run', '--config', '/etc/archaware/config.yaml'];
      const containers = [{ name: 'archaware-controller', image: world.image('multi'), args, volumeMounts }];
      const volumes = [{ name: 'c', configMap: { name: 'settings' } }];
      const items = [
        {
          ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'settings', namespace: TENANT } },
          data: { 'config.yaml': 'taints: {key: dedicated}' },
        },
        JSON.parse(installation({ containers, volumes }, { namespace: TENANT })),
        pod(TENANT, 'web-1', { images: [world.image('multi')], spec: NOWHERE }),
        {
          ...{ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' },
          metadata: { name: 'archaware-controller', namespace: TENANT, labels },
          spec: {
            ...{ holderIdentity: 'mallory', leaseDurationSeconds: 600 },
            renewTime: new Date().toISOString().replace('Z', '000Z'),
          },
        },
      ];
      const { code, stderr } = await world.cluster.kubectl(['create', '-f', '-', '--as', 'mallory'], {
        input: JSON.stringify({ apiVersion: 'v1', kind: 'List', items }),
      });
      expect(code, stderr).to.equal(0);
      await world.patch('Node', '', 'amd64-1', { spec: { taints: [DEDICATED] } });
    });

    /** Each command does its work, and takes no notice of the tenant. */
    const goesOn = async (code: readonly number[], configuration: RegExp, ...args: readonly string[]) => {
      const access = ['--kubeconfig', world.cluster.kubeconfig, '--registries.insecure', world.registry.host];
      const finished = await runBundle([...args, ...access]);
      const said = `${args.join(' ')}: ${finished.stdout}${finished.stderr}`;
      expect(finished.code, said).to.be.oneOf(code);
      expect(finished.stderr, said).not.to.include(`${TENANT}/archaware-controller`);
      expect(finished.stderr, said).to.match(configuration);
    };
    const READ: readonly (readonly [code: readonly number[], ...args: string[]])[] = [
      [[0], 'explain', '-n', TENANT, 'web-1'],
      [[0, 2], 'plan', '-n', TENANT],
      [[0, 2], 'plan'],
      [[0], 'report', '-n', TENANT],
      [[2], 'status'],
    ];

    it('is used for nothing and blocks no command, also where nothing else is installed', async () => {
      for (const [code, ...args] of READ) {
        await goesOn(
          code,
          /^archaware is not installed here \(no Deployment archaware\/archaware-controller\); configuration: defaults$/m,
          ...args,
        );
      }
    });

    it('is not used beside an installation either, and clean does its work and leaves the tenant alone', async () => {
      const template = deployment('archaware', 'archaware-controller', {
        ...{ images: [world.image('multi')], replicas: 0 },
        spec: { serviceAccountName: 'archaware-controller' },
      });
      await world.create(template);
      const its = /^configuration: arguments of Deployment archaware\/archaware-controller$/m;
      for (const [code, ...args] of READ) await goesOn(code, its, ...args);
      await world.run(['--bootstrap.timeout', '2s']);
      await world.eventually('the taint', async () => taints(await world.node('arm64-1')).length > 0);
      await world.stopControllers('SIGTERM');
      for (const args of [
        ['clean', '--dry-run'],
        ['clean', '--yes', '--pods', 'keep'],
        ['clean', '--yes', '--stop', '--pods', 'keep'],
      ]) {
        await goesOn([0], its, ...args);
      }
      // The hook of the chart runs with the rights of the controller's account.
      const hook = await world.command(['clean', '--yes', '--stop', '--pods', 'keep']);
      expect(hook.code, hook.stderr).to.equal(0);
      expect(taints(await world.node('arm64-1'))).to.deep.equal([]);
      expect(listAt(await world.node('amd64-1'), 'spec', 'taints')).to.deep.include(DEDICATED);
      const untouched = await world.get('Deployment', TENANT, 'archaware-controller');
      expect(at(untouched, 'spec', 'replicas')).to.equal(1);
    });
  });
});
