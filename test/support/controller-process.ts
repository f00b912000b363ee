import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { follow, type RunningController } from './running.ts';

const BUNDLE = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

/** What the controllers that run now have logged. */
export const logsOfRunning = new Set<() => string>();

/** One finished command. */
export type Finished = { readonly code: number | null; readonly stdout: string; readonly stderr: string };

export type ProcessOptions = {
  readonly environment?: Readonly<Record<string, string>>;
  /** What is typed; the standard input is closed otherwise. */
  readonly input?: string;
  readonly cwd?: string;
  readonly bundle?: string;
};

/** Runs `node dist/main.js` with these arguments to its end. */
export async function runBundle(args: readonly string[], options: ProcessOptions = {}): Promise<Finished> {
  const child = start(args, options);
  const output = collect(child);
  child.stdin?.end(options.input ?? '');
  const [code]: unknown[] = await once(child, 'close');
  return { code: typeof code === 'number' ? code : null, ...output() };
}

/** A command under way: to be looked at, typed to and signalled before its end. */
export type RunningCommand = {
  output(): string;
  type(text: string): void;
  kill(signal: NodeJS.Signals): void;
  readonly ended: Promise<Finished>;
};

/** Starts the program with these arguments; on a terminal of its own, if asked (needs `script` of util-linux). */
export function startCommand(args: readonly string[], { terminal = false } = {}): RunningCommand {
  const quoted = [process.execPath, BUNDLE, ...args].map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');
  const child = terminal ? launch('script', ['-qec', quoted, '/dev/null'], {}) : start(args, {});
  const output = collect(child);
  child.stdin?.on('error', () => undefined);
  if (!terminal) child.stdin?.end();
  return {
    output: () => Object.values(output()).join(''),
    type: (text) => void child.stdin?.write(text),
    kill: (signal) => void child.kill(signal),
    ended: once(child, 'close').then(() => ({ code: child.exitCode, ...output() })),
  };
}

/** Starts the controller and waits until it is ready. Throws with its log where it ends before. */
export async function startController(
  args: readonly string[],
  options: ProcessOptions = {},
): Promise<RunningController> {
  const child = start(['run', '--metrics.address', '127.0.0.1:0', ...args], options);
  child.stdin?.end();
  const output = collect(child);
  const stderr = () => output().stderr;
  logsOfRunning.add(stderr);
  const ended = once(child, 'close').then(() => {
    logsOfRunning.delete(stderr);
    return child.exitCode;
  });
  return follow({
    pid: child.pid ?? 0,
    stderr,
    exitCode: () => child.exitCode ?? undefined,
    kill(signal) {
      if (child.exitCode === null && child.signalCode === null) child.kill(signal);
    },
    ended,
  });
}

const start = (args: readonly string[], options: ProcessOptions): ChildProcess =>
  launch(process.execPath, [options.bundle ?? BUNDLE, ...args], options);

function launch(program: string, words: readonly string[], { environment, cwd }: ProcessOptions): ChildProcess {
  const child = spawn(program, words, {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH, HOME: '/nonexistent', ...environment },
    ...(cwd === undefined ? {} : { cwd }),
  });
  const killed = () => child.kill('SIGKILL');
  process.once('exit', killed);
  child.once('close', () => process.off('exit', killed));
  return child;
}

function collect(child: ChildProcess): () => { stdout: string; stderr: string } {
  const output = { stdout: '', stderr: '' };
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    output.stdout += text;
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    output.stderr += text;
  });
  return () => ({ ...output });
}
