/** Writes the generated parts of docs from the sources: `tsx hack/reference.ts`. */
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { configurationPart, policiesPart } from './reference/configuration.ts';
import { errorsPart, exitCodesPart } from './reference/errors.ts';
import { eventsPart } from './reference/events.ts';
import { flagsPart } from './reference/flags.ts';
import type { Part } from './reference/markdown.ts';
import { metricsPart } from './reference/metrics.ts';
import { peoplePart, rightsPart } from './reference/rbac.ts';
import { between } from './write-between.ts';

const DIRECTORY = fileURLToPath(new URL('../docs/', import.meta.url));

/** Returns every part, generated from the sources. */
export function referenceParts(): Part[] {
  return [
    configurationPart(),
    policiesPart(),
    flagsPart(),
    exitCodesPart(),
    metricsPart(),
    eventsPart(),
    errorsPart(),
    rightsPart(),
    peoplePart(),
  ];
}

/** Returns the text of a page. */
export function pageOf({ page }: Part): Promise<string> {
  return readFile(`${DIRECTORY}${page}`, 'utf8');
}

/** Returns the text of a page with the part. Throws if the page lacks its marks. */
export function withPart(text: string, { name, text: part }: Part): string {
  return between(text, name, `\n${part}\n`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const part of referenceParts()) {
    await writeFile(`${DIRECTORY}${part.page}`, withPart(await pageOf(part), part));
  }
}
