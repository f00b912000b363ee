/**
 * Sets the version of the next release in every file that names it, and makes a section of it in CHANGELOG.md. Then it generates what is
 * generated. It commits and tags nothing: docs/development/releasing.md has the next steps.
 */
import { execFileSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { checkVersions, pagesOf, pageWithVersion, VERSION, withSection, withVersion } from './release/versions.ts';

const USAGE = `usage: npm run version:set -- X.Y.Z

Sets the version in package.json, package-lock.json, the chart, the manifests and the documents. What stands below "## Unreleased" in
CHANGELOG.md gets the heading "## X.Y.Z (today)". Then npm run generate writes the generated files.

Exit codes: 0 done, 1 failed, 3 usage.
`;
const ROOT = fileURLToPath(new URL('../', import.meta.url));

process.exitCode = await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<number> {
  const [to = ''] = args;
  if (to === '-h' || to === '--help') {
    process.stdout.write(USAGE);
    return 0;
  }
  if (args.length !== 1 || !VERSION.test(to)) {
    process.stderr.write(args.length === 1 ? `version: "${to}" is not a version such as 0.3.0\n` : USAGE);
    return 3;
  }
  try {
    await setVersion(to);
  } catch (error) {
    process.stderr.write(`version: ${error instanceof Error ? error.message : String(error)}\n`);
    return 1;
  }
  const problems = await checkVersions(ROOT, to);
  for (const problem of problems) process.stderr.write(`version: ${problem}\n`);
  return problems.length === 0 ? 0 : 1;
}

async function setVersion(to: string): Promise<void> {
  const { version: from }: { version: string } = JSON.parse(await readFile(`${ROOT}package.json`, 'utf8'));
  const changelog = await readFile(`${ROOT}CHANGELOG.md`, 'utf8');
  const date = new Date().toISOString().slice(0, 10);
  // First what can fail, so that nothing is written then.
  const withHeading = withSection(changelog, { from, to, date });
  if (withHeading !== changelog) await write('CHANGELOG.md', withHeading);
  if (from !== to) {
    // npm writes package.json and the lockfile. Its own hooks and its tag are not wanted.
    execFileSync('npm', ['version', to, '--no-git-tag-version', '--ignore-scripts'], {
      cwd: ROOT,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    process.stdout.write('package.json, package-lock.json written\n');
    const pages = await pagesOf(ROOT);
    for (const file of namingFiles()) {
      const text = await readFile(`${ROOT}${file}`, 'utf8');
      const changed = pages.includes(file) ? pageWithVersion(text, from, to) : withVersion(text, from, to);
      if (changed !== text) await write(file, changed);
    }
    const chart = 'manifests/helm/archaware-controller/Chart.yaml';
    const yaml = await readFile(`${ROOT}${chart}`, 'utf8');
    await write(
      chart,
      yaml.replaceAll(/^((?:appV|v)ersion: ).*$/gm, (_, field: string) => field + to),
    );
  }
  execFileSync('npm', ['run', '--silent', 'generate'], { cwd: ROOT, stdio: ['ignore', 'ignore', 'inherit'] });
}

/** The tracked files that may name the version. Tests replace what documents say, so they name it, too. */
function namingFiles(): string[] {
  const listed = execFileSync('git', ['ls-files', '-z', '*.md', 'manifests', 'test'], { cwd: ROOT, encoding: 'utf8' });
  const others = /^(?:CHANGELOG\.md|docs\/decisions\/.*|test\/released\/.*|.*\/Chart\.yaml)$/;
  return listed.split('\0').filter((file) => /\.(?:md|ya?ml|ts)$/.test(file) && !others.test(file));
}

async function write(file: string, text: string): Promise<void> {
  await writeFile(`${ROOT}${file}`, text);
  process.stdout.write(`${file} written\n`);
}
