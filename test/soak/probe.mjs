/**
 * Loaded into the controller's process with `NODE_OPTIONS=--import`: at each SIGUSR2 it collects garbage and writes what the
 * process holds into the file `SOAK_PROBE`. Without a collection the heap of a program that does little rises for half an hour
 * before V8 looks at its old part. Nothing of the probe runs between two signals.
 */
import { renameSync, writeFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');
const file = process.env.SOAK_PROBE;
let number = 0;

process.on('SIGUSR2', () => {
  collect();
  const { heapUsed, external } = process.memoryUsage();
  const active = process.getActiveResourcesInfo();
  const timers = active.filter((name) => name === 'Timeout' || name === 'Immediate').length;
  const text = JSON.stringify({ number: ++number, heapUsed, external, timers, others: active.length - timers });
  writeFileSync(`${file}.next`, text);
  renameSync(`${file}.next`, file);
});
