import { readFile, writeFile } from 'node:fs/promises';

/** Puts a text between the markers `<!-- NAME: begin -->` and `<!-- NAME: end -->` of a document. Throws without them. */
export async function writeBetween(document: URL, name: string, text: string): Promise<void> {
  const whole = await readFile(document, 'utf8');
  const [opening, closing] = [`<!-- ${name}: begin -->`, `<!-- ${name}: end -->`];
  const [begin, end] = [whole.indexOf(opening), whole.indexOf(closing)];
  if (begin < 0 || end < begin) throw new Error(`${document.pathname} has no ${opening} before ${closing}`);
  await writeFile(document, `${whole.slice(0, begin + opening.length)}\n${text}\n${whole.slice(end)}`);
}
