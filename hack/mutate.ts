// Changes the sources in many small ways, and counts how many of the changes a test notices. Usage: npm run mutate --
// [--folder placement|oci|controllers] [--seed N] [--mutants 200] [--jobs 2] [--json FILE]. See hack/mutate/README.md.
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { FOLDER_NAMES, isFolderName } from './mutate/folders.ts';
import { draw } from './mutate/mutants.ts';
import type { Failure } from './mutate/protocol.ts';
import { countFolders, printLiving, printTable, type Row } from './mutate/report.ts';
import { createRunner, inParallel, without } from './mutate/runner.ts';
import { createWorkspace } from './mutate/workspace.ts';

const { values } = parseArgs({
  options: {
    folder: { type: 'string', multiple: true, default: [...FOLDER_NAMES] },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
    mutants: { type: 'string', default: '200' },
    jobs: { type: 'string', default: '2' },
    json: { type: 'string' },
  },
});

async function main(): Promise<number> {
  const [seed, count, jobs] = [Number(values.seed), Number(values.mutants), Number(values.jobs)];
  const folders = values.folder.filter(isFolderName);
  if (folders.length < values.folder.length || !Number.isInteger(seed) || !(count > 0) || !(jobs > 0)) {
    console.error(
      `usage: npm run mutate -- [--folder ${FOLDER_NAMES.join('|')}]… [--seed N] [--mutants 200] [--jobs 2] [--json FILE]`,
    );
    return 3;
  }
  console.log(`seed ${seed}`);
  const started = performance.now();
  const minutes = () => `${((performance.now() - started) / 60_000).toFixed(1)} min`;
  const workspace = await createWorkspace();
  try {
    const runner = createRunner(workspace.directory);
    const drawn = folders.flatMap((folder) => draw(workspace.mutants, folder, seed, count));
    const counted = drawn.filter(({ excluded }) => excluded === undefined);
    const testFiles = workspace.testsOf(new Set(counted.map(({ file }) => file)));
    const ids = counted.map(({ id }) => id);
    const { files, failures } = await runner.record(testFiles, ids, jobs);
    const tests = files.reduce((sum, file) => sum + file.tests.length, 0);
    console.log(`${tests} tests of ${files.length} files recorded (${minutes()})`);
    const reaching = files.filter(
      (file) => file.reached.length > 0 || file.tests.some((test) => test.reached.length > 0),
    );
    const failuresTogether: Failure[] = [];
    await inParallel(jobs, inShares(reaching, jobs), async (share) => {
      failuresTogether.push(...(await runner.control(share)));
    });
    const counting = without(failuresTogether, reaching);
    for (const { file, test, message } of [...failures, ...failuresTogether]) {
      const [line = ''] = message.split('\n', 1);
      console.log(`does not count, because it fails without a mutant: ${file}: ${test}: ${line}`);
    }
    console.log(`${reaching.length} files reach a mutant; they ran in ${jobs} processes (${minutes()})`);

    const rows: Row[] = [];
    const save = (): void => {
      const counts = countFolders(workspace.mutants, rows);
      if (values.json !== undefined) writeFileSync(values.json, JSON.stringify({ seed, counts, rows }, undefined, 1));
    };
    await inParallel(jobs, drawn, async (mutant) => {
      const judged = mutant.excluded === undefined ? await runner.judge(mutant.id, counting) : undefined;
      rows.push({ ...mutant, ...(judged ?? { verdict: 'excluded' }) });
      if (rows.length % 50 !== 0) return;
      console.log(`${rows.length} of ${drawn.length} (${minutes()})`);
      save();
    });

    const counts = countFolders(workspace.mutants, rows);
    console.log(`\n${printLiving(rows)}\n\n${printTable(counts)}\n\nseed ${seed}, ${minutes()}`);
    save();
    return 0;
  } finally {
    workspace.remove();
  }
}

function inShares<T>(items: readonly T[], shares: number): readonly (readonly T[])[] {
  return Array.from({ length: shares }, (_, share) => items.filter((_item, index) => index % shares === share));
}

process.exitCode = await main();
