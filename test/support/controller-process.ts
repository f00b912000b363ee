import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { request } from 'undici';

const BUNDLE = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

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

/** A running `node dist/main.js run`. */
export type RunningController = {
  readonly pid: number;
  /** Port of its metrics and health. */
  readonly port: number;
  /** What it has logged so far, a line each. */
  logs(): string[];
  /** The sum of a metric's samples whose labels contain these. */
  metric(name: string, labels?: Readonly<Record<string, string>>): Promise<number>;
  /** The text of a path of its server, with the status. */
  get(path: string): Promise<{ status: number; text: string }>;
  kill(signal: NodeJS.Signals): void;
  /** Ends it by SIGTERM (or another signal) and gives its exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
};

/** Starts the controller and waits until it is ready. Throws with its log where it ends before. */
export async function startController(
  args: readonly string[],
  options: ProcessOptions = {},
): Promise<RunningController> {
  const child = start(['run', '--metrics.address', '127.0.0.1:0', ...args], options);
  child.stdin?.end();
  const output = collect(child);
  const logs = () =>
    output()
      .stderr.split('\n')
      .filter((line) => line !== '');
  const ended = once(child, 'close');
  const deadline = performance.now() + 30_000;
  let port = 0;
  for (;;) {
    if (child.exitCode !== null) throw new Error(`the controller ended with ${child.exitCode}:\n${output().stderr}`);
    if (performance.now() > deadline) throw new Error(`the controller is not ready:\n${output().stderr}`);
    port ||= portOf(logs());
    if (port > 0 && (await get(port, '/readyz').catch(() => undefined))?.status === 200) break;
    await delay(10);
  }
  return {
    pid: child.pid ?? 0,
    port,
    logs,
    get: (path) => get(port, path),
    kill: (signal) => void child.kill(signal),
    async metric(name, labels = {}) {
      const { text } = await get(port, '/metrics');
      return sumOf(text, name, labels);
    },
    async stop(signal = 'SIGTERM') {
      if (child.exitCode === null && child.signalCode === null) child.kill(signal);
      await ended;
      return child.exitCode;
    },
  };
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

function portOf(logs: readonly string[]): number {
  for (const line of logs) {
    const match = /"port":(\d+)/.exec(line);
    if (match) return Number(match[1]);
  }
  return 0;
}

async function get(port: number, path: string): Promise<{ status: number; text: string }> {
  const { statusCode, body } = await request(`http://127.0.0.1:${port}${path}`);
  return { status: statusCode, text: await body.text() };
}

function sumOf(text: string, name: string, labels: Readonly<Record<string, string>>): number {
  let sum = 0;
  for (const line of text.split('\n')) {
    const match = /^([a-zA-Z_:]+)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (match?.[1] !== name) continue;
    const present = match[2] ?? '';
    if (Object.entries(labels).every(([key, value]) => present.includes(`${key}="${value}"`))) sum += Number(match[3]);
  }
  return sum;
}
