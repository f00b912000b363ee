/** Moves the tests to another version of Kubernetes; hack/cluster/move-kubernetes.sh starts it and has its usage. */
import { existsSync } from 'node:fs';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { MENTIONS, moved } from './mentions.ts';
import { goModFor, readUpstream } from './module.ts';
import { type ModuleToWrite, planMove } from './move.ts';
import { resolveVersion, tidy, upstreamGoMod } from './proxy.ts';
import { PAGE, withSupportTable } from './table.ts';
import { formatRecord, minorOf, moduleFolder, RECORD, readVersions, triedOf } from './versions.ts';

const ROOT = new URL('../../../', import.meta.url);
const EXIT = { done: 0, failed: 1, usage: 3 } as const;
const VERSION = /^1[.]\d+(?:[.]\d+(?:-[a-z]+[.]\d+)?)?$/;

const at = (path: string) => fileURLToPath(new URL(path, ROOT));
const say = (text: string) => process.stdout.write(`${text}\n`);
/** A wrong command line. */
class Usage extends Error {}

/** Makes a module's go.mod and go.sum in a folder of its own, and returns that folder. */
async function make(work: string, { minor, version, isMain }: ModuleToWrite): Promise<string> {
  const folder = moduleFolder(minor, isMain);
  say(`Kubernetes ${version}: making ${folder}/go.mod`);
  const made = await mkdtemp(join(work, `${minor}-`));
  await writeFile(join(made, 'go.mod'), goModFor(folder, version, readUpstream(await upstreamGoMod(version)), isMain));
  await tidy(made);
  return made;
}

/** Moves to a version. Every module is made before the first file of the repository changes. */
async function move(wanted: string, drop: readonly string[]): Promise<number> {
  const before = readVersions(ROOT);
  const { version } = await resolveVersion(wanted);
  const isNew = !before.minors.some(({ minor }) => minor === minorOf(version));
  const isEarly = version.includes('-');
  const { time = new Date().toISOString() } = isNew
    ? await resolveVersion(isEarly ? version : `${minorOf(version)}.0`)
    : {};
  const plan = planMove(before, { version, drop }, time, new Date().toISOString().slice(0, 10));

  const work = await mkdtemp(join(tmpdir(), 'archaware-kubernetes-'));
  try {
    const made: { readonly from: string; readonly to: string }[] = [];
    for (const one of plan.write)
      made.push({ from: await make(work, one), to: at(moduleFolder(one.minor, one.isMain)) });
    for (const { from, to } of made) await cp(from, to, { recursive: true });
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  for (const minor of plan.remove) await rm(at(moduleFolder(minor, false)), { recursive: true });
  await writeFile(at(RECORD), formatRecord(plan.record));

  const after = readVersions(ROOT);
  for (const { file, text } of MENTIONS) {
    const now = moved(file, await readFile(at(file), 'utf8'), text(triedOf(before)), text(triedOf(after)));
    await writeFile(at(file), now);
  }
  await writeFile(at(PAGE), withSupportTable(await readFile(at(PAGE), 'utf8'), after));
  say(`moved to Kubernetes ${version}. Now: hack/cluster/build.sh, hack/cluster/build-versions.sh, npm run test:e2e,`);
  say('npm run test:versions, npm run check; and a line in CHANGELOG.md');
  if (isNew) {
    say(
      `${PAGE}: the end of Kubernetes ${minorOf(version)} is computed. When kubernetes.io/releases names it, write it into ${RECORD}`,
    );
    say(`What was seen on one version only: git grep -nF '${triedOf(before).main.minor}' -- docs README.md src test`);
  }
  return EXIT.done;
}

/** Writes the table of docs/support.md from the record. */
async function writeTable(): Promise<number> {
  await writeFile(at(PAGE), withSupportTable(await readFile(at(PAGE), 'utf8'), readVersions(ROOT)));
  return EXIT.done;
}

async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = parsed(args);
  const [wanted, ...more] = positionals;
  if ((values.table ?? false) === (wanted !== undefined) || more.length > 0)
    throw new Usage('give one of VERSION and --table');
  if (values.table) return writeTable();
  for (const one of [wanted ?? '', ...(values.drop ?? [])]) {
    if (!VERSION.test(one)) throw new Usage(`"${one}" is not a version of Kubernetes, such as 1.38 or 1.38.1`);
  }
  if (!existsSync(at(RECORD))) throw new Error(`there is no ${RECORD}`);
  return move(wanted ?? '', values.drop ?? []);
}

function parsed(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { table: { type: 'boolean' }, drop: { type: 'string', multiple: true } },
    });
  } catch (error) {
    throw new Usage(error instanceof Error ? error.message : String(error));
  }
}

process.exitCode = await run(process.argv.slice(2)).catch((error: unknown) => {
  process.stderr.write(`move-kubernetes.sh: ${error instanceof Error ? error.message : String(error)}\n`);
  return error instanceof Usage ? EXIT.usage : EXIT.failed;
});
