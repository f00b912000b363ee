// Loaded into the controller by the benchmark of tenants: writes the longest time without a timer, in milliseconds, to the file
// LOOP_DELAY_FILE, and begins again at SIGUSR2. The CPU time of the main thread is counted, because the machine is busy with the
// control plane as well.
import { readFileSync, writeFileSync } from 'node:fs';

const file = process.env.LOOP_DELAY_FILE;
/** Milliseconds of CPU time of the main thread. */
const used = () => Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6;

if (file !== undefined) {
  let longest = 0;
  let last = used();
  setInterval(() => {
    const now = used();
    longest = Math.max(longest, now - last);
    last = now;
  }, 1).unref();
  setInterval(() => writeFileSync(file, String(Math.round(longest))), 250).unref();
  process.on('SIGUSR2', () => {
    longest = 0;
  });
}
