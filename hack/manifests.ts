/**
 * Generates the single manifests from manifests/kustomize: `tsx hack/manifests.ts`. With `--check` it writes nothing;
 * the exit code is 1 if a file is out of date.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { singleManifests } from './manifests/single.ts';

const changed: string[] = [];
for (const { file, content } of await singleManifests()) {
  if ((await readFile(file, 'utf8').catch(() => '')) === content) continue;
  changed.push(fileURLToPath(file));
  if (!process.argv.includes('--check')) await writeFile(file, content);
}
for (const file of changed)
  process.stdout.write(`${file} ${process.argv.includes('--check') ? 'differs' : 'written'}\n`);
if (process.argv.includes('--check') && changed.length > 0) {
  process.stderr.write('the manifests are not what manifests/kustomize makes: run npx tsx hack/manifests.ts\n');
  process.exitCode = 1;
}
