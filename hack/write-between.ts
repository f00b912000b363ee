import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

/** A file and its correct content. */
export type GeneratedFile = { readonly file: URL; readonly content: string };

/** Returns a document with a text between its markers `<!-- NAME: begin -->` and `<!-- NAME: end -->`. Throws without them. */
export function between(document: string, name: string, text: string): string {
  const [opening, closing] = [`<!-- ${name}: begin -->`, `<!-- ${name}: end -->`];
  const [begin, end] = [document.indexOf(opening), document.indexOf(closing)];
  if (begin < 0 || end < begin) throw new Error(`the document has no ${opening} before ${closing}`);
  return `${document.slice(0, begin + opening.length)}\n${text}\n${document.slice(end)}`;
}

/** Writes the text into the document. */
export async function writeBetween(document: URL, name: string, text: string): Promise<void> {
  await writeFile(document, between(await readFile(document, 'utf8'), name, text));
}

/** Writes the files that are not what they should be, and prints their names. */
export async function writeFiles(files: readonly GeneratedFile[]): Promise<void> {
  for (const { file, content } of files) {
    if ((await readFile(file, 'utf8').catch(() => '')) === content) continue;
    await mkdir(new URL('.', file), { recursive: true });
    await writeFile(file, content);
    process.stdout.write(`${fileURLToPath(file)} written\n`);
  }
}
