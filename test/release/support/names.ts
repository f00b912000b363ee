/** The versions that a rehearsal releases: that of the repository, and the next one. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { textAt } from '../../../hack/cluster/json.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const first = textAt(JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')), 'version');
const [major = '0', minor = '0', patch = '0'] = first.split('.');

export const VERSIONS: readonly [string, string] = [first, `${major}.${minor}.${Number(patch) + 1}`];
