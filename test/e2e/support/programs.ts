import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { binaries } from '../../../hack/cluster/spawn.ts';
import { run as runProgram } from '../../../hack/programs.ts';

/** A program's name or path, and arguments that always come first. */
export type Program = readonly [string, ...string[]];

/** Whether a program can be found. */
export function isInstalled(name: string): boolean {
  return (process.env.PATH ?? '').split(delimiter).some((directory) => existsSync(join(directory, name)));
}

/** For `before`: without programs beside the binaries of the cluster a reason to skip, in CI a failure. `builds`: what puts them there. */
export function needsBinaries(context: Mocha.Context, builds: string, programs: readonly string[]): void {
  const missing = programs.filter((program) => !existsSync(join(binaries(), program)));
  if (missing.length === 0) return;
  const problem = `not in ${binaries()}: ${missing.join(', ')}; run ${builds}`;
  if (process.env.CI !== undefined) throw new Error(problem);
  console.log(`      ${problem}`);
  context.skip();
}

/** Runs a program to its end and returns its output. Throws with the end of it if the program fails. */
export const run = (program: Program, ...args: readonly string[]): Promise<string> => runWith({}, program, ...args);

/** As `run`, with additional variables. */
export const runWith = (
  env: Readonly<Record<string, string>>,
  [command, ...first]: Program,
  ...args: readonly string[]
): Promise<string> => runProgram(command, [...first, ...args], { env });
