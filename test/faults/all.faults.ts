import { writeBetween } from '../../hack/write-between.ts';
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

const DOCUMENT = new URL('../../docs/reliability.md', import.meta.url);
const seed = seedFrom(process.env.FAULTS_SEED);
/** Without the binaries of hack/cluster: everything that the simulator can do. */
const withoutReal = process.env.FAULTS_ON === 'simulator';
const faults: readonly Fault[] = [...apiServer, ...answers, ...leaders, ...access, ...machine, ...registry, ...cluster];
const rows: Row[] = [];

console.log(`faults: seed ${seed} (FAULTS_SEED=${seed} repeats it)`);

for (const on of ['control plane', 'simulator'] as const) {
  const wanted = faults.filter((fault) => (fault.on ?? (withoutReal ? 'simulator' : 'control plane')) === on);
  if (withoutReal && on === 'control plane') continue;

  describe(`on the ${on === 'simulator' ? 'simulated' : 'real'} control plane, archaware comes back to the right state after`, () => {
    let lab: Lab;

    before(async () => {
      lab = await startLab(on);
    });

    after(() => lab?.stop());

    for (const fault of createDice(seed, on).shuffled(wanted)) {
      it(fault.name, async () => {
        rows.push(await suffer(lab, fault, seed));
      });
    }
  });
}

after(async () => {
  const table = tableOf(rows);
  console.log(`\nSeed ${seed}\n\n${table}\n`);
  if (process.env.WRITE_TABLE) await writeBetween(DOCUMENT, 'faults', `Seed ${seed}.\n\n${table}`);
});
