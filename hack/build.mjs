// Bundles src/main.ts and everything it imports into one file, dist/main.js, that runs with nothing beside it.
import { readFileSync } from 'node:fs';
import { build } from 'esbuild';

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));

await build({
  entryPoints: [new URL('../src/main.ts', import.meta.url).pathname],
  outfile: new URL('../dist/main.js', import.meta.url).pathname,
  bundle: true,
  platform: 'node',
  target: 'node20.19',
  format: 'esm',
  minifySyntax: true,
  keepNames: true,
  legalComments: 'none',
  define: { ARCHAWARE_VERSION: JSON.stringify(version) },
  // Some dependencies are CommonJS and call require for Node's own modules.
  banner: {
    js: "#!/usr/bin/env node\nimport { createRequire as $createRequire } from 'node:module'; const require = $createRequire(import.meta.url);",
  },
});
