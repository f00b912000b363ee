import { expect } from 'chai';
import { createPaint, hasColors } from '../../src/cli/paint.ts';
import { runInProcess } from '../support/in-process.ts';
import { productForAll, workload } from '../support/product.ts';

// biome-ignore lint/suspicious/noControlCharactersInRegex: it looks for them.
const CODES = /\u001b\[\d+m/g;

describe('colors', () => {
  const rows: [asked: string, columns: number | undefined, environment: Record<string, string>, is: boolean][] = [
    ['auto', 80, {}, true],
    ['auto', undefined, {}, false],
    ['auto', 80, { NO_COLOR: '1' }, false],
    ['auto', 80, { NO_COLOR: '' }, true],
    ['auto', 80, { TERM: 'dumb' }, false],
    ['always', undefined, { NO_COLOR: '1' }, true],
    ['never', 80, {}, false],
  ];
  for (const [asked, columns, environment, is] of rows)
    it(`${asked}, ${columns === undefined ? 'a pipe' : 'a terminal'}, ${JSON.stringify(environment)}: ${is}`, () =>
      expect(hasColors(asked, { columns, environment })).to.equal(is));

  it('are not needed for marks, and a pipe has neither', () => {
    expect(createPaint({ columns: 80, colors: false }).mark('bad')).to.equal('✗');
    expect(createPaint({ columns: undefined, colors: false }).mark('bad')).to.equal(' ');
    expect(createPaint({ columns: undefined, colors: false }).tone('bad', 'x')).to.equal('x');
  });

  describe('of the commands', () => {
    const product = productForAll();
    before(async () => {
      await product.cluster.createPod({
        name: 'torn',
        images: [product.image('amd', ['amd64']), product.image('arm', ['arm64'])],
      });
    });

    it('are in the verdict at a terminal; a pipe has the same words with labels, and machines get none', async () => {
      const input = workload('Deployment', 'web', [product.image('amd', ['amd64'])]);
      const file = ['--registries.insecure', product.registry.host];
      const cluster = ['--kubeconfig', product.cluster.kubeconfig, ...file];
      const commands: readonly (readonly [words: readonly string[], first: RegExp])[] = [
        [['explain', 'torn', ...cluster], /^! Pod default\/torn /],
        [['plan', ...cluster], /^1 workload: /],
        [['check', '-f', '-', '--on', 'arm64', ...file], /^✗ 1 of 1 workload cannot run on all of arm64\./],
      ];
      for (const [words, first] of commands) {
        const at = async (more: readonly string[], columns?: number) =>
          (
            await runInProcess([...words, ...more], {
              clock: product.clock,
              input,
              ...(columns === undefined ? {} : { columns }),
            })
          ).stdout;
        const terminal = await at([], 80);
        expect(terminal.match(CODES), words[0]).not.to.equal(null);
        expect(terminal.replaceAll(CODES, '')).to.match(first);
        expect((await at(['--color', 'never'], 80)).match(CODES), words[0]).to.equal(null);
        const pipe = await at([]);
        expect(pipe, words[0]).not.to.match(/[✓✗]/);
        expect(pipe.match(CODES), words[0]).to.equal(null);
        if (words[0] !== 'check') expect(await at(['-o', 'json', '--color', 'always'])).not.to.match(CODES);
      }
    });
  });
});
