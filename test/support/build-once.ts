import { readdirSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const BUILD = new URL('../../hack/build.mjs', import.meta.url).href;

// Random inputs are the same in each run, so that `npm test` says the same of the same sources.
fc.configureGlobal({ seed: Number(process.env.PROPERTY_SEED ?? 1) });

/** Before the first test: some of them run dist/main.js. Builds it where a source is newer. */
export async function mochaGlobalSetup(): Promise<void> {
  if (changed(`${ROOT}dist/main.js`) < Math.max(...sources().map(changed))) await import(BUILD);
}

function sources(): string[] {
  const files = readdirSync(`${ROOT}src`, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const named = ['package.json', 'package-lock.json', 'hack/build.mjs'].map((name) => ROOT + name);
  return [...files.map(({ parentPath, name }) => `${parentPath}/${name}`), ...named];
}

/** When it was changed, in milliseconds since the epoch; never, where it is not there. */
function changed(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}
