import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { codeOf } from '../../kit/errors.ts';
import type { Need } from '../../kit/fairness/turns.ts';
import { printableAscii } from '../../kit/printable.ts';

/** A program of the operator that answers on standard output. */
export type Program = {
  /** A path, or a name that is searched in PATH. */
  readonly path: string;
  readonly args: readonly string[];
  readonly stdin: string;
  readonly env: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** The most bytes of standard output. */
  readonly maxOutput: number;
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

/** Windows has no process groups: there a program may leave the processes behind that it started. */
const HAS_GROUPS = process.platform !== 'win32';

/**
 * Runs a program without a shell, in a process group of its own. When this settles, no process of the group is left.
 *
 * @throws ProgramError if the program could not be started, was ended by a signal, wrote too much or took too long; the
 * signal's reason
 */
export function runProgram(program: Program): Promise<ProgramResult> {
  const { signal } = program;
  if (signal.aborted) return Promise.reject(signal.reason);
  return new Promise((resolve, reject) => {
    const child = start(program);
    const stdout: Buffer[] = [];
    const stderr: Buffer[] = [];
    let stdoutBytes = 0;
    let stderrBytes = 0;
    let failure: unknown;

    // A process that could not be started emits only this event. After any other error, an exit event follows.
    child.on('error', (error) => {
      if (child.pid === undefined) reject(notStarted(error));
    });
    if (child.pid === undefined) return;

    const killGroup = (): void => {
      try {
        if (!HAS_GROUPS) child.kill('SIGKILL');
        else if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      } catch {
        // No process of the group is left.
      }
    };
    const fail = (error: unknown): void => {
      failure ??= error;
      killGroup();
      // A process that left the group may still hold the pipes.
      child.stdout.destroy();
      child.stderr.destroy();
    };
    const abandon = (): void => fail(signal.reason);
    const timer = setTimeout(
      () => fail(new ProgramError(`did not answer within ${program.timeoutMs / 1000} s`)),
      program.timeoutMs,
    );
    signal.addEventListener('abort', abandon, { once: true });

    // A program that does not read its input has not failed.
    child.stdin.on('error', () => undefined);
    child.stdin.end(program.stdin);
    child.stdout.on('data', (chunk: Buffer) => {
      stdoutBytes += chunk.length;
      if (stdoutBytes > program.maxOutput) fail(new ProgramError(`answered with more than ${program.maxOutput} bytes`));
      else stdout.push(chunk);
    });
    child.stderr.on('data', (chunk: Buffer) => {
      if (stderrBytes < MAX_STDERR) stderr.push(chunk);
      stderrBytes += chunk.length;
    });
    // Processes that the program started and left behind would hold the pipes open until the deadline.
    child.on('exit', killGroup);
    child.on('close', (code, endedBy) => {
      clearTimeout(timer);
      signal.removeEventListener('abort', abandon);
      if (failure !== undefined) return reject(failure);
      if (code === null) return reject(new ProgramError(`was ended by ${endedBy ?? 'a signal'}`));
      resolve({
        code,
        stdout: Buffer.concat(stdout).toString('utf8'),
        stderr: Buffer.concat(stderr).subarray(0, MAX_STDERR).toString('utf8'),
      });
    });
  });
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

const PASSED_ON: ReadonlySet<string> = new Set(
  'PATH HOME USER LANG TMPDIR SSL_CERT_FILE SSL_CERT_DIR DOCKER_CONFIG HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy https_proxy no_proxy'.split(
    ' ',
  ),
);
/** Where programs on Windows find the system, and what belongs to the user. */
const PASSED_ON_WINDOWS: ReadonlySet<string> = new Set(
  'PATH PATHEXT SYSTEMROOT USERPROFILE APPDATA LOCALAPPDATA PROGRAMDATA TEMP TMP'.split(' '),
);
const PASSED_ON_PREFIXES = ['XDG_', 'AWS_', 'AZURE_', 'GOOGLE_', 'CLOUDSDK_', 'ECR_'];

/**
 * Returns the environment that programs get: paths, proxies and cloud identities, but no setting of the controller. Names have no
 * case on Windows, where the path is often called `Path`.
 */
export function programEnvironment(
  extra: Readonly<Record<string, string>> = {},
  platform: NodeJS.Platform = process.platform,
): Record<string, string> {
  const isKnown = (name: string) =>
    PASSED_ON.has(name) || (platform === 'win32' && PASSED_ON_WINDOWS.has(name.toUpperCase()));
  const environment: Record<string, string> = {};
  for (const [name, value] of Object.entries(process.env)) {
    const isPassedOn = isKnown(name) || PASSED_ON_PREFIXES.some((prefix) => name.startsWith(prefix));
    if (isPassedOn && value !== undefined) environment[name] = value;
  }
  return { ...environment, ...extra };
}
