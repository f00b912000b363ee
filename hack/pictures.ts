/** Writes the pictures that come from a recording or a measurement, a part of `npm run generate`. The others are drawn by hand. */
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { dashboardPicture, RESULTS } from './dashboard/picture.ts';
import { recordingPicture } from './pictures/recording.ts';
import { SCALE, scalePicture } from './pictures/scale.ts';

/** Where the pictures are. */
export const PICTURES = fileURLToPath(new URL('../docs/pictures/', import.meta.url));
/** What `npm run demo` printed with colours: npm run record. */
export const RECORDING = fileURLToPath(new URL('pictures/demo.txt', import.meta.url));

/** Every picture, by its file. */
async function pictures(): Promise<ReadonlyMap<string, string>> {
  return new Map([
    ['dashboard.svg', dashboardPicture(JSON.parse(await readFile(RESULTS, 'utf8')))],
    ['demo.svg', recordingPicture(await readFile(RECORDING, 'utf8'))],
    ['scale.svg', scalePicture(JSON.parse(await readFile(SCALE, 'utf8')))],
  ]);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [file, text] of await pictures()) await writeFile(`${PICTURES}${file}`, text);
}
