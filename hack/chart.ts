/** Generates the parts of the Helm chart whose sources are elsewhere: `tsx hack/chart.ts`. */
import { chartFiles } from './chart/files.ts';
import { writeFiles } from './write-between.ts';

await writeFiles(await chartFiles());
