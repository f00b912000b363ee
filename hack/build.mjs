// Bundles src/main.ts and everything it imports into one file, dist/main.js, that runs with nothing beside it.
import { readFileSync } from 'node:fs';
import { build } from 'esbuild';

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));

/**
 * What is loaded with these packages, is used by nobody here, and costs every start 150 ms and 40 MB: client-node's 800
 * generated API modules, fetch and agents (KubeConfig alone is used), and undici's fetch, WebSocket, caches and mocks, which wake a second
 * undici inside Node.js.
 */
const UNUSED = [
  { importer: /client-node\/dist\/config\.js$/, path: /^(?:\.\/gen\/index\.js|node-fetch|socks-proxy-agent|hpagent)$/ },
  { importer: /\/undici\/index\.js$/, path: /^\.\/lib\/(?:web|mock|cache|interceptor)\// },
];
const withoutUnused = {
  name: 'without-unused',
  setup(build) {
    build.onResolve({ filter: /./ }, ({ importer, path }) =>
      UNUSED.some((unused) => unused.importer.test(importer) && unused.path.test(path))
        ? { path: 'unused', namespace: 'unused' }
        : undefined,
    );
    build.onLoad({ filter: /.*/, namespace: 'unused' }, () => ({
      contents:
        'module.exports = new Proxy({}, { get: (_, name) => (name === "__esModule" ? undefined : class Unused {}) });',
    }));
  },
};

await build({
  entryPoints: [new URL('../src/main.ts', import.meta.url).pathname],
  outfile: new URL('../dist/main.js', import.meta.url).pathname,
  bundle: true,
  platform: 'node',
  target: 'node20.19',
  format: 'esm',
  minifySyntax: true,
  plugins: [withoutUnused],
  legalComments: 'none',
  define: { ARCHAWARE_VERSION: JSON.stringify(version) },
  // Some dependencies are CommonJS and call require for Node's own modules.
  banner: {
    js: "#!/usr/bin/env node\nimport { createRequire as $createRequire } from 'node:module'; const require = $createRequire(import.meta.url);",
  },
});
