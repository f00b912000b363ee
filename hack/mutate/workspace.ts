/** A copy of the repository in a temporary directory, in JavaScript, with every mutant in it behind a switch. */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { isTestFile, STARTS_THE_BUNDLE } from './folders.ts';
import { instrument, type Mutant } from './mutants.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

export type Workspace = {
  readonly directory: string;
  readonly mutants: readonly Mutant[];
  /** The test files that count, and that import one of these files, perhaps through others. Paths are relative to the directory. */
  testsOf(files: ReadonlySet<string>): readonly string[];
  remove(): void;
};

export async function createWorkspace(): Promise<Workspace> {
  const directory = mkdtempSync(join(tmpdir(), 'archaware-mutate-'));
  const files = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: ROOT })
    .toString()
    .split('\0')
    .filter((file) => file !== '');
  for (const file of files) cpSync(join(ROOT, file), join(directory, file));
  symlinkSync(join(ROOT, 'node_modules'), join(directory, 'node_modules'));
  const sources = files.filter((file) => file.endsWith('.ts') && !file.endsWith('.d.ts'));
  const { mutants, contents } = await instrument(
    sources.map((name) => ({ name, content: readFileSync(join(ROOT, name), 'utf8') })),
  );
  const imports = await transpile(directory, sources, contents);
  const tests = sources
    .filter(isTestFile)
    .map((file) => ({ file, imported: importedBy(imports, file) }))
    .filter(({ imported }) => !imported.has(STARTS_THE_BUNDLE));
  return {
    directory,
    mutants,
    testsOf: (wanted) =>
      tests.filter(({ imported }) => [...imported].some((file) => wanted.has(file))).map(({ file }) => file),
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}

/** Writes `x.js` beside each `x.ts`, and gives what each file imports. */
async function transpile(
  directory: string,
  sources: readonly string[],
  contents: ReadonlyMap<string, string>,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const imports = new Map<string, string[]>();
  await build({
    entryPoints: sources.map((file) => join(directory, file)),
    outdir: directory,
    outbase: directory,
    absWorkingDir: directory,
    bundle: true,
    packages: 'external',
    format: 'esm',
    platform: 'node',
    target: 'node20',
    logLevel: 'error',
    plugins: [
      {
        name: 'one file each',
        setup({ onResolve, onLoad }) {
          onResolve({ filter: /^\.\.?\/.*\.ts$/ }, ({ path, importer, kind }) => {
            if (kind === 'entry-point') return undefined;
            const from = relative(directory, importer);
            const to = relative(directory, resolve(dirname(importer), path));
            imports.set(from, [...(imports.get(from) ?? []), to]);
            return { path: path.replace(/\.ts$/, '.js'), external: true };
          });
          onLoad({ filter: /\.ts$/ }, ({ path }) => {
            const content = contents.get(relative(directory, path));
            return content === undefined ? undefined : { contents: content, loader: 'ts' };
          });
        },
      },
    ],
  });
  return imports;
}

function importedBy(imports: ReadonlyMap<string, readonly string[]>, file: string): ReadonlySet<string> {
  const seen = new Set([file]);
  for (const each of seen) for (const next of imports.get(each) ?? []) seen.add(next);
  return seen;
}
