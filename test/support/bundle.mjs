// Before all tests: builds dist/main.js, which some of them run, and bundles them into .cache/test. There a process of mocha loads what its
// files have in common from few files, once; one source after the other by tsx would take each of the processes five seconds.
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { withoutUnused } from '../../hack/without-unused.mjs';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const OUT = `${ROOT}.cache/test`;

/** A source finds what is next to it where it was. */
const asTheyWere = {
  name: 'as-they-were',
  setup({ onLoad }) {
    onLoad({ filter: /\.ts$/ }, ({ path }) => ({
      contents: readFileSync(path, 'utf8').replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href)),
      loader: 'ts',
    }));
  },
};

rmSync(OUT, { recursive: true, force: true });
const tests = readdirSync(`${ROOT}test`, { recursive: true }).filter((name) => name.endsWith('.test.ts'));
await Promise.all([
  import('../../hack/build.mjs'),
  build({
    absWorkingDir: ROOT,
    entryPoints: tests.map((name) => `test/${name}`),
    outbase: 'test',
    outdir: OUT,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    sourcemap: true,
    logLevel: 'error',
    // One that same-inputs.mjs configures, and some that are not whole, or not the same, once they are bundled.
    external: ['fast-check', 'nock', 'esbuild', 'tsx', '@cyclonedx/*', '@peculiar/x509'],
    plugins: [withoutUnused, asTheyWere],
    banner: {
      js: "import { createRequire as $createRequire } from 'node:module'; const require = $createRequire(import.meta.url);",
    },
  }),
]);
