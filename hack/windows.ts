/** Writes the table of the tests that Windows skips into CONTRIBUTING.md: npm run generate:windows */
import { readFile, writeFile } from 'node:fs/promises';
import { PAGE, withWindowsTable } from '../test/support/platforms.ts';

const document = new URL(`../${PAGE}`, import.meta.url);
await writeFile(document, withWindowsTable(await readFile(document, 'utf8')));
