/** Runs test/versions on each older Kubernetes that hack/cluster/build-versions.sh builds: npm run test:versions [-- MINOR...] */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { readVersions, triedOf } from './versions.ts';

const ROOT = new URL('../../../', import.meta.url);
const MOCHA = fileURLToPath(new URL('node_modules/mocha/bin/mocha.js', ROOT));

const older = triedOf(readVersions(ROOT)).older.map(({ minor }) => minor);
const wanted = process.argv.slice(2);
const unknown = wanted.find((minor) => !older.includes(minor));
if (unknown !== undefined) {
  process.stderr.write(`versions: there is no older Kubernetes ${unknown}; there are ${older.join(', ')}\n`);
  process.exitCode = 3;
} else {
  for (const minor of wanted.length > 0 ? wanted : older) {
    const env = { ...process.env, ARCHAWARE_KUBERNETES: minor };
    const args = [MOCHA, '--config', 'test/versions/.mocharc.json'];
    const { status } = spawnSync(process.execPath, args, { cwd: fileURLToPath(ROOT), env, stdio: 'inherit' });
    if (status !== 0) process.exitCode = 1;
  }
}
