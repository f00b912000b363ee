import { expect } from 'chai';
import { at } from '../../../hack/cluster/json.ts';
import { runWithWebhook } from '../../support/webhook.ts';
import type { World } from '../../support/world.ts';
import type { Start } from './context.ts';

/** A pod of archaware's Deployment as far as `status` can tell, which nothing runs. */
const OWN_POD = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'stand-in', namespace: 'archaware', labels: { 'app.kubernetes.io/name': 'archaware-controller' } },
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

export function describeStatus(start: Start): void {
  describe('status', () => {
    let world: World;
    before(async () => {
      world = await start();
      await runWithWebhook(world, '--placement.mode', 'both', '--bootstrap.timeout', '5s');
      await world.eventuallyTainted();
      await world.create(OWN_POD);
      const own = await world.get('Pod', 'archaware', 'stand-in');
      expect(at(own, 'spec', 'schedulingGates'), 'no gate in its own namespace').to.equal(undefined);
    });
    after(() => world?.stop());

    const asAdmin = () => ['--kubeconfig', world.cluster.kubeconfig];
    const flags = () => ['--webhook.enabled', '--placement.mode', 'both'];
    const status = async (...args: readonly string[]) => {
      const finished = await world.command(['status', '-o', 'json', ...flags(), ...args]);
      const result: unknown = finished.stdout === '' ? undefined : JSON.parse(finished.stdout);
      return { ...finished, result };
    };

    it('needs no right that the controller does not have, and names those that more lines need', async () => {
      const { code, stderr, result } = await status('-n', 'default');
      expect(code, stderr).to.equal(0);
      expect(stderr).not.to.match(/^written: /m);
      expect(at(result, 'webhook')).to.deep.equal({
        state: 'unknown',
        why: 'needs the right to create pods in namespace default',
      });
      expect(at(result, 'leader', 'leads')).to.equal(true);
      expect(at(result, 'nodes')).to.deep.equal(
        ['amd64', 'arm64'].map((architecture) => ({ architecture, total: 1, tainted: 1, untainted: 0, foreign: 0 })),
      );
    });

    it('sees by a dry run whether the API server reaches the webhook', async () => {
      const ns = await world.namespace('tested', { 'pod-security.kubernetes.io/enforce': 'restricted' });
      const reached = await status(...asAdmin(), '-n', ns);
      expect(at(reached.result, 'webhook', 'state'), reached.stdout).to.equal('reached');
      expect(await world.list('Pod', ns)).to.deep.equal([]);
      const chosen = await status(...asAdmin());
      expect(at(chosen.result, 'webhook')).to.deep.equal({
        state: 'reached',
        why: 'a pod in default, created as a dry run, came back changed',
      });
      expect(await world.list('Pod', 'default')).to.deep.equal([]);
      await world.stopControllers();
      const { code, result, stdout } = await status(...asAdmin(), '-n', ns);
      expect(at(result, 'webhook', 'state'), stdout).to.equal('not-reached');
      expect(code).to.equal(2);
      expect(await world.list('Pod', ns)).to.deep.equal([]);
    });
  });
}
