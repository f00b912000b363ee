import { mkdir, rename, rm } from 'node:fs/promises';
import { expect } from 'chai';
import { at, object, text } from '../simulator/json.ts';
import { folderForEach } from '../support/folder.ts';
import { runInProcess } from '../support/in-process.ts';
import { productForEach } from '../support/product.ts';

const GPU = 'example.com/gpu';
const MANAGED = 'archaware.dev/managed';
const AMD = '/api/v1/nodes/amd64-1';
const ARM = '/api/v1/nodes/arm64-1';
/** What the rules ask for. */
const USB = 'example.com/usb';

/** The controller checks the directory every two seconds. */
describe('label rules', () => {
  const product = productForEach();
  const folder = folderForEach();
  const rules = (...path: readonly string[]) => folder.at(['rules', ...path].join('/'));

  /** Writes files of rules, each in one step. */
  const write = async (files: Readonly<Record<string, string>>) => {
    for (const [name, contents] of Object.entries(files)) {
      await folder.write({ [`rules/${name}~`]: contents });
      await rename(rules(`${name}~`), rules(name));
    }
  };
  const run = (...flags: string[]) => product.run(['--nodeLabels.directory', rules(), ...flags]);
  const label = (node: string, labels: Readonly<Record<string, string>>) =>
    product.patch(node, { metadata: { labels } });
  const labelsOf = async (node: string) =>
    Object.entries(object(at(await product.get(node), 'metadata', 'labels')))
      .map(([key, value]) => `${key}=${text(value)}`)
      .filter((pair) => /^(example\.com|other)\//.test(pair))
      .sort();
  const eventually = async (node: string, ...labels: string[]) => {
    const wanted = labels.sort().join();
    await product.eventually(`${node} to have ${wanted}`, async () => (await labelsOf(node)).join() === wanted);
  };
  const recorded = async (node: string) => at(await product.get(node), 'metadata', 'annotations', MANAGED);

  it('apply to all nodes when they change: a file, another name, none, no file at all', async () => {
    await write({ [GPU]: USB });
    for (const path of [AMD, ARM]) await label(path, { [USB]: 'true' });
    const controller = await run('--loops', 'labels');
    await eventually(AMD, `${GPU}=true`, `${USB}=true`);
    await rename(rules(GPU), rules('example.com/tpu'));
    for (const path of [AMD, ARM]) await eventually(path, 'example.com/tpu=true', `${USB}=true`);
    await write({ 'other/x': USB });
    await rm(rules('example.com'), { recursive: true });
    for (const path of [AMD, ARM]) await eventually(path, 'other/x=true', `${USB}=true`);
    await rm(rules('other'), { recursive: true });
    for (const path of [AMD, ARM]) await eventually(path, `${USB}=true`);
    expect(await controller.stop()).to.equal(0);
    expect(await recorded(AMD)).to.equal(undefined);
  });

  it('stay in force while their directory is gone, which is reported, until it is back', async () => {
    await write({ [GPU]: USB });
    await label(AMD, { [USB]: 'true' });
    const controller = await run();
    await eventually(AMD, `${GPU}=true`, `${USB}=true`);
    await rename(rules(), folder.at('gone'));
    await product.eventuallyLogged(
      controller,
      '"level":"error"',
      'cannot be read (ENOENT); the last valid rules stay in use',
    );
    await product.eventuallyEvent('archaware', 'ConfigurationRejected', /ENOENT.*the last valid rules stay in use/);
    await label(ARM, { [USB]: 'true' });
    await eventually(ARM, `${GPU}=true`, `${USB}=true`);
    await mkdir(rules());
    await eventually(ARM, `${USB}=true`);
    await eventually(AMD, `${USB}=true`);
  });

  it('end the start if the directory is missing from the beginning', async () => {
    for (const command of ['run', 'plan']) {
      const { code, stderr } = await product.command([command, '--nodeLabels.directory', rules('gone')]);
      expect(code, stderr).to.equal(3);
      expect(stderr).to.contain(`nodeLabels.directory: ${rules('gone')}: cannot be read (ENOENT)`);
    }
  });

  it("are shown by plan, and clean removes exactly archaware's labels", async () => {
    await write({ [GPU]: USB, 'other/x': '!no', 'other/bad': '?' });
    await label(AMD, { [USB]: 'true', 'other/x': 'mine' });
    const planned = await product.command(['plan', '--nodeLabels.directory', rules(), '--loops', 'labels']);
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
    const again = await product.command(['plan', '--nodeLabels.directory', rules()]);
    expect(again.stdout).to.equal('Nothing to change.\n');
    // A label of others may have archaware's value, and a changed label of archaware belongs to others.
    await label(ARM, { 'example.com/tpu': 'true', 'other/x': 'changed' });
    const dry = await product.command(['clean', '--dry-run']);
    expect(dry.stdout).to.match(/nodes +2 +remove the taint and labels/);
    const { code, stdout } = await product.command(['clean', '--yes', '--output', 'json']);
    expect(code).to.equal(0);
    expect(at(JSON.parse(stdout), 'removed')).to.deep.include({ nodes: 2, labels: 1 });
    expect(await labelsOf(AMD)).to.deep.equal([`${USB}=true`, 'other/x=mine']);
    expect(await labelsOf(ARM)).to.deep.equal(['example.com/tpu=true', 'other/x=changed']);
    for (const path of [AMD, ARM]) expect(await recorded(path)).to.equal(undefined);
  });
});

describe('config validate with label rules', () => {
  const folder = folderForEach();
  const BAD = 'k\nk k\n';
  const PROBLEM = '/labels/a/x:2: got "k k", expected the label of a node as key, key=value, key!=value or !key\n';
  const validate = async (name: string, rules = '') => {
    const configuration = JSON.stringify({ nodeLabels: { directory: folder.at('labels') } });
    await folder.write({ 'config.yaml': configuration, ...(rules && { 'labels/a/x': rules }) });
    return runInProcess(['config', 'validate', folder.at(name)]);
  };

  for (const [name, key] of [
    ['labels', ''],
    ['config.yaml', 'nodeLabels.directory: '],
  ] as const) {
    it(`checks them, given ${name}`, async () => {
      const stderr = `archaware: ${key}${folder.at()}${PROBLEM}`;
      expect(await validate(name, BAD)).to.deep.equal({ code: 3, stdout: '', stderr });
      const stdout = `${folder.at(name)}: valid\n`;
      expect(await validate(name, 'k\n!l # of others\n')).to.deep.equal({ code: 0, stdout, stderr: '' });
    });
  }

  it('says that it did not check rules on another machine', async () => {
    const stderr = `nodeLabels.directory: ${folder.at('labels')} does not exist here; not checked\n`;
    const stdout = `${folder.at('config.yaml')}: valid\n`;
    expect(await validate('config.yaml')).to.deep.equal({ code: 0, stdout, stderr });
  });
});
