import { expect } from 'chai';
import { at } from '../simulator/json.ts';
import { AMD, type Labelled, startLabelled, USB } from '../support/labelled.ts';

// k8s-auto-labeller (2020) wrote every label in its directory, even `node-role.kubernetes.io/control-plane`.
describe('labels of Kubernetes are neither set nor removed', () => {
  let world: Labelled;
  beforeEach(async () => {
    world = await startLabelled();
  });
  afterEach(() => world.stop());

  it('by rules, or by a forged record', async () => {
    const role = 'node-role.kubernetes.io/worker';
    const forged = JSON.stringify({ labels: [role, 'kubernetes.io/os'] });
    await world.product.patch(AMD, {
      metadata: { labels: { [role]: 'true' }, annotations: { 'archaware.dev/managed': forged } },
    });
    const rules = [
      'kubernetes.io/x',
      'k8s.io/x',
      'node-role.kubernetes.io/control-plane',
      'gpu.x-k8s.io/y',
      'a.k8s.io/x',
    ];
    await world.write(Object.fromEntries([...rules, 'accelerators/x'].map((label) => [label, USB])));
    await world.label(AMD, { [USB]: 'true' });
    const before = at(await world.product.get(AMD), 'metadata', 'labels');
    const controller = await world.run();
    await world.eventually(AMD, 'accelerators/x=true', `${USB}=true`);
    const allowed = { 'accelerators/x': 'true', 'gpu.x-k8s.io/y': 'true' };
    expect(at(await world.product.get(AMD), 'metadata', 'labels')).to.deep.equal({ ...Object(before), ...allowed });
    const log = controller.logs().find((line) => line.includes('some label rules are refused'));
    for (const domain of ['kubernetes.io', 'k8s.io', 'node-role.kubernetes.io', 'a.k8s.io']) {
      expect(log).to.contain(`/${domain}: is reserved for Kubernetes`);
    }
  });
});
