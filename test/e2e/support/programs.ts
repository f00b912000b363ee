import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { text } from 'node:stream/consumers';

/** A program's name or path, and arguments that always come first. */
export type Program = readonly [string, ...string[]];

/** Whether a program can be found. */
export function isInstalled(name: string): boolean {
  return (process.env.PATH ?? '').split(delimiter).some((directory) => existsSync(join(directory, name)));
}

/** Runs a program to its end and returns its output. Throws with all of it if the program fails. */
export function run([command, ...first]: Program, ...args: readonly string[]): Promise<string> {
  return runWith({}, [command, ...first], ...args);
}

/** As `run`, with additional variables. */
export async function runWith(
  environment: Readonly<Record<string, string>>,
  [command, ...first]: Program,
  ...args: readonly string[]
): Promise<string> {
  const child = spawn(command, [...first, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...environment },
  });
  const closed = once(child, 'close');
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), closed]);
  if (child.exitCode === 0) return stdout;
  throw new Error(`${[command, ...first, ...args].join(' ')} ended with ${child.exitCode}:\n${stdout}${stderr}`);
}
