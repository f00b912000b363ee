import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { needsPosix } from '../support/platforms.ts';
import { workload } from '../support/product.ts';

const BUNDLE = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
/** Longer than the program needs to start, so that it waits for the producer. */
const LATE_MS = 3_000;

const STATED = workload('Deployment', 'web', ['example.com/web:1']).replace(
  '"labels"',
  '"annotations":{"archaware.dev/architectures":"amd64"},"labels"',
);

/** Runs the program behind a real pipe: Node.js itself gives its children sockets. */
function behindPipe(args: readonly string[]): ChildProcess {
  const command = ['cat |', `'${process.execPath}'`, `'${BUNDLE}'`, ...args].join(' ');
  return spawn('sh', ['-c', command], { env: { PATH: process.env.PATH, KUBECONFIG: '/dev/null' } });
}

async function finish(child: ChildProcess): Promise<{ code: number | null; output: string }> {
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const [code]: unknown[] = await once(child, 'close');
  return { code: typeof code === 'number' ? code : null, output };
}

describe('standard input is waited for', () => {
  const commands: readonly (readonly [words: string, input: string, printed: string])[] = [
    ['check -f - --on amd64', STATED, '1 workload can run on amd64.'],
    ['report -f - --to amd64', STATED, '1 of 1 replicas'],
    ['explain -f -', STATED, 'amd64'],
    ['config print workers --config -', 'workers: 3\n', 'standard input:1'],
    ['check -f /dev/null --on amd64 --config -', 'workers: x\n', 'workers: got "x"'],
    ['config validate -', 'workers: 3\n', 'standard input: valid'],
  ];
  const paces: readonly (readonly [title: string, produce: (child: ChildProcess, text: string) => Promise<void>])[] = [
    [
      'whose producer starts late',
      async ({ stdin }, text) => {
        await wait(LATE_MS);
        stdin?.end(text);
      },
    ],
    [
      'whose producer writes in fits and starts',
      async ({ stdin }, text) => {
        const middle = Math.floor(text.length / 2);
        stdin?.write(text.slice(0, middle));
        await wait(LATE_MS);
        stdin?.write(text.slice(middle, -1));
        await wait(LATE_MS / 10);
        stdin?.end(text.slice(-1));
      },
    ],
  ];
  // At the same time, because each waits for seconds.
  it('by every command that reads a pipe, whatever the pace of its producer', async function () {
    needsPosix(this, 'pipe');
    const cases = paces.flatMap(([title, produce]) => commands.map((command) => ({ title, produce, command })));
    const failed = await Promise.all(
      cases.map(async ({ title, produce, command: [words, input, printed] }) => {
        const child = behindPipe(words.split(' '));
        const finished = finish(child);
        await produce(child, input);
        const { output } = await finished;
        return output.includes(printed) ? [] : `${words}, ${title}: ${output}`;
      }),
    );
    expect(failed.flat()).to.deep.equal([]);
  });

  const endings: readonly (readonly [title: string, end: string, printed: RegExp])[] = [
    ['the end of the input (Ctrl-D)', '\x04', /standard input: valid/],
    // A machine may be so busy that the program has not begun to listen; then it ends without a word.
    ['Ctrl-C', '\x03', /interrupted|\^C\s*$/],
  ];
  it('at a terminal until its end (Ctrl-D), or until Ctrl-C', async function () {
    // Other systems have another program of this name.
    if (process.platform !== 'linux') this.skip();
    const outputs = await Promise.all(
      endings.map(async ([, end]) => {
        const command = `'${process.execPath}' '${BUNDLE}' config validate -`;
        const env = { PATH: process.env.PATH, TERM: 'xterm' };
        const child = spawn('script', ['-qec', command, '/dev/null'], { env });
        const finished = finish(child);
        child.stdin.write('workers: 3\n');
        await wait(LATE_MS);
        child.stdin.write(end);
        return (await finished).output;
      }),
    );
    for (const [index, [title, , printed]] of endings.entries()) expect(outputs[index], title).to.match(printed);
  });
});

describe('output that nobody reads to its end', () => {
  for (const [what, words, output] of [
    ['causes no stack trace: the reader ended, as head does', 'config schema; echo $? >&3; } | true', '1\n'],
    ['does not end a command that it only tells what it does', 'check 2>&1 >/dev/null; echo $? >&3; } | true', '3\n'],
    ['is named if it could not be written', 'config schema >/dev/full; echo $? >&3; }', /^.*\(ENOSPC\)\n1\n$/],
  ] as const) {
    it(what, async function () {
      needsPosix(this, 'pipe');
      if (words.includes('/dev/full') && !existsSync('/dev/full')) this.skip();
      const child = spawn('sh', ['-c', `exec 3>&2; { sleep 0.1; '${process.execPath}' '${BUNDLE}' ${words}`]);
      const found = await finish(child);
      if (typeof output === 'string') expect(found.output).to.equal(output);
      else expect(found.output).to.match(output);
    });
  }
});
