import { expect } from 'chai';
import { runBundle } from '../support/controller-process.ts';

const CONFIG_MAP = 'apiVersion: v1\nkind: ConfigMap\ndata:\n  config.yaml: |\n    taints: {key: "a b"}\n';

describe('the configuration commands read standard input', () => {
  it('as a configuration', async () => {
    const { code, stdout, stderr } = await runBundle(['config', 'validate', '-'], { input: 'taints: {key: x}\n' });
    expect([code, stdout, stderr]).to.deep.equal([0, 'standard input: valid\n', '']);
  });

  it('as a ConfigMap, and name the lines in it', async () => {
    for (const args of [
      ['config', 'validate', '-'],
      ['config', 'print', '--config', '-'],
    ]) {
      const { code, stderr } = await runBundle(args, { input: CONFIG_MAP });
      expect([code, stderr.split('\n').slice(0, 2)]).to.deep.equal([
        3,
        [
          'standard input: this is a ConfigMap: its config.yaml is what is checked',
          'archaware-controller: taints.key: got "a b", expected a qualified name, as supported-arch or example.com/arch (standard input:5)',
        ],
      ]);
    }
  });

  it('as values of the chart', async () => {
    const input = 'image: {tag: x}\nconfig:\n  taints: {key: from-values}\n';
    const { code, stdout, stderr } = await runBundle(['config', 'print', '--config=-', '--output', 'json'], { input });
    expect(code).to.equal(0);
    expect(stderr).to.contain('this is a Helm values file: its `config:` is what is checked');
    expect(JSON.parse(stdout)).to.deep.include({
      key: 'taints.key',
      value: 'from-values',
      source: 'standard input:3',
    });
  });

  it('but not for two things at once', async () => {
    const { code, stderr } = await runBundle(['explain', '--file', '-', '--config', '-'], { input: '' });
    expect(code).to.equal(3);
    expect(stderr).to.contain('--config -: got the standard input, expected a file');
  });

  it('and print at most 20 problems', async () => {
    const input = Array.from({ length: 5_000 }, (_, index) => `key${index}: 1\n`).join('');
    const { code, stderr } = await runBundle(['config', 'validate', '-'], { input });
    const lines = stderr.trimEnd().split('\n');
    expect([code, lines.length, lines.at(-1)]).to.deep.equal([3, 21, 'archaware-controller: and 4980 more']);
  });
});
