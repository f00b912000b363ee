import { expect } from 'chai';
import { runInProcess } from '../support/in-process.ts';

describe('help', () => {
  for (const [asked, like] of [
    [['help'], ['--help']],
    [
      ['help', 'plan'],
      ['plan', '--help'],
    ],
    [
      ['help', 'config'],
      ['config', '--help'],
    ],
  ] as const) {
    it(`of "${asked.join(' ')}" is that of "${like.join(' ')}"`, async () => {
      const [found, expected] = await Promise.all([runInProcess(asked), runInProcess(like)]);
      expect(found).to.deep.equal(expected);
      expect(found.code).to.equal(0);
    });
  }

  it('of an unknown command names the nearest one', async () =>
    expect(await runInProcess(['help', 'explane'])).to.deep.equal({
      code: 3,
      stdout: '',
      stderr: 'archaware: unknown command "explane"; did you mean explain?\n',
    }));

  it('of config lists the keys, and that of its actions only what they take', async () => {
    expect((await runInProcess(['config', '--help'])).stdout).to.contain('--taints.nodeSelector');
    for (const action of ['validate', 'schema']) {
      const { stdout } = await runInProcess(['config', action, '--help']);
      expect(stdout).to.contain('--changed');
      expect(stdout).not.to.contain('--taints.nodeSelector');
    }
  });

  it('of run has no --output, because run prints no result', async () => {
    expect((await runInProcess(['plan', '--help'])).stdout).to.contain('--output');
    expect((await runInProcess(['run', '--help'])).stdout)
      .to.contain('--kubeconfig')
      .and.not.to.contain('--output');
  });
});

describe('run', () => {
  for (const words of [
    ['run', '--output', 'json'],
    ['run', '-o', 'json'],
  ]) {
    it(`takes no output: ${words.join(' ')}`, async () => {
      const { code, stderr } = await runInProcess(words);
      expect(code).to.equal(3);
      expect(stderr).to.match(/^archaware: (--output|-o): unknown flag.*\n$/);
    });
  }
});

describe('version', () => {
  it('is a line, or a document for a program', async () => {
    expect((await runInProcess(['version'])).stdout).to.equal('dev\n');
    expect(JSON.parse((await runInProcess(['version', '-o', 'json'])).stdout)).to.deep.equal({ version: 'dev' });
    expect((await runInProcess(['version', '-o', 'yaml'])).stdout).to.equal('version: dev\n');
  });
});

describe('a command line', () => {
  const print = (...words: string[]) => ['config', 'print', ...words];
  const rows: readonly (readonly [words: string[], code: number, says: RegExp])[] = [
    [['version', '-ojson'], 0, /^\{\n {2}"version": "dev"\n\}\n$/],
    [['plan', '-Aoxml'], 3, /--output: got "xml"/],
    [['plan', '-nshop', '-A'], 3, /got --namespace and --all-namespaces/],
    [['version', '--color', 'blue'], 3, /--color: got "blue", expected one of auto, always, never\n$/],
    [print('--images.fallbackAfter', '-1s'), 3, /images\.fallbackAfter: got "-1s", expected a duration/],
    [print('policies', '--policies', '- name: a\n  schedulable: [arm64]'), 0, /"schedulable":\["arm64"\]/],
    [print('loops', '--loops', 'nodes', '--loops', 'pods'), 0, /\["nodes","pods"\]/],
    [print('--registries.caFile', 'a', '--registries.caFile', 'b'), 3, /--registries\.caFile: given 2 times/],
    [['clean', '--dry-run', '-5'], 3, /--dry-run: got "-5", expected true, false or no value/],
  ];
  for (const [words, code, says] of rows) {
    it(`is read as that of kubectl, and a mistake in it is named: ${words.join(' ')}`, async () => {
      const found = await runInProcess(words);
      expect(found.code).to.equal(code);
      expect(found.stdout + found.stderr).to.match(says);
    });
  }
});
