/**
 * Writes the architectures into the policies of manifests/kustomize, and generates the single manifests from it: `tsx hack/manifests.ts`. With `--check` it writes nothing;
 * the exit code is 1 if a file is out of date.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { policies } from './manifests/policies.ts';
import { singleManifests } from './manifests/single.ts';

const changed: string[] = [];
// The single manifests are made from the policies, so these come first.
for (const generated of [policies, singleManifests]) {
  for (const { file, content } of await generated()) {
    if ((await readFile(file, 'utf8').catch(() => '')) === content) continue;
    changed.push(fileURLToPath(file));
    if (!process.argv.includes('--check')) await writeFile(file, content);
  }
}
for (const file of changed)
  process.stdout.write(`${file} ${process.argv.includes('--check') ? 'differs' : 'written'}\n`);
if (process.argv.includes('--check') && changed.length > 0) {
  process.stderr.write('the manifests are not what manifests/kustomize makes: run npx tsx hack/manifests.ts\n');
  process.exitCode = 1;
}
