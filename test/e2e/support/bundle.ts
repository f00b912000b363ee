import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Finished } from '../../support/controller-process.ts';

const BUNDLE = fileURLToPath(new URL('../../../dist/main.js', import.meta.url));

/** A command under way: to be looked at, typed to and signalled before its end. */
export type RunningCommand = {
  output(): string;
  type(text: string): void;
  kill(signal: NodeJS.Signals): void;
  readonly ended: Promise<Finished>;
};

/** Starts `node dist/main.js` with these arguments; on a terminal of its own, if asked (needs `script` of util-linux). */
export function startCommand(args: readonly string[], { terminal = false } = {}): RunningCommand {
  const command = [process.execPath, BUNDLE, ...args];
  const quoted = command.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');
  const [program = '', ...words] = terminal ? ['script', '-qec', quoted, '/dev/null'] : command;
  const child = spawn(program, words, {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH, HOME: '/nonexistent' },
  });
  const killed = () => child.kill('SIGKILL');
  process.once('exit', killed);
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  child.stdin.on('error', () => undefined);
  if (!terminal) child.stdin.end();
  const ended = once(child, 'close').then(() => {
    process.off('exit', killed);
    return { code: child.exitCode, stdout, stderr };
  });
  return {
    output: () => stdout + stderr,
    type: (text) => void child.stdin.write(text),
    kill: (signal) => void child.kill(signal),
    ended,
  };
}
