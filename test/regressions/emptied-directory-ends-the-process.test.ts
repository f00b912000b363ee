import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { AMD, type Labelled, startLabelled, USB } from '../support/labelled.ts';

// k8s-auto-labeller (2020) ended with a fatal error when its directory had no files any more.
describe('an emptied directory of label rules does not end the process', function () {
  this.timeout(40_000);
  let world: Labelled;
  beforeEach(async () => {
    world = await startLabelled();
  });
  afterEach(() => world.stop());

  it('and its labels are removed, and come back', async () => {
    await world.write({ 'accelerators/x': USB });
    await world.label(AMD, { [USB]: 'true' });
    const controller = await world.run();
    await world.eventually(AMD, 'accelerators/x=true', `${USB}=true`);
    for (const name of await readdir(world.directory)) await rm(join(world.directory, name), { recursive: true });
    await world.eventually(AMD, `${USB}=true`);
    expect((await controller.get('/healthz')).status).to.equal(200);
    await world.write({ 'accelerators/x': USB });
    await world.eventually(AMD, 'accelerators/x=true', `${USB}=true`);
    expect(await controller.stop()).to.equal(0);
  });

  it('nor prevents its start', async () => {
    const controller = await world.run();
    await world.product.eventuallyTainted();
    expect(await controller.stop()).to.equal(0);
  });
});
