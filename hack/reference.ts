/** Writes docs/reference from the sources, or compares it with them: `tsx hack/reference.ts [--check]`. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { configurationPage } from './reference/configuration.ts';
import { errorsPage } from './reference/errors.ts';
import { eventsPage } from './reference/events.ts';
import { flagsPage } from './reference/flags.ts';
import type { Page } from './reference/markdown.ts';
import { metricsPage } from './reference/metrics.ts';
import { rbacPage } from './reference/rbac.ts';

const DIRECTORY = fileURLToPath(new URL('../docs/reference/', import.meta.url));

/** Returns every page, generated from the sources. */
export async function referencePages(): Promise<Page[]> {
  return [configurationPage(), await flagsPage(), await metricsPage(), eventsPage(), errorsPage(), rbacPage()];
}

/** Returns the existing text of a page; empty if it does not exist. */
export async function writtenPage({ file }: Page): Promise<string> {
  return readFile(`${DIRECTORY}${file}`, 'utf8').catch(() => '');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const check = process.argv.includes('--check');
  await mkdir(DIRECTORY, { recursive: true });
  for (const page of await referencePages()) {
    if (!check) await writeFile(`${DIRECTORY}${page.file}`, page.text);
    else if ((await writtenPage(page)) !== page.text) {
      process.stderr.write(`docs/reference/${page.file} is not what the sources say; run: npx tsx hack/reference.ts\n`);
      process.exitCode = 1;
    }
  }
}
