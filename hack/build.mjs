// Bundles src/main.ts and everything it imports into one file, dist/main.js, that needs no other file.
// With --metafile=FILE: writes there which files are in the bundle, as esbuild tells it.
// With --executables: hack/executables/main.ts into dist/executables/main.cjs, as the main of a single executable must be CommonJS.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { withoutUnused } from './without-unused.mjs';

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));

/**
 * V8 keeps the text of a program, with two bytes for each character if one of them needs it. Some comments and regular expressions do,
 * which esbuild does not escape.
 */
const inAscii = {
  name: 'in-ascii',
  setup(build) {
    build.initialOptions.write = false;
    build.onEnd(({ outputFiles = [] }) => {
      for (const { path, text } of outputFiles) {
        const escaped = text.replace(
          /[\u0080-\uffff]/g,
          (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
        );
        mkdirSync(dirname(path), { recursive: true });
        writeFileSync(path, escaped);
      }
    });
  },
};

const pathOf = (name) => fileURLToPath(new URL(`../${name}`, import.meta.url));
const common = {
  // The bundle names its files by their path from here: the same for every checkout.
  absWorkingDir: pathOf(''),
  bundle: true,
  platform: 'node',
  minifySyntax: true,
  plugins: [withoutUnused, inAscii],
  legalComments: 'none',
  define: { ARCHAWARE_VERSION: JSON.stringify(version) },
};

if (process.argv.includes('--executables')) {
  await build({
    ...common,
    entryPoints: [pathOf('hack/executables/main.ts')],
    outfile: pathOf('dist/executables/main.cjs'),
    target: 'node22',
    format: 'cjs',
    // yargs reads it, for texts in other languages, which are not used.
    define: { ...common.define, 'import.meta.url': '$moduleUrl' },
    banner: { js: "const $moduleUrl = require('node:url').pathToFileURL(__filename).href;" },
  });
} else {
  const described = process.argv.find((argument) => argument.startsWith('--metafile='))?.slice('--metafile='.length);
  const { metafile } = await build({
    ...common,
    metafile: described !== undefined,
    entryPoints: [pathOf('src/main.ts')],
    outfile: pathOf('dist/main.js'),
    target: 'node20.19',
    format: 'esm',
    // Some dependencies are CommonJS and call require for Node's own modules.
    banner: {
      js: "#!/usr/bin/env node\nimport { createRequire as $createRequire } from 'node:module'; const require = $createRequire(import.meta.url);",
    },
  });
  if (described !== undefined) writeFileSync(described, JSON.stringify(metafile));
}
