/** Writes the generated parts of docs from the sources, or compares them: `tsx hack/reference.ts [--check]`. */
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { configurationPart, policiesPart } from './reference/configuration.ts';
import { errorsPart, exitCodesPart } from './reference/errors.ts';
import { eventsPart } from './reference/events.ts';
import { flagsPart } from './reference/flags.ts';
import type { Part } from './reference/markdown.ts';
import { metricsPart } from './reference/metrics.ts';
import { peoplePart, rightsPart } from './reference/rbac.ts';

const DIRECTORY = fileURLToPath(new URL('../docs/', import.meta.url));

/** Returns every part, generated from the sources. */
export async function referenceParts(): Promise<Part[]> {
  return [
    configurationPart(),
    policiesPart(),
    flagsPart(),
    exitCodesPart(),
    await metricsPart(),
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

/** Returns the text of a page with the part between its two marks. Throws if the page lacks them. */
export function withPart(text: string, { page, name, text: part }: Part): string {
  const [begin, end] = [`<!-- ${name}: begin -->\n`, `<!-- ${name}: end -->`];
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`docs/${page} has no "${begin.trim()}" before "${end}"`);
  return `${text.slice(0, from + begin.length)}\n${part}\n\n${text.slice(to)}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const check = process.argv.includes('--check');
  for (const part of await referenceParts()) {
    const text = await pageOf(part);
    if (!check) await writeFile(`${DIRECTORY}${part.page}`, withPart(text, part));
    else if (withPart(text, part) !== text) {
      process.stderr.write(
        `${part.name} in docs/${part.page} is not what the sources say; run: npx tsx hack/reference.ts\n`,
      );
      process.exitCode = 1;
    }
  }
}
