/** Runs other programs. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { binaries } from './cluster/spawn.ts';

/** How a program ended. `code` is null if a signal ended it. */
type Ended = { readonly code: number | null; readonly stdout: string; readonly stderr: string };

type RunOptions = {
  /** The folder in which it runs; without it, ours. */
  readonly cwd?: string;
  /** Variables in addition to ours. */
  readonly env?: Readonly<Record<string, string>>;
  /** The text for its standard input; without it the input is empty. */
  readonly input?: string;
  /** Shows what it writes to standard error at once; it is then missing in the result. */
  readonly loud?: boolean;
};

/** Runs a program to its end. Throws only if it cannot be started. */
export async function attempt(program: string, args: readonly string[], options: RunOptions = {}): Promise<Ended> {
  const child = spawn(program, args, {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    stdio: ['pipe', 'pipe', options.loud === true ? 'inherit' : 'pipe'],
  });
  const closed = once(child, 'close');
  // It may end before it has read all of its input; its exit code is more useful than EPIPE.
  child.stdin?.on('error', () => undefined).end(options.input);
  const [stdout, stderr] = await Promise.all([textOf(child.stdout), textOf(child.stderr), closed]);
  return { code: child.exitCode, stdout, stderr };
}

/** Runs a program to its end and returns its output. Throws with the end of what it wrote if it fails. */
export async function run(program: string, args: readonly string[], options: RunOptions = {}): Promise<string> {
  const { code, stdout, stderr } = await attempt(program, args, options);
  if (code === 0) return stdout;
  const wrote = lastLines(`${stdout}${stderr}`, 20);
  throw new Error(
    `${[program, ...args].join(' ')}\nended with ${code ?? 'a signal'}${wrote === '' ? '' : `:\n${wrote}`}`,
  );
}

/** The path of a program on the PATH, or undefined. */
export async function findProgram(name: string): Promise<string | undefined> {
  for (const directory of (process.env.PATH ?? '').split(delimiter)) {
    const path = join(directory, name);
    if (await isExecutable(path)) return path;
  }
  return undefined;
}

/** Whether the file exists and may be run. */
export async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

/** The folder into which hack/release/build-tools.sh builds. */
export function toolsFolder(): string {
  return join(binaries(), 'release');
}

/** The path of a program that hack/release/build-tools.sh builds. */
export function tool(name: 'cosign' | 'crane'): string {
  return join(toolsFolder(), name);
}

/** The last lines of a text. */
export function lastLines(output: string, count: number): string {
  return output.trim().split('\n').slice(-count).join('\n');
}

/** The message of what was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function textOf(stream: NodeJS.ReadableStream | null): Promise<string> {
  return stream === null ? Promise.resolve('') : text(stream);
}
