/**
 * Generates the parts of the Helm chart whose sources are elsewhere: `tsx hack/chart.ts`. With `--check` it writes
 * nothing; the exit code is 1 if a file is out of date.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { chartFiles } from './chart/files.ts';

const check = process.argv.includes('--check');
for (const { file, content } of await chartFiles()) {
  if ((await readFile(file, 'utf8').catch(() => '')) === content) continue;
  process.stdout.write(`${fileURLToPath(file)} ${check ? 'differs' : 'written'}\n`);
  if (check) {
    process.stderr.write('the chart is not what the sources say: run npx tsx hack/chart.ts\n');
    process.exitCode = 1;
  } else {
    await mkdir(new URL('.', file), { recursive: true });
    await writeFile(file, content);
  }
}
