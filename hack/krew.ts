/** Writes manifests/krew/archaware.yaml: `tsx hack/krew.ts`. */
import { readFileSync, writeFileSync } from 'node:fs';
import { krewManifest, PLACEHOLDER_SUM } from './executables/krew.ts';
import { PLACEHOLDER } from './release/names.ts';

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
writeFileSync(
  new URL('../manifests/krew/archaware.yaml', import.meta.url),
  krewManifest(String(version), { url: PLACEHOLDER.downloads, homepage: PLACEHOLDER.source }, () => PLACEHOLDER_SUM),
);
