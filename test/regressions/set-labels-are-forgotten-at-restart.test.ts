import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { AMD, ARM, type Labelled, startLabelled, USB } from '../support/labelled.ts';

// k8s-auto-labeller (2020) remembered its labels only in memory: changes while it was down left stale labels for ever.
describe('labels that were set are not forgotten at a restart', () => {
  let world: Labelled;
  beforeEach(async () => {
    world = await startLabelled();
  });
  afterEach(() => world.stop());

  it('if the node or the rules changed meanwhile', async () => {
    await world.write({ 'accelerators/x': USB, 'accelerators/y': USB });
    for (const node of [AMD, ARM]) await world.label(node, { [USB]: 'true' });
    const controller = await world.run();
    for (const node of [AMD, ARM]) {
      await world.eventually(node, 'accelerators/x=true', 'accelerators/y=true', `${USB}=true`);
    }
    expect(await controller.stop()).to.equal(0);
    await world.label(AMD, { [USB]: null });
    await rm(join(world.directory, 'accelerators/y'));
    await world.run();
    await world.eventually(AMD);
    await world.eventually(ARM, 'accelerators/x=true', `${USB}=true`);
  });
});
