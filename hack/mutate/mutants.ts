/** The mutants of Stryker's instrumenter, and a draw of them that a seed repeats. */
import { createHash } from 'node:crypto';
import { Instrumenter } from '@stryker-mutator/instrumenter';
import { reasonToExclude } from './exclusions.ts';
import { FOLDER_NAMES, FOLDERS, type FolderName } from './folders.ts';

export type Mutant = {
  /** What the instrumented code compares with the active mutant. */
  readonly id: string;
  readonly folder: FolderName;
  readonly file: string;
  /** Counted from one. */
  readonly line: number;
  readonly kind: string;
  readonly original: string;
  readonly replacement: string;
  /** Why it does not count, if it does not. */
  readonly excluded?: string;
};

export type Source = { readonly name: string; readonly content: string };

const SILENT = {
  isTraceEnabled: () => false,
  isDebugEnabled: () => false,
  isInfoEnabled: () => false,
  isWarnEnabled: () => false,
  isErrorEnabled: () => false,
  isFatalEnabled: () => false,
  trace: () => undefined,
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  fatal: () => undefined,
};

/** The mutants of the folders, and the instrumented text of their files. */
export async function instrument(
  sources: readonly Source[],
): Promise<{ mutants: readonly Mutant[]; contents: ReadonlyMap<string, string> }> {
  const mutated = sources.filter(({ name }) => folderOf(name) !== undefined);
  const lines = new Map(mutated.map(({ name, content }) => [name, content.split('\n')]));
  const { files, mutants } = await new Instrumenter(SILENT).instrument(
    mutated.map(({ name, content }) => ({ name, content, mutate: true })),
    // run-tests.ts has the functions that the header would bring: its own are faster.
    { plugins: null, excludedMutations: [], ignorers: [], noHeader: true },
  );
  const contents = new Map(files.map(({ name, content }) => [name, content]));
  const found = mutants.flatMap(({ id, fileName, location: { start, end }, mutatorName, replacement }) => {
    const folder = folderOf(fileName);
    if (folder === undefined) return [];
    const text = (lines.get(fileName) ?? []).slice(start.line, end.line + 1);
    const last = text.length - 1;
    const original = text
      .map((line, index) => (index === last ? line.slice(0, end.column) : line))
      .map((line, index) => (index === 0 ? line.slice(start.column) : line))
      .join('\n');
    const mutant = { id, folder, file: fileName, line: start.line + 1, kind: mutatorName, original, replacement };
    const excluded = reasonToExclude(mutant);
    return [excluded === undefined ? mutant : { ...mutant, excluded }];
  });
  return { mutants: found, contents };
}

/**
 * The first mutants of a folder in an order that follows from the seed and from what each mutant says, not from where it stands: after a
 * change of a file, the mutants of what did not change are drawn again. Those that are excluded come along, and count beyond the number.
 */
export function draw(all: readonly Mutant[], folder: FolderName, seed: number, count: number): readonly Mutant[] {
  const twins = new Map<string, number>();
  const ranked = all
    .filter((mutant) => mutant.folder === folder)
    .map((mutant) => {
      const text = [mutant.file, mutant.kind, mutant.original, mutant.replacement].join('\0');
      const twin = twins.get(text) ?? 0;
      twins.set(text, twin + 1);
      return { mutant, rank: createHash('sha256').update(`${seed}\0${twin}\0${text}`).digest('hex') };
    })
    .sort((one, other) => (one.rank < other.rank ? -1 : 1));
  const drawn: Mutant[] = [];
  let counted = 0;
  for (const { mutant } of ranked) {
    if (counted === count) break;
    if (mutant.excluded === undefined) counted += 1;
    drawn.push(mutant);
  }
  return drawn;
}

function folderOf(file: string): FolderName | undefined {
  return FOLDER_NAMES.find((name) => FOLDERS[name].test(file));
}
