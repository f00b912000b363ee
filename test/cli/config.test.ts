import { expect } from 'chai';
import { folderForEach } from '../support/folder.ts';
import { runInProcess } from '../support/in-process.ts';

const CONFIG_MAP = 'apiVersion: v1\nkind: ConfigMap\ndata:\n  config.yaml: |\n    taints: {key: "a b"}\n';

describe('the configuration commands read standard input', () => {
  const { at } = folderForEach();
  it('as a configuration', async () => {
    const { code, stdout, stderr } = await runInProcess(['config', 'validate', '-'], { input: 'taints: {key: x}\n' });
    expect([code, stdout, stderr]).to.deep.equal([0, 'standard input: valid\n', '']);
  });

  it('as a ConfigMap, and name the lines in it', async () => {
    for (const args of [
      ['config', 'validate', '-'],
      ['config', 'print', '--config', '-'],
    ]) {
      const { code, stderr } = await runInProcess(args, { input: CONFIG_MAP });
      expect([code, stderr.split('\n').slice(0, 2)]).to.deep.equal([
        3,
        [
          'standard input: this is a ConfigMap: only its config.yaml is checked',
          'archaware: taints.key: got "a b", expected a qualified name, such as supported-arch or example.com/arch (standard input:5)',
        ],
      ]);
    }
  });

  it('as values of the chart', async () => {
    const input = 'image: {tag: x}\nconfig:\n  taints: {key: from-values}\n';
    const { code, stdout, stderr } = await runInProcess(['config', 'print', '--config=-', '--output', 'json'], {
      input,
    });
    expect(code).to.equal(0);
    expect(stderr).to.contain('this is a Helm values file: only its `config:` is checked');
    expect(JSON.parse(stdout)).to.deep.include({ key: 'taints.key', value: 'from-values', source: 'standard input:3' });
  });

  for (const [title, input] of [
    ['nothing', ''],
    ['blank documents', '---\n\n...\n'],
  ] as const) {
    it(`and refuse ${title}`, async () => {
      const { code, stdout, stderr } = await runInProcess(['config', 'validate', '-'], { input });
      expect([code, stdout]).to.deep.equal([3, '']);
      expect(stderr).to.contain('standard input is empty, expected a configuration');
    });
  }

  it('and say in JSON whether they are valid, with every problem', async () => {
    const validate = async (input: string) => {
      const { code, stdout } = await runInProcess(['config', 'validate', '-', '-o', 'json'], { input });
      return [code, JSON.parse(stdout)];
    };
    const file = 'standard input';
    expect(await validate('workers: 3\n')).to.deep.equal([0, { file, valid: true, problems: [] }]);
    expect(await validate('workers: x\nlop: 1\n')).to.deep.equal([
      3,
      {
        file,
        valid: false,
        problems: [
          'workers: got "x", expected a whole number from 1 to 256 (standard input:1)',
          'lop: unknown key; did you mean log? (standard input:2)',
        ],
      },
    ]);
  });

  it('and a file of comments is a configuration: everything keeps its default', async () =>
    expect((await runInProcess(['config', 'validate', '-'], { input: '# taints: {}\n' })).code).to.equal(0));

  it('and an empty directory of label rules is refused', async () => {
    const { code, stderr } = await runInProcess(['config', 'validate', at()]);
    expect([code, stderr]).to.deep.equal([3, `archaware: ${at()} is empty, expected files with label rules\n`]);
  });

  it('names the actions if there is no such action, and where the tables of other systems are', async () => {
    const refused = async (...words: readonly string[]) => {
      const { code, stderr } = await runInProcess(['config', ...words]);
      return [code, stderr.replace('archaware: config: got ', '')];
    };
    expect(await refused('show')).to.deep.equal([3, '"show", expected print, schema or validate FILE\n']);
    expect(await refused('convert', '-')).to.deep.equal([
      3,
      '"convert -", expected print, schema or validate FILE; docs/migrating.md has tables of the settings of other systems\n',
    ]);
  });

  it('but not for two things at once', async () => {
    const { code, stderr } = await runInProcess(['explain', '--file', '-', '--config', '-'], { input: '' });
    expect(code).to.equal(3);
    expect(stderr).to.contain('--config -: got standard input, expected a file');
  });

  it('and print at most 20 problems', async () => {
    const input = Array.from({ length: 100 }, (_, index) => `key${index}: 1\n`).join('');
    const { code, stderr } = await runInProcess(['config', 'validate', '-'], { input });
    const lines = stderr.trimEnd().split('\n');
    expect([code, lines.length, lines.at(-1)]).to.deep.equal([3, 21, 'archaware: and 80 more']);
  });

  it('prints single keys, groups, and what is not the default', async () => {
    const keysOf = async (...args: readonly string[]) => {
      const { stdout } = await runInProcess(['config', 'print', '-o', 'json', ...args]);
      const rows: unknown = JSON.parse(stdout);
      return Array.isArray(rows) ? rows.map(({ key }) => key) : [];
    };
    expect(await keysOf('workers')).to.deep.equal(['workers']);
    expect(await keysOf('taints')).to.include.members(['taints.key', 'taints.effect']);
    expect(await keysOf('--changed', '--workers', '3')).to.deep.equal(['workers']);
    const { code, stderr } = await runInProcess(['config', 'print', 'taint.key']);
    expect([code, stderr]).to.deep.equal([3, 'archaware: taint.key: unknown key; did you mean taints.key?\n']);
  });
});
