import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { at } from '../simulator/json.ts';
import { runInProcess } from '../support/in-process.ts';
import { AMD, ARM, type Labelled, startLabelled, USB } from '../support/labelled.ts';
import type { Contents } from '../support/mounted.ts';
import type { Product } from '../support/product.ts';
import type { RunningController } from '../support/running.ts';

const GPU = 'example.com/gpu';
const MANAGED = 'archaware.dev/managed';

/** The controller checks the directory every two seconds. */
describe('label rules', () => {
  let world: Labelled;
  let product: Product;
  let directory: string;
  beforeEach(async () => {
    world = await startLabelled();
    ({ product, directory } = world);
  });
  afterEach(() => world.stop());

  const write = (files: Contents) => world.write(files);
  const run = (...flags: string[]) => world.run(...flags);
  const label: Labelled['label'] = (node, labels) => world.label(node, labels);
  const labelsOf = (node: string) => world.labelsOf(node);
  const eventually = (node: string, ...labels: string[]) => world.eventually(node, ...labels);
  const eventuallyLogged = (controller: RunningController, ...words: string[]) =>
    product.eventually(`a line of the log with ${words.join(', ')}`, async () =>
      controller.logs().find((line) => words.every((word) => line.includes(word))),
    );

  it('apply to all nodes when they change: a file, another name, none, no file at all', async () => {
    await write({ [GPU]: USB });
    for (const path of [AMD, ARM]) await label(path, { [USB]: 'true' });
    const controller = await run('--loops', 'labels');
    await eventually(AMD, `${GPU}=true`, `${USB}=true`);
    await rename(join(directory, GPU), join(directory, 'example.com/tpu'));
    for (const path of [AMD, ARM]) await eventually(path, 'example.com/tpu=true', `${USB}=true`);
    await write({ 'other/x': USB });
    await rm(join(directory, 'example.com'), { recursive: true });
    for (const path of [AMD, ARM]) await eventually(path, 'other/x=true', `${USB}=true`);
    await rm(join(directory, 'other'), { recursive: true });
    for (const path of [AMD, ARM]) await eventually(path, `${USB}=true`);
    expect(await controller.stop()).to.equal(0);
    expect(await world.recorded(AMD)).to.equal(undefined);
  });

  it('stay in force while their directory is gone, which is reported, until it is back', async () => {
    await write({ [GPU]: USB });
    await label(AMD, { [USB]: 'true' });
    const controller = await run();
    await eventually(AMD, `${GPU}=true`, `${USB}=true`);
    await rename(directory, `${directory}-gone`);
    await eventuallyLogged(controller, '"level":"error"', 'cannot be read (ENOENT); the last valid rules stay in use');
    await product.eventuallyEvent('archaware', 'ConfigurationRejected', /ENOENT.*the last valid rules stay in use/);
    await label(ARM, { [USB]: 'true' });
    await eventually(ARM, `${GPU}=true`, `${USB}=true`);
    await mkdir(directory);
    await eventually(ARM, `${USB}=true`);
    await eventually(AMD, `${USB}=true`);
    await rm(`${directory}-gone`, { recursive: true });
  });

  it('end the start if the directory is missing from the beginning', async () => {
    const gone = join(directory, 'gone');
    for (const command of ['run', 'plan']) {
      const { code, stderr } = await product.command([command, '--nodeLabels.directory', gone]);
      expect(code, stderr).to.equal(3);
      expect(stderr).to.contain(`nodeLabels.directory: ${gone}: cannot be read (ENOENT)`);
    }
  });

  it("are shown by plan, and clean removes exactly archaware's labels", async () => {
    await write({ [GPU]: USB, 'other/x': '!no', 'other/bad': '?' });
    await label(AMD, { [USB]: 'true', 'other/x': 'mine' });
    const planned = await product.command(['plan', '--nodeLabels.directory', directory, '--loops', 'labels']);
    expect(planned.code, planned.stderr).to.equal(2);
    expect(planned.stdout).to.match(/^Node +amd64-1 +label +example.com\/gpu=true$/m);
    expect(planned.stdout).to.match(/^Node +arm64-1 +label +other\/x=true$/m);
    expect(planned.stderr).to.match(/nodeLabels.directory: .*other\/bad:1: got "\?"/);
    expect(await labelsOf(AMD)).to.deep.equal([`${USB}=true`, 'other/x=mine']);

    const controller = await run();
    await eventually(AMD, `${GPU}=true`, `${USB}=true`, 'other/x=mine');
    await eventually(ARM, 'other/x=true');
    await product.eventuallyTainted();
    await controller.stop();
    const gone = await product.command(['plan', '--loops', 'labels']);
    expect(gone.stdout).to.match(/^Node +amd64-1 +unlabel +-example.com\/gpu$/m);
    expect((await product.command(['plan', '--nodeLabels.directory', directory])).stdout).to.equal(
      'Nothing to change.\n',
    );
    // A label of others may have archaware's value, and a changed label of archaware belongs to others.
    await label(ARM, { 'example.com/tpu': 'true', 'other/x': 'changed' });
    const dry = await product.command(['clean', '--dry-run']);
    expect(dry.stdout).to.match(/nodes +2 +remove the taint and labels/);
    const { code, stdout } = await product.command(['clean', '--yes', '--output', 'json']);
    expect(code).to.equal(0);
    expect(at(JSON.parse(stdout), 'removed')).to.deep.include({ nodes: 2, labels: 1 });
    expect(await labelsOf(AMD)).to.deep.equal([`${USB}=true`, 'other/x=mine']);
    expect(await labelsOf(ARM)).to.deep.equal(['example.com/tpu=true', 'other/x=changed']);
    for (const path of [AMD, ARM]) {
      expect(at(await product.get(path), 'metadata', 'annotations', MANAGED)).to.equal(undefined);
    }
  });
});

describe('config validate with label rules', () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'archaware-labels-'));
    await mkdir(join(directory, 'labels', 'a'), { recursive: true });
    await writeFile(join(directory, 'labels', 'a', 'x'), 'k\nk k\n');
    await writeFile(
      join(directory, 'config.yaml'),
      JSON.stringify({ nodeLabels: { directory: join(directory, 'labels') } }),
    );
  });
  afterEach(() => rm(directory, { recursive: true }));

  const validate = (name: string) => runInProcess(['config', 'validate', join(directory, name)]);
  const PROBLEM = '/labels/a/x:2: got "k k", expected the label of a node as key, key=value, key!=value or !key\n';

  for (const [name, key] of [
    ['labels', ''],
    ['config.yaml', 'nodeLabels.directory: '],
  ] as const) {
    it(`checks them, given ${name}`, async () => {
      const stderr = `archaware: ${key}${directory}${PROBLEM}`;
      expect(await validate(name)).to.deep.equal({ code: 3, stdout: '', stderr });
      await writeFile(join(directory, 'labels', 'a', 'x'), 'k\n!l # of others\n');
      expect(await validate(name)).to.deep.equal({ code: 0, stdout: `${join(directory, name)}: valid\n`, stderr: '' });
    });
  }

  it('says that it did not check rules on another machine', async () => {
    await rm(join(directory, 'labels'), { recursive: true });
    const { code, stdout, stderr } = await validate('config.yaml');
    expect([code, stdout]).to.deep.equal([0, `${join(directory, 'config.yaml')}: valid\n`]);
    expect(stderr).to.equal(`nodeLabels.directory: ${join(directory, 'labels')} does not exist here; not checked\n`);
  });
});
