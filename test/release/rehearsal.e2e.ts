/** Two releases, from the tag to the pods that they place: with a registry and keys of this machine, and nothing else published. */
import { whatIsThere } from '../e2e/support/real-checks.ts';
import { theChart } from './parts/chart.ts';
import { theFiles } from './parts/files.ts';
import { theForgeries } from './parts/forgeries.ts';
import { theImage } from './parts/image.ts';
import { theManifest } from './parts/manifest.ts';
import { theRelease } from './parts/release.ts';
import { theVerification } from './parts/verification.ts';
import { needsRehearsal, type Rehearsal, startRehearsal } from './support/rehearsal.ts';

/** Each part goes on with what the ones before have left. */
describe('a release that is rehearsed, in this order:', () => {
  let rehearsal: Rehearsal | undefined;

  before(async function () {
    needsRehearsal(this);
    rehearsal = await startRehearsal();
  });
  after(() => rehearsal?.stop());
  afterEach(async function () {
    if (this.currentTest?.state === 'failed' && rehearsal) console.log(await whatIsThere(rehearsal.world));
  });

  const there = () => {
    if (rehearsal === undefined) throw new Error('the rehearsal did not start');
    return rehearsal;
  };
  theRelease(there);
  theImage(there);
  theVerification(there);
  theFiles(there);
  theChart(there);
  theManifest(there);
  theForgeries(there);
});
