// Loaded into the controller by the benchmark of tenants: writes the longest delay of its event loop, in milliseconds, to the file
// LOOP_DELAY_FILE. The CPU time between two timers is counted, because the machine may be busy with other processes.
import { writeFileSync } from 'node:fs';

const file = process.env.LOOP_DELAY_FILE;
const used = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
};

if (file !== undefined) {
  let longest = 0;
  let last = used();
  setInterval(() => {
    const now = used();
    longest = Math.max(longest, now - last);
    last = now;
  }, 1).unref();
  setInterval(() => writeFileSync(file, String(Math.round(longest))), 250).unref();
}
