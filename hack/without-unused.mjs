/**
 * What is loaded with these packages, is used by nobody here, and costs every start 150 ms and 40 MB: client-node's 800
 * generated API modules, fetch and agents (KubeConfig alone is used), and undici's fetch, WebSocket, caches and mocks, which wake a second
 * undici inside Node.js.
 */
const UNUSED = [
  { importer: /client-node\/dist\/config\.js$/, path: /^(?:\.\/gen\/index\.js|node-fetch|socks-proxy-agent|hpagent)$/ },
  { importer: /\/undici\/index\.js$/, path: /^\.\/lib\/(?:web|mock|cache|interceptor)\// },
];
/** A plugin of esbuild that leaves it out. */
export const withoutUnused = {
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
