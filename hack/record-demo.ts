// Records the demo with its colours, for docs/pictures/demo.svg. Needs Node.js, nothing else.
// Usage: npm run record
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { RECORDING } from './pictures.ts';

const demo = fileURLToPath(new URL('demo.ts', import.meta.url));
const { NO_COLOR: _, ...environment } = process.env;
const { stdout } = await promisify(execFile)(process.execPath, ['--import', 'tsx', demo], {
  env: { ...environment, FORCE_COLOR: '1' },
});
await writeFile(RECORDING, stdout);
process.stderr.write('recorded; now run npm run generate\n');
