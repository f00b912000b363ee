import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { onAbort } from '../../kit/abort.ts';
import { codeOf } from '../../kit/errors.ts';
import type { Need } from '../../kit/fairness/turns.ts';
import { printableAscii } from '../../kit/printable.ts';

/** A program of the operator that answers on standard output. */
export type Program = {
  /** A path, or a name that is searched in PATH. */
  readonly path: string;
  readonly args: readonly string[];
  readonly stdin: string;
  readonly env: NodeJS.ProcessEnv;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
};

export type ProgramResult = {
  readonly code: number;
  readonly stdout: string;
  /** The beginning of standard error. */
  readonly stderr: string;
};

/** Why a program gave no answer. The message contains nothing of its standard output. */
export class ProgramError extends Error {
  override readonly name = 'ProgramError';
}

/** Two programs at once, over all helpers and plug-ins: that of a cloud takes 40 MB, and authors of pods choose how many images there are. */
export const PROGRAM: readonly Need[] = [['programs', 2]];

const MAX_STDERR = 4096;
const MAX_OUTPUT = 1024 * 1024;

/** Windows has no process groups: there a program may leave the processes behind that it started. */
const HAS_GROUPS = process.platform !== 'win32';

/**
 * Runs a program without a shell, in a process group of its own. When this settles, no process of the group is left.
 *
 * @throws ProgramError if the program could not be started, was ended by a signal, wrote too much or took too long; the signal's reason
 */
export async function runProgram(program: Program): Promise<ProgramResult> {
  const { signal, stdin, timeoutMs } = program;
  signal.throwIfAborted();
  const child = start(program);
  if (child.pid === undefined) throw notStarted((await once(child, 'error'))[0]);
  const group = child.pid;
  let failure: { readonly error: unknown } | undefined;

  const killGroup = (): void => {
    try {
      if (HAS_GROUPS) process.kill(-group, 'SIGKILL');
      else child.kill('SIGKILL');
    } catch {
      // No process of the group is left.
    }
  };
  const fail = (error: unknown): void => {
    failure ??= { error };
    killGroup();
    // A process that left the group may still hold the pipes.
    child.stdout.destroy();
    child.stderr.destroy();
  };
  const late = new ProgramError(`did not answer within ${timeoutMs / 1000} s`);
  const timer = setTimeout(() => fail(late), timeoutMs);
  const forget = onAbort(signal, () => fail(signal.reason));
  // A program that does not read its input has not failed.
  child.stdin.on('error', () => undefined).end(stdin);
  const stdout = collect(child.stdout, MAX_OUTPUT, () => {
    fail(new ProgramError(`answered with more than ${MAX_OUTPUT} bytes`));
  });
  const stderr = collect(child.stderr, MAX_STDERR, () => undefined);
  // Processes that the program started and left behind would hold the pipes open until the deadline.
  child.on('exit', killGroup);
  const [code, endedBy] = await once(child, 'close').finally(() => {
    clearTimeout(timer);
    forget();
  });
  if (failure !== undefined) throw failure.error;
  if (code === null) throw new ProgramError(`was ended by ${endedBy ?? 'a signal'}`);
  return { code, stdout: stdout(), stderr: stderr() };
}

/** Keeps the beginning of what a stream gives. */
function collect(stream: Readable, most: number, onMore: () => void): () => string {
  const chunks: Buffer[] = [];
  let bytes = 0;
  stream.on('data', (chunk: Buffer) => {
    if (bytes < most) chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > most) onMore();
  });
  return () => Buffer.concat(chunks).toString('utf8', 0, most);
}

/** @throws ProgramError for arguments that the system does not accept, for example because they are too long */
function start({ path, args, env }: Program): ChildProcessWithoutNullStreams {
  try {
    return spawn(path, args, { env, stdio: 'pipe', detached: HAS_GROUPS, windowsHide: true });
  } catch (error) {
    throw notStarted(error);
  }
}

function notStarted(error: unknown): ProgramError {
  const code = codeOf(error) || 'error';
  return new ProgramError(`could not be started (${code === 'ENOENT' ? 'ENOENT: it does not exist' : code})`);
}

/** Returns the error of a program that ended by itself, with the last line that it wrote to standard error. */
export function endedWith({ code, stderr }: ProgramResult): ProgramError {
  const line = stderr.trim().split('\n').at(-1)?.trim() ?? '';
  return new ProgramError(`ended with code ${code}${line === '' ? '' : `: ${printableAscii(line, 200)}`}`);
}

const PASSED_ON =
  /^(PATH|HOME|USER|LANG|TMPDIR|SSL_CERT_(FILE|DIR)|DOCKER_CONFIG|(HTTPS?|NO)_PROXY|(https?|no)_proxy|(XDG|AWS|AZURE|GOOGLE|CLOUDSDK|ECR)_.*)$/s;
/** Where programs on Windows find the system, and what belongs to the user. Names have no case there; the path is often called `Path`. */
const PASSED_ON_WINDOWS = /^(PATH|PATHEXT|SYSTEMROOT|USERPROFILE|APPDATA|LOCALAPPDATA|PROGRAMDATA|TEMP|TMP)$/i;

/** Returns the environment that programs get: paths, proxies and cloud identities, but no setting of the controller. */
export function programEnvironment(
  extra: Readonly<Record<string, string>> = {},
  platform: NodeJS.Platform = process.platform,
): NodeJS.ProcessEnv {
  const isPassedOn = ([name]: readonly [string, unknown]) =>
    PASSED_ON.test(name) || (platform === 'win32' && PASSED_ON_WINDOWS.test(name));
  return { ...Object.fromEntries(Object.entries(process.env).filter(isPassedOn)), ...extra };
}
