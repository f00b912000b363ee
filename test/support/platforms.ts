/** What tests need of the system they run on, and which of them are left out on Windows. */
import { readdirSync, readFileSync } from 'node:fs';
import { rename } from 'node:fs/promises';
import { between } from '../../hack/write-between.ts';

/** Why a test does not run on Windows. CONTRIBUTING.md shows these reasons with their files. */
export const NOT_ON_WINDOWS = {
  bash: 'bash runs the blocks of documents, and scripts',
  link: 'a symbolic link is replaced, as the kubelet does in the folders of ConfigMaps and Secrets, or leads to itself',
  program: 'a credential helper or plug-in is started by its first line (`#!`)',
  signal: 'SIGTERM asks a process to end; on Windows it ends the process at once',
  pipe: 'a named pipe (`mkfifo`), or a pipe of a shell',
  name: 'a name of a file that Windows does not allow',
} as const;

/** A reason in {@link NOT_ON_WINDOWS}. */
export type Reason = keyof typeof NOT_ON_WINDOWS;

/** For a test, or `before` of a suite: skips it on Windows. macOS runs it. */
export function needsPosix(context: Mocha.Context, _reason: Reason): void {
  if (process.platform === 'win32') context.skip();
}

/** Renames a file over another one. On Windows a file that is being read cannot be replaced, so it is tried again there. */
export async function replaceFile(from: string, to: string): Promise<void> {
  const isBusy = (error: unknown): false => {
    if (process.platform === 'win32' && error instanceof Error && 'code' in error && error.code === 'EPERM')
      return false;
    throw error;
  };
  while (!(await rename(from, to).then(() => true, isBusy))) await new Promise((resolve) => setImmediate(resolve));
}

/** Returns the files below a folder of the repository, with `/` between the names on every system. */
export function filesBelow(folder: string): string[] {
  const root = new URL(`../../${folder}/`, import.meta.url);
  const names = readdirSync(root, { recursive: true, encoding: 'utf8' });
  return names.map((name) => `${folder}/${name.replaceAll('\\', '/')}`).sort();
}

/** The page with the table. */
export const PAGE = 'CONTRIBUTING.md';

/** Returns the page's text with the table of what is skipped on Windows: each reason, and the files that have marks for it. */
export function withWindowsTable(text: string): string {
  const marks = marksInTests();
  const rows = Object.entries(NOT_ON_WINDOWS).map(([reason, why]) => {
    const files = marks.filter((mark) => mark.reason === reason).map(({ file }) => `\`${file.replace('test/', '')}\``);
    return `| ${why} | ${[...new Set(files)].join(', ')} |`;
  });
  return between(text, 'windows', `| reason | files below \`test\` |\n| --- | --- |\n${rows.join('\n')}`);
}

/** The calls of {@link needsPosix} in the files that `npm test` runs. */
export function marksInTests(): { readonly file: string; readonly reason: string }[] {
  return filesBelow('test')
    .filter((file) => file.endsWith('.ts') && !file.startsWith('test/e2e/') && file !== 'test/support/platforms.ts')
    .flatMap((file) => {
      const text = readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
      return [...text.matchAll(/needsPosix\(this, '(\w+)'\)/g)].map(([, reason = '']) => ({ file, reason }));
    });
}
