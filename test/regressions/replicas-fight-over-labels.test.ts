import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { AMD, type Labelled, startLabelled, USB } from '../support/labelled.ts';
import { mount } from '../support/mounted.ts';

// k8s-auto-labeller (2020) had no leader: during an update, two replicas with different rules removed each other's
// labels.
describe('replicas do not fight over labels', () => {
  let world: Labelled;
  let newer: string;
  beforeEach(async () => {
    world = await startLabelled();
    newer = await mkdtemp(join(tmpdir(), 'archaware-labels-'));
  });
  afterEach(async () => {
    await world.stop();
    await rm(newer, { recursive: true });
  });

  it('one of them writes, and the other one after the first has ended', async () => {
    await world.write({ 'accelerators/x': USB });
    await mount(newer, { 'accelerators/y': USB });
    await world.label(AMD, { [USB]: 'true' });
    const first = await world.run('--loops', 'labels');
    await world.eventually(AMD, 'accelerators/x=true', `${USB}=true`);
    world.product.cluster.forgetRequests();
    const second = await world.product.run(['--nodeLabels.directory', newer, '--loops', 'labels']);
    for (const value of ['1', '2', '3']) await world.label(AMD, { 'example.com/other': value });
    await world.label(AMD, { [USB]: null });
    await world.eventually(AMD, 'example.com/other=3');
    await world.label(AMD, { [USB]: 'true', 'example.com/other': null });
    await world.eventually(AMD, 'accelerators/x=true', `${USB}=true`);
    expect(world.product.written()).to.deep.equal([`PATCH ${AMD}`, `PATCH ${AMD}`]);
    expect(await second.metric('archaware_leader')).to.equal(0);
    expect(await first.stop()).to.equal(0);
    await world.eventually(AMD, 'accelerators/y=true', `${USB}=true`);
  });
});
