/** Writes the table of layers in docs/development/architecture.md: npm run generate:layers */
import { readFile, writeFile } from 'node:fs/promises';
import { withLayersTable } from '../test/layers.ts';

const document = new URL('../docs/development/architecture.md', import.meta.url);
await writeFile(document, withLayersTable(await readFile(document, 'utf8')));
