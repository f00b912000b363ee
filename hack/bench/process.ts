import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

/** The clock ticks of a second in /proc (sysconf(_SC_CLK_TCK), 100 on every Linux that Node.js runs on). */
const TICKS = 100;

/** Returns the CPU time of a process with all its threads since its start, in milliseconds (utime and stime). */
export function cpuOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The second field is the name in brackets, which may contain spaces; utime and stime are the fields 14 and 15.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS;
}

/** Returns the memory that a process uses now, in MiB (VmRSS). */
export function residentOf(pid: number): number {
  return mebibytes(pid, 'VmRSS');
}

/** Returns the most memory that a process ever used, in MiB (VmHWM); 0 if the process has ended. */
export function peakOf(pid: number): number {
  try {
    // A process that has ended but was not waited for yet has a status without memory.
    return mebibytes(pid, 'VmHWM') || 0;
  } catch {
    return 0;
  }
}

function mebibytes(pid: number, field: string): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(status)?.[1] ?? Number.NaN) / 1024;
}

/** A finished run of a command: its time, the most memory that it used (VmHWM), and its output. */
export type Finished = {
  readonly seconds: number;
  readonly peakMiB: number;
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
};

/** Runs the built program with these arguments to its end. */
export async function runToEnd(args: readonly string[]): Promise<Finished> {
  const started = performance.now();
  const child = spawn(process.execPath, [MAIN, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  let peakMiB = 0;
  // The figure is gone with the process, so this reads it often.
  const reading = setInterval(() => {
    peakMiB = Math.max(peakMiB, peakOf(child.pid ?? 0));
  }, 20);
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  clearInterval(reading);
  return { seconds: (performance.now() - started) / 1000, peakMiB, code: child.exitCode, stdout, stderr };
}
