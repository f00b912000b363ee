import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { LAYERS, withLayersTable } from './layers.ts';

const SRC = fileURLToPath(new URL('../src/', import.meta.url));
/** The largest number of files in a folder that a reader can still survey. */
const MOST_FILES = 15;
/** How many names of files may stand in several folders: each command has the same parts, and so has each controller. */
const MOST_REPEATED = 10;
const REFUSED_NAMES: ReadonlySet<string> = new Set(['index', 'utils', 'helpers', 'common', 'types']);

/** `kube` of `kube/client.ts`, `main.ts` of itself. */
const partOf = (file: string) => file.split('/')[0] ?? file;
const layerOf = (part: string) => LAYERS.findIndex((layer) => layer.some((each) => each.part === part));

/**
 * Returns why an import is refused, or undefined. This is not a lint rule: Biome compares the text of an import, and
 * `../clean/` is a part of src in one folder and a folder of placement in another. Circles, extensions and the length of
 * files are lint rules (biome.json).
 */
function refusal(from: string, to: string): string | undefined {
  const [part, other] = [partOf(from), partOf(to)];
  if (layerOf(part) < 0) return `${from}: ${part} is in no layer`;
  if (part === other || layerOf(other) < layerOf(part)) return undefined;
  return `${from} imports ${to}: ${part} may not know ${other}`;
}

const withoutComments = (text: string) => text.replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '');

/** Returns what a file imports: static and dynamic imports, re-exports, also of types. */
function importsIn(text: string): string[] {
  const found = withoutComments(text).matchAll(
    /(?:^(?:import|export)\s[^;'"]*?from\s*|^import\s+|\bimport\s*\(\s*)['"]([^'"]+)['"]/gm,
  );
  return [...found].map(([, to = '']) => to);
}

/** Returns what a file loads only when it comes to it. */
function loadedLater(text: string): string[] {
  return [...withoutComments(text).matchAll(/\bimport\s*\(\s*['"]([^'"]+)['"]/g)].map(([, to = '']) => to);
}

const files = readdirSync(SRC, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
  .map((entry) => relative(SRC, join(entry.parentPath, entry.name)).replaceAll('\\', '/'))
  .sort();
const textOf = (file: string) => readFileSync(join(SRC, file), 'utf8');
/** Returns the files of src among the imports of a file. */
const filesOf = (file: string, list: readonly string[]) =>
  list.filter((to) => to.startsWith('.')).map((to) => join(dirname(file), to).replaceAll('\\', '/'));
const imports = new Map(files.map((file) => [file, filesOf(file, importsIn(textOf(file)))]));
/** Imports of types alone are gone when the program runs. */
const loaded = new Map(
  files.map((file) => [file, filesOf(file, importsIn(textOf(file).replace(/^(?:import|export) type [^;]*;/gm, '')))]),
);

/** Returns every file that the program loads when it runs a command, at its start or later. */
function reachedBy(command: string): ReadonlySet<string> {
  const found = new Set(['main.ts']);
  for (const file of found) {
    const [, other] = /^cli\/([^/]+)\/command\.ts$/.exec(file) ?? [];
    // The command line loads what every command says of itself, and of one of them the work.
    const later = other === undefined || other === command ? [] : filesOf(file, loadedLater(textOf(file)));
    for (const to of loaded.get(file) ?? []) if (!later.includes(to)) found.add(to);
  }
  return found;
}

describe('the layers', () => {
  it('allow every import in src', () => {
    const refused = [...imports].flatMap(([from, list]) => list.flatMap((to) => refusal(from, to) ?? []));
    expect(refused).to.deep.equal([]);
    expect(imports.get('main.ts')).to.include('cli/command-line.ts');
    expect(imports.get('kube/events.ts')).to.include('names.ts');
  });

  it('refuse imports in the other direction, including types', () => {
    expect(refusal('placement/decide.ts', 'kit/json.ts')).to.equal(undefined);
    expect(refusal('placement/decide.ts', 'placement/images.ts')).to.equal(undefined);
    expect(refusal('placement/decide.ts', 'kube/client.ts')).to.match(/placement may not know kube/);
    expect(refusal('kit/json.ts', 'names.ts')).to.match(/kit may not know names/);
    expect(refusal('app/webhook.ts', 'cli/run.ts')).to.match(/app may not know cli/);
    expect(refusal('other/file.ts', 'names.ts')).to.match(/in no layer/);
    expect(importsIn("import {\n  type A,\n} from './a.ts';\nexport type { B } from './b.ts';")).to.deep.equal([
      './a.ts',
      './b.ts',
    ]);
    expect(importsIn("const { run } = await import('./cli/run.ts');")).to.deep.equal(['./cli/run.ts']);
  });

  it('keep placement and analysis pure: no package, no clock, no randomness, no process', () => {
    for (const file of files.filter((name) => ['placement', 'analysis'].includes(partOf(name)))) {
      const text = textOf(file);
      for (const to of importsIn(text)) expect(to, file).to.match(/^\./);
      expect(text, file).not.to.match(
        /\b(?:Date\.now|new Date\b|Math\.random|performance\.|process\.|fetch\(|setTimeout\()/,
      );
    }
  });
});

describe('what a command loads', () => {
  const deepIn = (reached: ReadonlySet<string>) => [...reached].filter((file) => file.startsWith('oci/deep/'));

  it('is, for run, nothing that reads layers', () => {
    const reached = reachedBy('run');
    expect(deepIn(reached)).to.deep.equal([]);
    for (const file of ['app/replica/replica.ts', 'oci/resolver.ts', 'cli/inspect/command.ts'])
      expect(reached).to.include(file);
    expect(reached).not.to.include('cli/inspect/inspect.ts');
  });

  it('is, for run, nothing of analysis, which is for other commands: what run needs of it belongs to placement', () => {
    expect([...reachedBy('run')].filter((file) => partOf(file) === 'analysis')).to.deep.equal([]);
    expect([...reachedBy('report')].some((file) => partOf(file) === 'analysis')).to.equal(true);
  });

  it('is, for inspect, what reads layers', () => {
    expect(deepIn(reachedBy('inspect'))).to.include('oci/deep/layer-tree.ts');
  });
});

describe('docs/development/architecture.md', () => {
  it('shows these layers (npm run generate:layers)', () => {
    const text = readFileSync(fileURLToPath(new URL('../docs/development/architecture.md', import.meta.url)), 'utf8');
    expect(withLayersTable(text)).to.equal(text);
  });
});

describe('the folders', () => {
  it(`hold at most ${MOST_FILES} files`, () => {
    const counts = new Map<string, number>();
    for (const file of files) counts.set(dirname(file), (counts.get(dirname(file)) ?? 0) + 1);
    expect([...counts].filter(([, count]) => count > MOST_FILES)).to.deep.equal([]);
  });

  it(`repeat at most ${MOST_REPEATED} names of files`, () => {
    const names = files.map((file) => basename(file));
    const repeated = new Set(names.filter((name, index) => names.indexOf(name) !== index));
    expect([...repeated], 'names that stand in several folders').to.have.length.of.at.most(MOST_REPEATED);
  });

  it('have no drawers', () => {
    const names = files.flatMap((file) => file.split('/').map((name) => name.replace(/\..*$/, '')));
    expect(names.filter((name) => REFUSED_NAMES.has(name))).to.deep.equal([]);
  });
});

describe('the names of types', () => {
  it('stand once: a name says which type is meant, wherever it is read', () => {
    const names = files.flatMap((file) =>
      [...textOf(file).matchAll(/^(?:export )?(?:type|interface|class) (\w+)/gm)].map(([, name = '']) => name),
    );
    expect(names.filter((name, index) => names.indexOf(name) !== index)).to.deep.equal([]);
    expect(names).to.include('Decision');
  });
});
