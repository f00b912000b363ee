import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { readLabelRules } from '../../src/app/label-rules/files.ts';

// k8s-auto-labeller (2020) read a CR as a part of the key, a comment as a key and a swap file as a label, and cut one
// character too many from every name if the directory was given with a slash at its end.
describe('label rules are not broken', () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'archaware-labels-'));
    await mkdir(join(directory, 'accelerators'));
  });
  afterEach(() => rm(directory, { recursive: true }));

  const write = (name: string, text: string) => writeFile(join(directory, 'accelerators', name), text);
  const read = async (from = directory) => {
    const { rules, problems } = await readLabelRules(from);
    expect([...rules.refused, ...problems]).to.deep.equal([]);
    return rules.rules.map(({ label, conditions }) => [label, ...conditions.map(({ key }) => key)]);
  };
  const WANTED = [['accelerators/x', 'example.com/a', 'b']];

  it('by CRLF', async () => {
    await write('x', 'example.com/a\r\nb\r\n');
    expect(await read()).to.deep.equal(WANTED);
  });

  it('by comments', async () => {
    await write('x', '# the USB stick\nexample.com/a # and\n#\nb#');
    expect(await read()).to.deep.equal(WANTED);
  });

  it('by a slash at the end of the directory', async () => {
    await write('x', 'example.com/a\nb');
    for (const slashes of ['', '/', '//', '/.', '/./']) expect(await read(directory + slashes)).to.deep.equal(WANTED);
  });

  it('by files that an editor leaves beside an open file', async () => {
    await write('x', 'example.com/a\nb');
    for (const name of ['.x.swp', '.x.swx', 'x~', '#x#', '.#x', '4913']) await write(name, '\u0000b0VIM 9.1');
    expect(await read()).to.deep.equal(WANTED);
  });
});
