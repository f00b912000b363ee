import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';

const SRC = fileURLToPath(new URL('../src/', import.meta.url));
const MOST_LINES = 300;
const REFUSED_NAMES: ReadonlySet<string> = new Set(['index', 'utils', 'helpers', 'common', 'types']);

/** One import of a file of `src`: what it names, and whether only types come with it. */
type Import = { readonly from: string; readonly to: string; readonly typesOnly: boolean };

/** What each part may import besides itself (docs/architecture.md, "Layout"). */
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  'main.ts': ['commands', 'config'],
  commands: [
    'kit',
    'controllers',
    'clean',
    'webhook',
    'placement',
    'oci',
    'kube',
    'config',
    'observability',
    'names.ts',
    'watch-files.ts',
  ],
  controllers: ['kit', 'placement', 'oci', 'kube', 'names.ts'],
  clean: ['placement', 'kube', 'names.ts'],
  webhook: ['placement', 'oci', 'kube', 'names.ts', 'watch-files.ts', 'listen.ts'],
  placement: ['kit', 'names.ts'],
  kube: ['kit', 'placement', 'names.ts'],
  oci: ['kit', 'placement'],
  kit: [],
  // Its keys are checked by the parsers of the rules that read them.
  config: ['kit', 'placement', 'watch-files.ts'],
  observability: ['listen.ts'],
  'names.ts': [],
  'watch-files.ts': [],
  'listen.ts': [],
};
/** `oci` and `kube` know placement's types, and besides only how it reads and shows what nobody vouches for. */
const READERS: ReadonlySet<string> = new Set(['placement/json.ts', 'placement/platform.ts', 'placement/reasons.ts']);

/** `kube` of `kube/client.ts`, `main.ts` of itself. */
function partOf(file: string): string {
  return file.split('/')[0] ?? file;
}

/** Why an import is refused, or undefined. */
function refusal({ from, to, typesOnly }: Import): string | undefined {
  const [part, other] = [partOf(from), partOf(to)];
  if (part === other) return undefined;
  const allowed = ALLOWED[part];
  if (allowed === undefined) return `${from}: ${part} is no part of the layout`;
  if (!allowed.includes(other)) return `${from} imports ${to}: ${part} may not know ${other}`;
  const knowsTypes = (part === 'oci' || part === 'kube') && other === 'placement';
  if (knowsTypes && !typesOnly && !READERS.has(to)) return `${from} imports ${to}: ${part} may know its types only`;
  return undefined;
}

/** The imports that a file's text names: static ones, re-exports and dynamic ones. */
function importsIn(text: string): { to: string; typesOnly: boolean }[] {
  const withoutComments = text.replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '');
  const statics = withoutComments.matchAll(/^(?:import|export)\s+(type\s)?([^;'"]*?)\s*from\s*['"]([^'"]+)['"]/gm);
  const dynamics = withoutComments.matchAll(/(?:\bimport\s*\(\s*|^import\s+)['"]([^'"]+)['"]/gm);
  return [
    ...[...statics].map(([, type, names = '', to = '']) => ({ to, typesOnly: type !== undefined || areTypes(names) })),
    ...[...dynamics].map(([, to = '']) => ({ to, typesOnly: false })),
  ];
}

/** Whether every name in `{ type A, type B }` is a type. */
function areTypes(names: string): boolean {
  const list = /^\{([\s\S]*)\}$/.exec(names.trim())?.[1] ?? 'value';
  return list
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
    .every((name) => name.startsWith('type '));
}

const files = readdirSync(SRC, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => relative(SRC, join(entry.parentPath, entry.name)).replaceAll('\\', '/'))
  .sort();

function textOf(file: string): string {
  return readFileSync(join(SRC, file), 'utf8');
}

/** The imports of a file that stay within `src`. */
function importsOf(file: string): Import[] {
  return importsIn(textOf(file))
    .filter(({ to }) => to.startsWith('.'))
    .map(({ to, typesOnly }) => ({ from: file, to: join(dirname(file), to).replaceAll('\\', '/'), typesOnly }));
}

describe('the layout', () => {
  it('has sources, and their imports are seen', () => {
    expect(files).to.include.members(['main.ts', 'names.ts', 'placement/decide.ts', 'kube/client.ts']);
    expect(importsOf('main.ts').map(({ to }) => to)).to.include.members(['commands/run.ts', 'config/load.ts']);
    expect(importsOf('kube/events.ts')).to.deep.include({ from: 'kube/events.ts', to: 'names.ts', typesOnly: false });
    expect(importsOf('kube/events.ts')).to.deep.include({
      from: 'kube/events.ts',
      to: 'kube/clock.ts',
      typesOnly: true,
    });
  });

  it('allows every import that there is', () => {
    expect(files.flatMap(importsOf).flatMap((found) => refusal(found) ?? [])).to.deep.equal([]);
  });

  it('names the file of every import, with its extension', () => {
    for (const { from, to } of files.flatMap(importsOf)) expect(files, `${from} imports ${to}`).to.include(to);
  });

  it('keeps placement free of everything but itself: no package, no clock, no chance, no process', () => {
    for (const file of files.filter((name) => partOf(name) === 'placement')) {
      const text = textOf(file);
      for (const { to } of importsIn(text)) expect(to, file).to.match(/^\./);
      expect(text, file).not.to.match(
        /\b(?:Date\.now|new Date\b|Math\.random|performance\.|process\.|fetch\(|setTimeout\()/,
      );
    }
  });

  it(`has no file of more than ${MOST_LINES} lines`, () => {
    const long = files.filter((file) => textOf(file).trimEnd().split('\n').length > MOST_LINES);
    expect(long).to.deep.equal([]);
  });

  it('has no drawers', () => {
    const drawers = files.filter((file) =>
      file.split('/').some((name) => REFUSED_NAMES.has(name.replace(/\..*$/, ''))),
    );
    expect(drawers).to.deep.equal([]);
  });
});

describe('an import', () => {
  const rows: [from: string, to: string, types: 'types' | 'values', allowed: boolean][] = [
    ['main.ts', 'commands/run.ts', 'values', true],
    ['main.ts', 'config/load.ts', 'values', true],
    ['main.ts', 'kube/client.ts', 'types', false],
    ['commands/run.ts', 'observability/log.ts', 'values', true],
    ['commands/run.ts', 'config/schema.ts', 'types', true],
    ['commands/run.ts', 'main.ts', 'values', false],
    ['controllers/pod.ts', 'kube/writer.ts', 'types', true],
    ['controllers/pod.ts', 'oci/reference.ts', 'values', true],
    ['controllers/pod.ts', 'config/schema.ts', 'types', false],
    ['controllers/pod.ts', 'observability/metrics.ts', 'types', false],
    ['controllers/pod.ts', 'commands/run.ts', 'types', false],
    ['controllers/pod.ts', 'webhook/review.ts', 'values', false],
    ['clean/steps.ts', 'kube/writer.ts', 'values', true],
    ['clean/steps.ts', 'controllers/pod.ts', 'values', false],
    ['clean/steps.ts', 'commands/output.ts', 'values', false],
    ['placement/decide.ts', 'names.ts', 'values', true],
    ['placement/decide.ts', 'placement/pod.ts', 'values', true],
    ['placement/decide.ts', 'kube/clock.ts', 'types', false],
    ['placement/settings.ts', 'config/schema.ts', 'types', false],
    ['oci/lookup.ts', 'placement/platform.ts', 'values', true],
    ['oci/lookup.ts', 'placement/images.ts', 'types', true],
    ['oci/lookup.ts', 'placement/images.ts', 'values', false],
    ['oci/lookup.ts', 'kube/clock.ts', 'types', false],
    ['oci/lookup.ts', 'names.ts', 'values', false],
    ['kube/writer.ts', 'names.ts', 'values', true],
    ['kube/writer.ts', 'placement/patch.ts', 'types', true],
    ['kube/writer.ts', 'placement/patch.ts', 'values', false],
    ['kube/writer.ts', 'oci/errors.ts', 'types', false],
    ['config/leaves.ts', 'placement/selector.ts', 'values', true],
    ['config/load.ts', 'kube/client.ts', 'types', false],
    ['observability/log.ts', 'config/schema.ts', 'types', false],
    ['names.ts', 'placement/pod.ts', 'types', false],
    ['other/file.ts', 'names.ts', 'values', false],
  ];
  for (const [from, to, types, allowed] of rows) {
    it(`of ${types} of ${to} by ${from} is ${allowed ? 'allowed' : 'refused'}`, () => {
      expect(refusal({ from, to, typesOnly: types === 'types' }) === undefined).to.equal(allowed);
    });
  }

  const texts: [text: string, expected: { to: string; typesOnly: boolean }[]][] = [
    ["import { a } from './a.ts';", [{ to: './a.ts', typesOnly: false }]],
    ["import type { a } from './a.ts';", [{ to: './a.ts', typesOnly: true }]],
    ["import { type a, type b } from './a.ts';", [{ to: './a.ts', typesOnly: true }]],
    ["import {\n  a,\n  type b,\n} from './a.ts';", [{ to: './a.ts', typesOnly: false }]],
    ["import * as a from './a.ts';", [{ to: './a.ts', typesOnly: false }]],
    ["import a from './a.ts';", [{ to: './a.ts', typesOnly: false }]],
    ["import './a.ts';", [{ to: './a.ts', typesOnly: false }]],
    ["export { a } from './a.ts';", [{ to: './a.ts', typesOnly: false }]],
    ["export type { a } from './a.ts';", [{ to: './a.ts', typesOnly: true }]],
    ["const a = await import('./a.ts');", [{ to: './a.ts', typesOnly: false }]],
    ["/* import { a } from './a.ts'; */\n// import './b.ts';", []],
  ];
  for (const [text, expected] of texts) {
    it(`is seen in ${JSON.stringify(text)}`, () => {
      expect(importsIn(text)).to.deep.equal(expected);
    });
  }
});
