import { readFileSync } from 'node:fs';

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
    return mebibytes(pid, 'VmHWM');
  } catch {
    return 0;
  }
}

function mebibytes(pid: number, field: string): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(status)?.[1] ?? Number.NaN) / 1024;
}
