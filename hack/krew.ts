/** Writes manifests/krew/archaware.yaml: `tsx hack/krew.ts`. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { krewManifest, PLACEHOLDER_SUM } from './executables/krew.ts';
import { PLACEHOLDER } from './release/names.ts';

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
const directory = new URL('../manifests/krew/', import.meta.url);
mkdirSync(directory, { recursive: true });
writeFileSync(
  new URL('archaware.yaml', directory),
  krewManifest(String(version), { url: PLACEHOLDER.downloads, homepage: PLACEHOLDER.source }, () => PLACEHOLDER_SUM),
);
