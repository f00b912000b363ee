import { once } from 'node:events';
import { connect } from 'node:net';
import { expect } from 'chai';
import { createAuthority } from '../../hack/cluster/certificates.ts';
import { freePorts } from '../../hack/cluster/ports.ts';
import { microTime } from '../../src/kube/lease.ts';
import { at, objects, text } from '../simulator/json.ts';
import { folderForEach } from '../support/folder.ts';
import { PODS, productForEach, tolerated } from '../support/product.ts';
import { arrangeWebhook, eventuallyTrusted } from '../support/webhook.ts';

const LEASE = '/apis/coordination.k8s.io/v1/namespaces/archaware/leases/archaware-controller';

const gates = (pod: unknown) => objects(at(pod, 'spec', 'schedulingGates')).map(({ name }) => text(name));

describe('run with the webhook', () => {
  const product = productForEach();
  let flags: string[];
  let port: number;
  beforeEach(async () => {
    const webhook = await arrangeWebhook(product);
    port = webhook.port;
    flags = [...webhook.flags, '--placement.mode', 'both'];
  });
  const folder = folderForEach();

  const run = async (...more: string[]) => {
    const controller = await product.run([...flags, ...more]);
    await eventuallyTrusted(product);
    return controller;
  };
  /** Runs a leader that the API server does not call, and then the replica that it calls. */
  const runUncalled = async () => {
    const called = flags;
    const [other = 0] = await freePorts(1);
    flags = ['--webhook.enabled', '--webhook.address', `127.0.0.1:${other}`, '--placement.mode', 'both'];
    const leader = await run();
    await product.run(called);
    return leader;
  };
  const pod = (name: string) => product.get(`${PODS}/${name}`);

  it('lets no new pod follow an architecture that a node has just begun to report', async () => {
    await run('--bootstrap.timeout', '1s');
    await product.eventuallyTainted();
    await product.cluster.createNode({ name: 'riscv64-1', architecture: 'riscv64' });
    // Then every replica has seen the node.
    await product.eventually('its taint', async () =>
      objects(at(await product.get('/api/v1/nodes/riscv64-1'), 'spec', 'taints')).some(
        ({ key }) => key === 'supported-arch',
      ),
    );
    const metadata = { annotations: { 'archaware.dev/architectures': 'all' } };
    await product.cluster.createPod({ name: 'all', metadata });
    expect(tolerated((await pod('all')).spec)).to.deep.equal(['amd64', 'arm64']);
  });

  it('is ready once it has seen a leader: from its first review on it gates what is not known', async () => {
    product.registry.inject({ kind: 'hang' });
    await runUncalled();
    await product.cluster.createPod({ name: 'web', images: [product.image('app', ['arm64'])] });
    expect(gates(await pod('web'))).to.deep.equal(['archaware.dev/architecture']);
  });

  it('is not ready before it listens, with nothing else to wait for', async () => {
    const { certificate, key } = createAuthority('authority').issue('webhook', ['127.0.0.1']);
    await folder.write({ 'tls.crt': certificate, 'tls.key': key });
    // It listens after its first look at the configuration.
    product.cluster.faults.inject({ method: 'GET', path: /mutatingwebhookconfigurations/, times: 1, delayMs: 2_000 });
    const own = ['--leaderElection.enabled=false', '--webhook.certificates', folder.at(), '--webhook.path', '/reviews'];
    await product.run([...flags, ...own]);
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    socket.destroy();
  });

  it('gates nothing while the leader says that it cannot release pods', async () => {
    product.registry.inject({ kind: 'hang' });
    const leader = await runUncalled();
    // The other one can never lead.
    product.cluster.faults.inject({ method: 'PUT', path: /leases/, user: /archaware/, status: 403 });
    await leader.stop('SIGKILL');
    const images = [product.image('app', ['arm64'])];
    let pods = 0;
    const next = async () => gates(await product.cluster.createPod({ name: `web-${++pods}`, images })).length;
    let renewals = 0;
    const lead = (isAble: boolean) =>
      product.cluster.request('PATCH', LEASE, {
        metadata: { annotations: { 'archaware.dev/releases-fail': isAble ? null : 'true' } },
        spec: { holderIdentity: 'other', leaseDurationSeconds: 60, renewTime: microTime(++renewals) },
      });
    for (const isAble of [true, false, true]) {
      await product.eventually(`a leader that ${isAble ? 'can' : 'cannot'} release pods`, async () => {
        await lead(isAble);
        return (await next()) === Number(isAble);
      });
    }
  });
});
