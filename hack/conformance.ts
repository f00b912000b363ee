/** Rewrites the tables of docs/conformance.md below its introduction: npx tsx hack/conformance.ts */
import { readFile, writeFile } from 'node:fs/promises';
import { conformanceTables } from '../test/e2e/conformance/table.ts';

const document = new URL('../docs/conformance.md', import.meta.url);
const text = await readFile(document, 'utf8');
const introduction = text.indexOf('## ') < 0 ? text : text.slice(0, text.indexOf('## '));
await writeFile(document, introduction + conformanceTables());
