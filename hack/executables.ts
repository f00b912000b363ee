/**
 * Builds `kubectl archaware` as one executable file for each platform, into dist/executables: `tsx hack/executables.ts`. Node.js comes
 * from npm packages. The output is the same for the same commit.
 *
 *   --only linux-amd64   builds one platform, or several (a,b)
 *   --url URL            where the archives will be published, below /vVERSION/, for Krew's manifest
 *   --homepage URL       the repository, for Krew's manifest
 */
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { archive } from './executables/archive.ts';
import { baseFile, binaryOf, output } from './executables/base.ts';
import { krewManifest, PLACEHOLDER_SUM } from './executables/krew.ts';
import { signedAdHoc, withoutAuthenticode } from './executables/sign.ts';
import { archiveOf, nameOf, programOf, TARGETS, type Target, withLicense } from './executables/targets.ts';
import { PLACEHOLDER } from './release/names.ts';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const DIRECTORY = `${ROOT}dist/executables`;
const BLOB = `${DIRECTORY}/blob`;
const INJECTOR = `${ROOT}node_modules/postject/dist/cli.js`;
/** Node.js looks for its blob if the 0 after this text is a 1. */
const FUSE = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2';

const { values } = parseArgs({
  options: { only: { type: 'string' }, url: { type: 'string' }, homepage: { type: 'string' } },
});
const wanted = values.only?.split(',') ?? TARGETS.map(nameOf);
const unknown = wanted.filter((name) => !TARGETS.some((target) => nameOf(target) === name));
if (unknown.length > 0) throw new Error(`--only: got ${unknown.join()}, expected ${TARGETS.map(nameOf).join()}`);
const { version } = JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8'));

rmSync(DIRECTORY, { recursive: true, force: true });
mkdirSync(DIRECTORY, { recursive: true });
output(process.execPath, [`${ROOT}hack/build.mjs`, '--executables']);
makeBlob();
// Not every one of the packages has it.
const nodeLicense = baseFile(withLicense, 'LICENSE');
const sums = new Map<Target, string>();
for (const target of TARGETS.filter((one) => wanted.includes(nameOf(one)))) {
  sums.set(target, makeExecutable(target));
  process.stderr.write(`executables: ${nameOf(target)}\n`);
}
writeFileSync(`${DIRECTORY}/SHA256SUMS`, [...sums].map(([target, sum]) => `${sum}  ${archiveOf(target)}\n`).join(''));
if (sums.size === TARGETS.length) {
  const addresses = {
    url: values.url?.replace(/\/+$/, '') ?? PLACEHOLDER.downloads,
    homepage: values.homepage ?? PLACEHOLDER.source,
  };
  const sumOf = (target: Target) => sums.get(target) ?? PLACEHOLDER_SUM;
  writeFileSync(`${DIRECTORY}/archaware.yaml`, krewManifest(String(version), addresses, sumOf));
}

/** Writes the blob of the bundle, with the Node.js that will read it. A cache of code or a snapshot would fit one platform only. */
function makeBlob(): void {
  const own = { linux: 'linux', darwin: 'darwin', win32: 'windows' }[process.platform as string];
  const architecture = process.arch === 'x64' ? 'amd64' : process.arch;
  const target = TARGETS.find((one) => one.os === own && one.architecture === architecture);
  if (target === undefined)
    throw new Error(`there is no Node.js for ${process.platform}-${process.arch} to make the blob`);
  const node = `${DIRECTORY}/${target.os === 'windows' ? 'node.exe' : 'node'}`;
  writeFileSync(node, baseFile(target, binaryOf(target)), { mode: 0o755 });
  const configuration = {
    main: 'main.cjs',
    output: 'blob',
    disableExperimentalSEAWarning: true,
    useCodeCache: false,
    useSnapshot: false,
  };
  writeFileSync(`${DIRECTORY}/blob.json`, JSON.stringify(configuration));
  // The blob keeps the name of the main file: relative, so that it is the same in every checkout.
  output(node, ['--experimental-sea-config', 'blob.json'], DIRECTORY);
  for (const name of [node, `${DIRECTORY}/blob.json`]) rmSync(name);
}

/** Writes the executable and its archive, and returns the archive's SHA-256 sum. */
function makeExecutable(target: Target): string {
  const program = programOf(target);
  mkdirSync(`${DIRECTORY}/${nameOf(target)}`);
  const path = `${DIRECTORY}/${nameOf(target)}/${program}`;
  const base = baseFile(target, binaryOf(target));
  writeFileSync(path, target.os === 'windows' ? withoutAuthenticode(base) : base, { mode: 0o755 });
  // On darwin this also removes the signature.
  output(process.execPath, [
    INJECTOR,
    path,
    'NODE_SEA_BLOB',
    BLOB,
    ...['--sentinel-fuse', FUSE],
    ...['--macho-segment-name', 'NODE_SEA'],
  ]);
  if (target.os === 'darwin') writeFileSync(path, signedAdHoc(readFileSync(path), 'kubectl-archaware'));
  const packed = archive([
    { name: program, bytes: readFileSync(path), mode: 0o755 },
    { name: 'LICENSE', bytes: readFileSync(`${ROOT}LICENSE`), mode: 0o644 },
    { name: 'LICENSE.node', bytes: nodeLicense, mode: 0o644 },
  ]);
  writeFileSync(`${DIRECTORY}/${archiveOf(target)}`, packed);
  return createHash('sha256').update(packed).digest('hex');
}
