import { execFileSync } from 'node:child_process';
import { mkdir, symlink } from 'node:fs/promises';
import { sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { readLabelRules } from '../../../src/app/follow-label-rules.ts';
import { folderForEach } from '../../support/folder.ts';
import { type Contents, mount } from '../../support/mounted.ts';
import { needsPosix } from '../../support/platforms.ts';

const SHIPPED = fileURLToPath(new URL('../../../labels', import.meta.url));

describe('a directory of label rules', () => {
  const { at, write } = folderForEach();
  /** Labels with their keys; refused ones; problems without the directory's name. */
  const read = async (from = at()) => {
    const { rules, problems } = await readLabelRules(from);
    return {
      rules: rules.rules.map(({ label, conditions }) => `${label}: ${conditions.map(({ key }) => key).join()}`),
      refused: [...rules.refused],
      problems: problems.map((problem) =>
        problem.replaceAll(at(), '').replace(/^[^:]*/, (path) => path.replaceAll(sep, '/')),
      ),
    };
  };
  const only = (...rules: string[]) => ({ rules, refused: [], problems: [] });

  it('has a rule for each file, two levels deep', async () => {
    await write({ 'a.example/x': 'k', 'a.example/Y_1.z': 'k\nl', 'b/x': '' });
    expect(await read()).to.deep.equal(only('a.example/Y_1.z: k,l', 'a.example/x: k', 'b/x: '));
    expect(await read(`${at()}/`)).to.deep.equal(await read());
  });

  it('may be empty, and so may its directories', async () => {
    expect(await read()).to.deep.equal(only());
    await mkdir(at('a'));
    expect(await read()).to.deep.equal(only());
  });

  it('has an example with the accelerators that k8s-auto-labeller knows', async () => {
    expect(await read(SHIPPED)).to.deep.equal(
      only(
        'accelerators/edgetpu: kkohtaka.org/edgetpu,feature.node.kubernetes.io/usb-fe_1a6e_089a.present,' +
          'feature.node.kubernetes.io/pci-0880_1ac1.present,beta.devicetree.org/fsl-imx8mq-phanbell',
        'accelerators/ncs2: feature.node.kubernetes.io/usb-ff_03e7_2485.present',
      ),
    );
  });

  it('ignores temporary files of editors, hidden files, and the directories of mounts', async () => {
    const strange = ['.x.swp', 'x~', '#x#', '.#x', '4913', '.hidden', '.x.kate-swp', '..2026_01_01/x', '.git/config'];
    for (const name of strange) await write({ [name]: '?', [`a/${name}`]: '?' });
    await write({ 'a/x': 'k' });
    expect(await read()).to.deep.equal(only('a/x: k'));
  });

  it('may be a ConfigMap whose items have paths, mounted', async function () {
    needsPosix(this, 'link');
    await mount(at(), { 'a/x': 'k', 'a/y': 'l', 'b/z': 'm' });
    expect(await read()).to.deep.equal(only('a/x: k', 'a/y: l', 'b/z: m'));
    await mount(at(), { 'a/x': 'n', 'c/z': 'm' });
    expect(await read()).to.deep.equal(only('a/x: n', 'c/z: m'));
    await mount(at(), {});
    expect(await read()).to.deep.equal(only());
  });

  it('may have a ConfigMap mounted at each of its directories', async function () {
    needsPosix(this, 'link');
    await mkdir(at('a'));
    await mount(at('a'), { x: 'k', y: 'l' });
    await mkdir(at('b'));
    await mount(at('b'), { z: 'm' });
    expect(await read()).to.deep.equal(only('a/x: k', 'a/y: l', 'b/z: m'));
    await mount(at('a'), { y: 'n' });
    expect(await read()).to.deep.equal(only('a/y: n', 'b/z: m'));
  });

  it('is read in the old or the new version, or as a mixture, while it is swapped, and never fails', async function () {
    needsPosix(this, 'link');
    const versions: Contents[] = [
      { 'a/x': 'k', 'a/y': 'k', 'b/z': 'k' },
      { 'a/x': 'l', 'c/z': 'l' },
    ];
    await mount(at(), versions[0] ?? {});
    let isSwapping = true;
    const swapping = (async () => {
      for (let index = 1; index <= 60; index++) await mount(at(), versions[index % 2] ?? {});
      isSwapping = false;
    })();
    let reads = 0;
    while (isSwapping) {
      const { refused, problems } = await read();
      expect([refused, problems]).to.deep.equal([[], []]);
      reads++;
    }
    await swapping;
    expect(reads).to.be.above(0);
    expect(await read()).to.deep.equal(only('a/x: k', 'a/y: k', 'b/z: k'));
  });

  it('ignores a link to nowhere', async () => {
    await write({ 'a/x': 'k' });
    await symlink('nowhere', at('b'));
    await symlink('nowhere', at('a/y'));
    expect(await read()).to.deep.equal(only('a/x: k'));
  });

  const LARGEST = `k\n#${'x'.repeat(64 * 1024 - 3)}`;
  const rows: [given: string, files: Contents, problems: readonly (string | RegExp)[], refused?: readonly string[]][] =
    [
      ['a file beside the directories', { README: 'k' }, ['/README: is not a directory; expected <namespace>/<label>']],
      ['a namespace in capitals', { 'B/x': 'k' }, ['/B: expected the name of a domain, such as example.com']],
      ['k8s.io', { 'k8s.io/x': 'k' }, ['/k8s.io: is reserved for Kubernetes; expected another domain']],
      ['a label that is none', { 'b/x y': 'k' }, [/^\/b\/x y: expected the name of a label/]],
      ['a label that is too long', { [`b/${'x'.repeat(64)}`]: 'k' }, [/: expected the name of a label/]],
      ['control characters in a name', { 'b/x\u001B[31m': 'k' }, [/^\/b\/x\\u001b\[31m: expected the name of a label/]],
      ['a third level', { 'b/x/y': 'k' }, ['/b/x: is a directory; expected <namespace>/<label>, no deeper'], ['b/x']],
      ['a file that is too large', { 'b/x': `${LARGEST}x` }, ['/b/x: is larger than 65536 bytes'], ['b/x']],
      ['a line that cannot be read', { 'b/x': 'k\n\nk k\n' }, [/^\/b\/x:3: got "k k", expected the label/], ['b/x']],
      ['a rule that asks for itself', { 'b/x': '!b/x' }, [/^\/b\/x:1: b\/x is itself decided by b\/x/], ['b/x']],
    ];
  for (const [given, files, problems, refused = []] of rows) {
    it(`refuses ${given}, by file and line, and has every other rule`, async function () {
      if (Object.keys(files).some((name) => /[^ -~]/.test(name))) needsPosix(this, 'name');
      await write({ 'a/x': LARGEST, ...files });
      const found = await read();
      expect(found.rules).to.deep.equal(['a/x: k']);
      expect(found.refused).to.deep.equal(refused);
      expect(found.problems).to.have.lengthOf(problems.length);
      for (const [index, expected] of problems.entries()) {
        if (typeof expected === 'string') expect(found.problems[index]).to.equal(expected);
        else expect(found.problems[index]).to.match(expected);
      }
    });
  }

  it('does not wait for a pipe', async function () {
    needsPosix(this, 'pipe');
    await write({ 'a/x': 'k' });
    execFileSync('mkfifo', [at('a/y')]);
    expect(await read()).to.deep.equal({ rules: ['a/x: k'], refused: ['a/y'], problems: ['/a/y: is not a file'] });
  });

  it('cannot be read if it is missing or a file', async () => {
    const failure = (path: string) => readLabelRules(path).then(() => '', String);
    expect(await failure(at('gone'))).to.match(/gone: cannot be read \(ENOENT\)/);
    await write({ file: '', 'a/x': 'k' });
    expect(await failure(at('file'))).to.match(/file: cannot be read \(ENOTDIR\)/);
  });

  it('cannot be read if a link leads to itself', async function () {
    needsPosix(this, 'link');
    const failure = (path: string) => readLabelRules(path).then(() => '', String);
    await write({ 'a/y': 'k' });
    await symlink('loop', at('loop'));
    expect(await failure(at())).to.match(/loop: cannot be read \(ELOOP\)/);
  });
});
