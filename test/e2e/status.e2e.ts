import { expect } from 'chai';
import { at, listAt } from '../../hack/cluster/json.ts';
import { runBundle } from '../support/controller-process.ts';
import { arrangeWebhook, eventuallyTrusted, type Webhook } from './support/webhook.ts';
import { type LiveWorld, startWorld } from './support/world.ts';

const OWN = { 'app.kubernetes.io/name': 'archaware-controller' };
const OWN_POD = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'stand-in', namespace: 'archaware', labels: OWN },
  spec: {
    schedulerName: 'nobody',
    securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    containers: [
      {
        name: 'archaware-controller',
        image: 'registry.example.com/archaware:1',
        securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
      },
    ],
  },
};

describe('status, on the real control plane', () => {
  let world: LiveWorld;
  let webhook: Webhook;
  before(async () => {
    world = await startWorld();
    webhook = await arrangeWebhook(world);
    await world.run([...webhook.flags, '--placement.mode', 'both', '--bootstrap.timeout', '5s']);
    await eventuallyTrusted(world);
    await world.eventually('all nodes to be tainted', async () =>
      (await world.list('Node', '')).every((node) =>
        listAt(node, 'spec', 'taints').some((taint) => at(taint, 'key') === 'supported-arch'),
      ),
    );
    await world.cluster.apply(JSON.stringify(OWN_POD));
  });
  after(() => world?.stop());

  const flags = () => ['--webhook.enabled', '--placement.mode', 'both'];
  const status = async (kubeconfig: string, ...args: readonly string[]) => {
    const finished = await runBundle(['status', '--kubeconfig', kubeconfig, '-o', 'json', ...flags(), ...args]);
    const result: unknown = finished.stdout === '' ? undefined : JSON.parse(finished.stdout);
    return { ...finished, result };
  };

  it('needs no right that the controller does not have, and names those that more lines need', async () => {
    const { code, stderr, result } = await status(world.kubeconfig, '-n', 'default');
    expect(code, stderr).to.equal(0);
    expect(stderr).to.match(/^metrics: needs the right to get pods\/proxy in namespace archaware$/m);
    expect(at(result, 'webhook')).to.deep.equal({
      state: 'unknown',
      why: 'needs the right to create pods in namespace default',
    });
    expect(at(result, 'leader', 'leads')).to.equal(true);
    expect(at(result, 'nodes')).to.deep.equal(
      ['amd64', 'arm64'].map((architecture) => ({ architecture, total: 1, tainted: 1, untainted: 0, foreign: 0 })),
    );
  });

  it('says what the API server answers where a pod cannot be reached', async () => {
    const { code, stderr, result } = await status(world.cluster.kubeconfig);
    expect(code, stderr).to.equal(0);
    expect(stderr).to.match(/^metrics: get .*\/pods\/stand-in:9090\/proxy\/metrics: 400 address not allowed$/m);
    expect(at(result, 'pods')).to.equal(null);
  });

  it('sees by a dry run whether the API server reaches the webhook', async () => {
    const ns = await world.namespace('tested', { 'pod-security.kubernetes.io/enforce': 'restricted' });
    const reached = await status(world.cluster.kubeconfig, '-n', ns);
    expect(at(reached.result, 'webhook', 'state'), reached.stdout).to.equal('reached');
    expect(await world.list('Pod', ns)).to.deep.equal([]);
    const chosen = await status(world.cluster.kubeconfig);
    expect(at(chosen.result, 'webhook')).to.deep.equal({
      state: 'reached',
      why: 'a pod in default, created as a dry run, came back changed',
    });
    expect(await world.list('Pod', 'default')).to.deep.equal([]);
    await world.stopControllers();
    const { code, result, stdout } = await status(world.cluster.kubeconfig, '-n', ns);
    expect(at(result, 'webhook', 'state'), stdout).to.equal('not-reached');
    expect(code).to.equal(2);
    expect(await world.list('Pod', ns)).to.deep.equal([]);
  });
});
