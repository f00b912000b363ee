import { expect } from 'chai';
import { readPublished } from '../../../src/app/replica/running.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { createLog } from '../../../src/observability/log.ts';
import { createImageCache, EVERYBODY } from '../../../src/oci/cache.ts';
import { knownImages } from '../../../src/placement/publish/known-images.ts';
import { createHandClock } from '../../controllers/hand-clock.ts';
import { settings } from '../../placement/objects.ts';
import { clientOf } from '../../support/client-of.ts';

describe('what an earlier leader published', () => {
  it('is asked for again one after another within images.cache.tagTtl, because tags may have moved', async () => {
    const { config } = loadConfig({ environment: {}, flags: { 'images.cache.tagTtl': '10m' } });
    const images = ['r.example.com/app:1', 'r.example.com/app:2', 'r.example.com/app:3'];
    const published = knownImages(new Map(images.map((image) => [image, 'amd64'])), settings(), []);
    const parts = [0, 0.5, 0.75];
    const clock = { ...createHandClock(), steady: () => 1_000_000, random: () => parts.shift() ?? 1 };
    const client = clientOf({ request: async () => ({ ...published }) });
    const log = await createLog(config.log, { write() {} });
    const cache = createImageCache(100);
    const { signal } = new AbortController();
    await readPublished({ client, config, leaseNamespace: 'archaware', clock, signal, log }, cache);
    const ages = images.map((image) => 1_000_000 - (cache.tag(image, EVERYBODY)?.checkedAt ?? 0));
    expect(ages).to.have.members([0, 300_000, 450_000]);
  });
});
