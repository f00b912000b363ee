import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { open, readFile } from 'node:fs/promises';
import { constants, homedir } from 'node:os';
import { join } from 'node:path';
import { waitFor } from './wait.ts';

/** Where `build.sh` puts the binaries. */
export const binaries = (): string => process.env.ARCHAWARE_BIN ?? join(homedir(), '.cache', 'archaware', 'bin');

/** The minor version of the older Kubernetes that the control plane should have (`1.36`); undefined: that of build.sh. */
export const olderKubernetes = (): string | undefined => process.env.ARCHAWARE_KUBERNETES || undefined;

/** The first minor version of Kubernetes 1 that serves MutatingAdmissionPolicies. */
export const FIRST_WITH_MUTATING_POLICIES = 36;

/** Whether the control plane serves MutatingAdmissionPolicies, which the single manifest and the overlay `taints` need. */
export function hasMutatingPolicies(): boolean {
  const minor = olderKubernetes()?.split('.')[1];
  return minor === undefined || Number(minor) >= FIRST_WITH_MUTATING_POLICIES;
}

export interface ComponentOptions {
  /** The name of the binary and of its log. */
  readonly name: string;
  /** A command that runs the following words as its child, in other namespaces. */
  readonly enter?: readonly string[];
  readonly args: readonly string[];
  /** The directory of `NAME.log` (standard error) and `NAME.out.log` (standard output); both are appended to. */
  readonly directory: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Called again and again until it returns true; without it the component counts as ready at once. */
  readonly ready?: () => Promise<boolean>;
  readonly signal?: AbortSignal;
}

/** A running process. */
export interface Component {
  readonly name: string;
  readonly pid: number;
  readonly running: boolean;
  /** For tests of a component that hangs: SIGSTOP and SIGCONT. */
  kill(signal: NodeJS.Signals): void;
  /** Ends it and waits until it has ended. With `graceMs` it may end by itself, on SIGTERM, within that time. */
  stop(graceMs?: number): Promise<void>;
  /** The parent process no longer waits for its end, and ends it when the parent itself ends. */
  unref(): void;
}

const startTimeoutMs = 60_000;
const logLinesShown = 15;

/**
 * Starts a binary and waits until it is ready. If it does not become ready, throws with its name and the end of its
 * log.
 */
export async function startComponent(options: ComponentOptions): Promise<Component> {
  const child = await spawnLogged(binary(options.name), options);
  const component = componentOf(options.name, child, options.enter !== undefined);
  try {
    await becomeReady(component, options);
    return component;
  } catch (error) {
    await component.stop();
    if (options.signal?.aborted) throw error;
    throw new Error(await startFailure(options, child, error), { cause: error });
  }
}

const versioned: ReadonlySet<string> = new Set(['kube-apiserver', 'kube-controller-manager', 'kube-scheduler']);

/** Returns the path of a binary of build.sh, build-node.sh or build-versions.sh. */
function binary(name: string): string {
  const older = versioned.has(name) ? olderKubernetes() : undefined;
  const [places, script] = older ? [[older], 'build-versions.sh'] : [['', 'node'], 'build.sh'];
  const found = places.map((place) => join(binaries(), place, name)).find(existsSync);
  if (found) return found;
  throw new Error(
    `${name} is not in ${join(binaries(), places[0] ?? '')}: run hack/cluster/${script}, or set ARCHAWARE_BIN`,
  );
}

async function spawnLogged(command: string, options: ComponentOptions): Promise<ChildProcess> {
  const { name, args, directory, env, enter = [] } = options;
  const [program = command, ...rest] = [...enter, command, ...args];
  const [out, err] = await Promise.all([
    open(join(directory, `${name}.out.log`), 'a'),
    open(logFile(directory, name), 'a'),
  ]);
  try {
    const child = spawn(program, rest, { stdio: ['ignore', out.fd, err.fd], env: { ...process.env, ...env } });
    // A failed spawn shows as a process without an id; the listener prevents an unhandled error.
    child.on('error', () => undefined);
    if (child.pid === undefined) throw new Error(`${command} cannot be started`);
    endWithParent(child);
    return child;
  } finally {
    await Promise.all([out.close(), err.close()]);
  }
}

const logFile = (directory: string, name: string) => join(directory, `${name}.log`);
const isRunning = (child: ChildProcess) => child.exitCode === null && child.signalCode === null;

/** Returns the id of the process itself: with other namespaces, the spawned process only waits for it. */
function pidOf(child: ChildProcess, entered: boolean): number {
  const pid = child.pid ?? 0;
  if (!entered || !isRunning(child)) return pid;
  try {
    return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ')[0]) || pid;
  } catch {
    return pid;
  }
}

function componentOf(name: string, child: ChildProcess, entered: boolean): Component {
  const gone = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
  });
  const kill = (signal: NodeJS.Signals) => {
    const pid = pidOf(child, entered);
    // The process that waits for a stopped one is stopped as well, and would not notice that it goes on, or ends.
    if (pid === child.pid || signal === 'SIGKILL' || signal === 'SIGCONT') child.kill(signal);
    if (pid !== child.pid) send(pid, signal);
  };
  return {
    name,
    get pid() {
      return pidOf(child, entered);
    },
    get running() {
      return isRunning(child);
    },
    kill,
    async stop(graceMs = 0) {
      if (!isRunning(child)) return;
      if (graceMs > 0) kill('SIGTERM');
      const timer = setTimeout(() => kill('SIGKILL'), graceMs);
      await gone;
      clearTimeout(timer);
    },
    unref: () => child.unref(),
  };
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has just ended.
  }
}

async function becomeReady(component: Component, { name, ready, signal }: ComponentOptions): Promise<void> {
  const state = await waitFor(
    `${name} to become ready`,
    async () => (component.running ? (await ready?.()) !== false && 'ready' : 'ended'),
    startTimeoutMs,
    signal,
  );
  if (state === 'ended') throw new Error('it ended');
}

async function startFailure(
  { directory, name }: ComponentOptions,
  child: ChildProcess,
  error: unknown,
): Promise<string> {
  // stop() has ended a process that was only late; only an exit code is the process's own.
  const how =
    child.exitCode === null ? (error instanceof Error ? error.message : 'unknown') : `exit code ${child.exitCode}`;
  const lines = (await readFile(logFile(directory, name), 'utf8')).trimEnd().split('\n').slice(-logLinesShown);
  return `${name} did not start (${how}); the end of ${name}.log:\n${lines.join('\n')}`;
}

/** Every child that must end with this process, however this one ends (except by SIGKILL). */
const children = new Set<ChildProcess>();
const killAll = () => {
  for (const child of children) child.kill('SIGKILL');
};

function endWithParent(child: ChildProcess): void {
  if (children.size === 0) watchParent('on');
  children.add(child);
  child.once('exit', () => {
    children.delete(child);
    if (children.size === 0) watchParent('off');
  });
}

const signals: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];

function watchParent(change: 'on' | 'off'): void {
  // Before all other listeners, because another one removes the directories.
  if (change === 'on') process.prependListener('exit', killAll);
  else process.off('exit', killAll);
  for (const signal of signals) process[change](signal, onSignal);
}

/**
 * A listener removes the default action of a signal. If this is the only listener, the process ends as it would have
 * without it.
 */
function onSignal(signal: NodeJS.Signals): void {
  if (process.listenerCount(signal) === 1) process.exit(128 + constants.signals[signal]);
}
