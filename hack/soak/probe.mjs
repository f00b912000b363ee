/**
 * Loaded into the controller's process with `NODE_OPTIONS=--import`: at each SIGUSR2 it writes what the process holds into the
 * file `SOAK_PROBE`. Nothing of it runs between two signals.
 */
import { renameSync, writeFileSync } from 'node:fs';

const file = process.env.SOAK_PROBE;
let number = 0;

process.on('SIGUSR2', () => {
  const { heapUsed, external } = process.memoryUsage();
  const active = process.getActiveResourcesInfo();
  const timers = active.filter((name) => name === 'Timeout' || name === 'Immediate').length;
  const text = JSON.stringify({ number: ++number, heapUsed, external, timers, others: active.length - timers });
  writeFileSync(`${file}.next`, text);
  renameSync(`${file}.next`, file);
});
