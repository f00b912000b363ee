import { expect } from 'chai';
import { AMD, type Labelled, startLabelled, USB } from '../support/labelled.ts';

// k8s-auto-labeller (2020) updated whole nodes and dropped an update that met another writer: the label stayed.
describe('the removal of a label is not lost on a write conflict', () => {
  let world: Labelled;
  beforeEach(async () => {
    world = await startLabelled();
  });
  afterEach(() => world.stop());

  it('succeeds after another writer was first, whose labels stay', async () => {
    await world.write({ 'accelerators/x': USB });
    await world.label(AMD, { [USB]: 'true' });
    await world.run('--loops', 'labels');
    await world.eventually(AMD, 'accelerators/x=true', `${USB}=true`);
    const { faults } = world.product.cluster;
    let undone = 0;
    // Each time a different record than the one that was read; then a refusal by the server.
    for (const labels of [['accelerators/x', 'other/gone'], ['accelerators/x']]) {
      faults.conflictNextPatch(/nodes\/amd64-1/, async () => {
        undone++;
        const annotations = { 'archaware.dev/managed': JSON.stringify({ labels }) };
        await world.product.patch(AMD, { metadata: { annotations, labels: { [`other/l${undone}`]: 'theirs' } } });
      });
    }
    faults.inject({ method: 'PATCH', path: /nodes\/amd64-1/, user: /archaware/, status: 409, times: 2 });
    await world.label(AMD, { [USB]: null });
    await world.eventually(AMD, ...Array.from({ length: undone }, (_, index) => `other/l${index + 1}=theirs`));
    expect(undone).to.be.above(0);
    expect(await world.recorded(AMD)).to.equal(undefined);
  });
});
