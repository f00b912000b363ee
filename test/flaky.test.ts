import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { type Again, exitCodeOf, grepFor, MOST_AGAIN, type Result, runAgain, verdictOn } from '../hack/e2e/again.ts';

const result = (path: string, state: Result['state'], isHook = false): Result => ({
  file: '/a.e2e.ts',
  path: path.split(' > '),
  state,
  isHook,
});
const again = (path: string, isSuite = false): Again => ({ file: '/a.e2e.ts', path: path.split(' > '), isSuite });

describe('what is run once more after a run of the end-to-end tests', () => {
  const rows: readonly [what: string, results: readonly Result[], wanted: readonly Again[]][] = [
    ['nothing if nothing failed', [result('pods > run', 'passed'), result('pods > wait', 'skipped')], []],
    ['a test alone', [result('pods > run', 'failed'), result('pods > wait', 'passed')], [again('pods > run')]],
    [
      'a suite whose tests depend on each other, once',
      [result('helm, in this order > installs', 'failed'), result('helm, in this order > upgrades', 'failed')],
      [again('helm, in this order', true)],
    ],
    [
      'the suite that a hook belongs to, and none of its tests beside it',
      [result('pods > gated > "before all" hook', 'failed', true), result('pods > gated > wait', 'failed')],
      [again('pods > gated', true)],
    ],
    [
      'nothing if too much failed',
      Array.from({ length: MOST_AGAIN + 1 }, (_, index) => result(`pods > ${index}`, 'failed')),
      [],
    ],
  ];
  for (const [what, results, wanted] of rows) {
    it(`is ${what}`, () => expect(runAgain(results)).to.deep.equal(wanted));
  }

  it('is selected by its whole title, whatever characters are in it', () => {
    expect(grepFor(again('pods (all) > run?'))).to.equal('^pods \\(all\\) run\\?$');
    expect(grepFor(again('pods > of a', true))).to.equal('^pods of a');
  });
});

describe('the verdict on end-to-end tests that ran twice', () => {
  const first = [result('pods > run', 'failed'), result('pods > wait', 'passed')];

  it('counts a test that passed alone as passed, and names it', () => {
    const verdict = verdictOn(first, [[again('pods > run'), [result('pods > run', 'passed')]]]);
    expect(verdict).to.deep.equal({ passed: 2, failed: 0, skipped: 0, flaky: ['pods › run'] });
  });

  it('counts a test that failed twice as failed', () => {
    const verdict = verdictOn(first, [[again('pods > run'), [result('pods > run', 'failed')]]]);
    expect(verdict).to.deep.equal({ passed: 1, failed: 1, skipped: 0, flaky: [] });
  });

  it('counts a second run without a result as failed', () => {
    expect(verdictOn(first, [[again('pods > run'), []]])).to.include({ passed: 1, failed: 1 });
  });

  it('takes the results of a whole suite from its second run, and names the test that failed first', () => {
    const whole = [result('s > "before all" hook', 'failed', true), result('t > x', 'passed')];
    const verdict = verdictOn(whole, [[again('s', true), [result('s > a', 'passed'), result('s > b', 'skipped')]]]);
    expect(verdict).to.deep.equal({ passed: 2, failed: 0, skipped: 1, flaky: ['s › "before all" hook'] });
  });
});

describe('the end of a run of end-to-end tests', () => {
  const rows: readonly [verdicts: readonly { failed: number; flaky: string[] }[], code: number][] = [
    [[], 0],
    [
      [
        { failed: 0, flaky: ['a'] },
        { failed: 0, flaky: ['b'] },
      ],
      0,
    ],
    [
      [
        { failed: 0, flaky: ['a', 'b'] },
        { failed: 0, flaky: ['c'] },
      ],
      1,
    ],
    [
      [
        { failed: 1, flaky: [] },
        { failed: 0, flaky: [] },
      ],
      1,
    ],
  ];
  for (const [verdicts, code] of rows) {
    it(`has the exit code ${code} after ${JSON.stringify(verdicts)}`, () => {
      expect(exitCodeOf(verdicts)).to.equal(code);
    });
  }
});

describe('a run of end-to-end tests', function () {
  this.timeout(60_000);
  const root = fileURLToPath(new URL('../', import.meta.url));
  let directory: string;

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'archaware-flaky-'));
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  /** Runs a suite with so many tests that pass only the second time, and some that never pass. */
  function run({ flaky, broken }: { readonly flaky: number; readonly broken: number }) {
    const test = (title: string, body: string) => `it(${JSON.stringify(title)}, () => { ${body} });`;
    const marker = (index: number) => JSON.stringify(join(directory, `ran-${index}`));
    const once = (index: number) =>
      `if (!fs.existsSync(${marker(index)})) { fs.writeFileSync(${marker(index)}, ''); throw new Error('not yet'); }`;
    const lines = [
      ...Array.from({ length: flaky }, (_, index) => test(`passes late ${index}`, once(index))),
      ...Array.from({ length: broken }, (_, index) => test(`never passes ${index}`, 'throw new Error("no")')),
      test('passes', ''),
    ];
    const file = join(directory, 'suite.cjs');
    writeFileSync(file, `const fs = require('node:fs');\ndescribe('a suite', () => {\n${lines.join('\n')}\n});\n`);
    const config = join(directory, 'mocharc.json');
    writeFileSync(config, JSON.stringify({ 'node-option': ['no-warnings'], spec: [file], timeout: 5000, exit: true }));
    const args = ['--import', 'tsx', 'hack/e2e/main.ts', config];
    const { status, stdout } = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8' });
    return { status, lines: stdout.split('\n').filter((line) => /^(\d+ passed|flaky: )/.test(line)) };
  }

  it('names what passed alone after its closing line, and fails with a test that fails twice', () => {
    expect(run({ flaky: 1, broken: 1 })).to.deep.equal({
      status: 1,
      lines: ['2 passed, 1 failed, 0 skipped', 'flaky: a suite › passes late 0'],
    });
  });
});
