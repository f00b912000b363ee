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

function start(args: readonly string[], { environment, cwd, bundle = BUNDLE }: ProcessOptions): ChildProcess {
  const child = spawn(process.execPath, [bundle, ...args], {
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
