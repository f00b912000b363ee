import { setTimeout as delay } from 'node:timers/promises';
import { request } from 'undici';
import { PATIENCE_MS } from '../simulator/client.ts';

/** A running controller, in a process of its own or in the one of the test. */
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

/** Whether it says that it leads. */
export const leads = async (controller: RunningController): Promise<boolean> =>
  (await controller.metric('archaware_leader')) === 1;

/** What a running controller is followed by. */
type Running = {
  readonly pid: number;
  readonly stderr: () => string;
  readonly exitCode: () => number | undefined;
  readonly kill: (signal: NodeJS.Signals) => void;
  readonly ended: Promise<number | null>;
};

/** Waits until a controller is ready, and returns what can be done with it. Throws with its log if it ends before. */
export async function follow({ pid, stderr, exitCode, kill, ended }: Running): Promise<RunningController> {
  const logs = () =>
    stderr()
      .split('\n')
      .filter((line) => line !== '');
  const deadline = performance.now() + PATIENCE_MS;
  let port = 0;
  for (;;) {
    if (exitCode() !== undefined) throw new Error(`the controller ended with ${exitCode()}:\n${stderr()}`);
    if (performance.now() > deadline) throw new Error(`the controller is not ready:\n${stderr()}`);
    port ||= portOf(logs());
    if (port > 0 && (await get(port, '/readyz').catch(() => undefined))?.status === 200) break;
    await delay(10);
  }
  return {
    pid,
    port,
    logs,
    get: (path) => get(port, path),
    kill,
    async metric(name, labels = {}) {
      const { text } = await get(port, '/metrics');
      return sumOf(text, name, labels);
    },
    async stop(signal = 'SIGTERM') {
      kill(signal);
      return ended;
    },
  };
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
