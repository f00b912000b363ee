/**
 * The command line run in the process of the test: nothing is spawned, and time may pass faster. `controller-process.ts` is the same
 * for `node dist/main.js`.
 */
import type { Surroundings } from '../../src/app/surroundings.ts';
import { runCommandLine } from '../../src/cli/command-line.ts';
import { PROGRAM } from '../../src/cli/program.ts';
import type { Clock } from '../../src/kit/clock.ts';
import type { Finished } from './controller-process.ts';
import { patientClock } from './patient-clock.ts';
import { follow, type RunningController } from './running.ts';

export type InProcessOptions = {
  readonly environment?: Readonly<Record<string, string>>;
  /** What is typed. */
  readonly input?: string;
  /** Gets what a terminal shows in its last line; without it standard error is no terminal. */
  readonly shown?: string[];
  /** The answers at a terminal, in order; without them there is no terminal. */
  readonly answers?: readonly string[];
  /** The command line of the controller, as if this command ran inside its container. */
  readonly controllerWords?: readonly string[];
  /** The width of the terminal to which results go; without it there is none. */
  readonly columns?: number;
  readonly clock?: Clock;
  readonly program?: string;
};

/** Runs a command to its end. */
export async function runInProcess(args: readonly string[], options: InProcessOptions = {}): Promise<Finished> {
  const { surroundings, stdout, stderr } = surround(options);
  const code = await runCommandLine(args, surroundings);
  return { code, stdout: stdout(), stderr: stderr() };
}

/** Starts the controller and waits until it is ready. Throws with its log if it ends before. */
export async function startInProcess(
  args: readonly string[],
  options: InProcessOptions = {},
): Promise<RunningController> {
  const end = new AbortController();
  const { surroundings, stderr } = surround(options, end.signal);
  let code: number | undefined;
  const ended = runCommandLine(['run', '--metrics.address', '127.0.0.1:0', ...args], surroundings).then((result) => {
    code = result;
    return result;
  });
  return follow({ pid: process.pid, stderr, exitCode: () => code, kill: () => end.abort(), ended });
}

function surround(options: InProcessOptions, signal: AbortSignal = new AbortController().signal) {
  const output = { stdout: '', stderr: '' };
  const answers = [...(options.answers ?? [])];
  const surroundings: Surroundings = {
    program: options.program ?? PROGRAM,
    environment: options.environment ?? {},
    print(text) {
      output.stdout += text;
    },
    note(line) {
      output.stderr += `${line}\n`;
    },
    status: options.shown && ((line) => void options.shown?.push(line)),
    readInput: async () => options.input ?? '',
    ask:
      options.answers === undefined
        ? undefined
        : async (question) => {
            const answer = answers.shift() ?? '';
            output.stderr += `${question} [y/N] ${answer}\n`;
            return answer === 'y';
          },
    columns: options.columns,
    colors: false,
    controllerWords: options.controllerWords,
    log: {
      write(line) {
        output.stderr += line;
      },
    },
    // It would slow down every later test of this process.
    keepHeapSmall() {},
    received() {},
    clock: options.clock ?? patientClock(),
    signal,
  };
  return { surroundings, stdout: () => output.stdout, stderr: () => output.stderr };
}
