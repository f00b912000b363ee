import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startCluster } from './cluster.ts';
import { at } from './json.ts';
import { startRegistry } from './registry.ts';
import { waitFor } from './wait.ts';

// `start` leaves a process of its own behind (`serve`), which holds the cluster and a registry until `stop`.

const home = process.env.ARCHAWARE_CLUSTER ?? join(homedir(), '.cache', 'archaware', 'cluster');
const stateFile = join(home, 'state.json');
const startTimeoutMs = 120_000;

const isReal = process.argv.slice(3).join(' ') === '--node real';

async function serve(): Promise<void> {
  const quit = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => quit.abort());
  const real = isReal ? ({ node: 'real' } as const) : {};
  const cluster = await startCluster({ directory: join(home, 'cluster'), signal: quit.signal, ...real });
  const { server, kubeconfig, node } = cluster;
  const registry = await startRegistry(node ? { node } : { directory: join(home, 'registry') });
  for (const architecture of ['amd64', 'arm64'].filter((one) => one !== node?.architecture)) {
    await cluster.createNode({ name: `${architecture}-1`, architecture });
  }
  const host = [registry.host, ...(registry.nodeHost ? [`on the node ${registry.nodeHost}`] : [])].join(', ');
  await writeFile(stateFile, JSON.stringify({ pid: process.pid, server, kubeconfig, registry: host }));
  // Child processes keep this process alive only while they run; it must stay until it is stopped.
  const alive = setInterval(() => undefined, 2 ** 30);
  if (!quit.signal.aborted) await once(quit.signal, 'abort');
  clearInterval(alive);
  await Promise.all([cluster.stop(), registry.remove()]);
  await rm(stateFile, { force: true });
}

async function start(): Promise<void> {
  const running = await state();
  if (running) return print(running);
  const begun = performance.now();
  await mkdir(home, { recursive: true, mode: 0o700 });
  await rm(stateFile, { force: true });
  const log = openSync(join(home, 'serve.log'), 'w');
  const script = fileURLToPath(import.meta.url);
  const child = spawn(process.execPath, [...process.execArgv, script, 'serve', ...process.argv.slice(3)], {
    detached: true,
    stdio: ['ignore', log, log],
  });
  child.unref();
  const ended = async () => (child.exitCode !== null || child.signalCode !== null ? ('ended' as const) : undefined);
  const result = await waitFor('the cluster', async () => (await state()) ?? (await ended()), startTimeoutMs);
  if (result === 'ended') throw new Error((await readFile(join(home, 'serve.log'), 'utf8')).trim());
  console.log(`ready after ${((performance.now() - begun) / 1000).toFixed(1)} s`);
  print(result);
}

async function stop(): Promise<void> {
  const running = await state();
  if (!running) return console.log('not running');
  process.kill(running.pid, 'SIGTERM');
  await waitFor('the cluster to stop', async () => !isAlive(running.pid));
  console.log('stopped');
}

interface State {
  readonly pid: number;
  readonly server: string;
  readonly kubeconfig: string;
  readonly registry: string;
}

async function state(): Promise<State | undefined> {
  const content: unknown = JSON.parse(await readFile(stateFile, 'utf8').catch(() => 'null'));
  const [pid, server, kubeconfig, registry] = ['pid', 'server', 'kubeconfig', 'registry'].map((key) =>
    at(content, key),
  );
  if (typeof pid !== 'number' || !isAlive(pid)) return undefined;
  return { pid, server: String(server), kubeconfig: String(kubeconfig), registry: String(registry) };
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

function print({ pid, server, kubeconfig, registry }: State): void {
  console.log(`server    ${server} (process ${pid})`);
  console.log(`registry  ${registry}`);
  console.log(`logs      ${dirname(kubeconfig)}`);
  console.log(`export KUBECONFIG=${kubeconfig}`);
}

async function status(): Promise<void> {
  const running = await state();
  if (running) return print(running);
  console.log('not running');
  process.exitCode = 1;
}

const commands: Readonly<Record<string, () => Promise<void>>> = { start, stop, status, serve };

const command = commands[process.argv[2] ?? ''];
if (command) {
  command().catch((error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    process.exit(1);
  });
} else {
  console.error('usage: npx tsx hack/cluster/main.ts start [--node real]|stop|status');
  process.exitCode = 2;
}
