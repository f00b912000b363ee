import { cpus, loadavg } from 'node:os';
import { writeBetween } from '../../hack/write-between.ts';
import { at, text } from '../simulator/json.ts';
import { access } from './faults/access.ts';
import { answers } from './faults/answers.ts';
import { apiServer } from './faults/api-server.ts';
import { cluster } from './faults/cluster.ts';
import { leaders } from './faults/leaders.ts';
import { machine } from './faults/machine.ts';
import { registry } from './faults/registry.ts';
import { createDice, seedFrom } from './support/dice.ts';
import { type Fault, suffer } from './support/harness.ts';
import { type Lab, startLab } from './support/lab.ts';
import { type Row, tableOf } from './support/table.ts';

const DOCUMENT = new URL('../../docs/development/reliability.md', import.meta.url);
const seed = seedFrom(process.env.FAULTS_SEED);
/** Without the binaries of hack/cluster: everything that the simulator can do. */
const withoutReal = process.env.FAULTS_ON === 'simulator';
const faults: readonly Fault[] = [...apiServer, ...answers, ...leaders, ...access, ...machine, ...registry, ...cluster];
const rows: Row[] = [];
const versions: string[] = [];
const [began, [loadBefore = 0]] = [performance.now(), loadavg()];

console.log(`faults: seed ${seed} (FAULTS_SEED=${seed} repeats it)`);

for (const on of ['control plane', 'simulator'] as const) {
  const wanted = faults.filter((fault) => (fault.on ?? (withoutReal ? 'simulator' : 'control plane')) === on);
  if (withoutReal && on === 'control plane') continue;

  describe(`on the ${on === 'simulator' ? 'simulated' : 'real'} control plane, archaware comes back to the right state after`, () => {
    let lab: Lab;

    before(async () => {
      lab = await startLab(on);
      const { body } = await lab.cluster.request('GET', '/version');
      versions.push(`Kubernetes ${text(at(body, 'gitVersion'))} ${on === 'simulator' ? 'simulated' : 'real'}`);
    });

    after(() => lab?.stop());

    for (const fault of createDice(seed, on).shuffled(wanted)) {
      it(fault.name, async () => rows.push(await suffer(lab, fault, seed)));
    }
  });
}

after(async () => {
  const minutes = Math.round((performance.now() - began) / 60_000);
  const load = [loadBefore, loadavg()[0] ?? 0].map((value) => value.toFixed(1)).join(' and ');
  const shown = [
    `Seed ${seed}, ${rows.length} faults in ${minutes} minutes; ${cpus().length} cores (${cpus()[0]?.model.trim()}), load average`,
    `${load} at begin and end; Node.js ${process.version}, ${versions.join(', ')}.`,
    '',
    tableOf(rows),
  ].join('\n');
  console.log(`\n${shown}\n`);
  if (process.env.WRITE_TABLE) await writeBetween(DOCUMENT, 'faults', shown);
});
