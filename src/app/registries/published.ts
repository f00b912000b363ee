import { isObject } from '../../kit/json.ts';
import { knownImagesPath } from '../../names.ts';
import { EVERYBODY, type ImageCache } from '../../oci/cache.ts';
import { ImageError } from '../../oci/errors.ts';
import { readReference } from '../../oci/reference.ts';
import { architecturesOf, readAnswers } from '../../placement/publish/known-images.ts';
import type { Base } from '../replica/base.ts';

/**
 * Puts what an earlier leader published into the cache of images, as if it had been found now. So a restart asks registries only about
 * images that are used again, when their tags are due.
 */
export async function readPublished(
  { client, leaseNamespace, clock, signal, log }: Pick<Base, 'client' | 'leaseNamespace' | 'clock' | 'signal' | 'log'>,
  cache: ImageCache,
): Promise<void> {
  try {
    const object = await client.request('get', knownImagesPath(leaseNamespace), { signal });
    for (const [image, answer] of isObject(object) ? readAnswers(object) : []) {
      const reference = readReference(image);
      // What images.overrides says is not an answer about the image.
      if (reference instanceof ImageError || answer.startsWith('!')) continue;
      const platforms = architecturesOf(answer).map((architecture) => ({ os: 'linux', architecture }));
      const found = { platforms, skipped: [], isIndex: !answer.startsWith('=') };
      cache.setTag(reference.canonical, EVERYBODY, { digest: '', found, checkedAt: clock.steady(), source: '' });
    }
  } catch (err) {
    log.debug({ err }, 'what an earlier leader published cannot be read: registries are asked instead');
  }
}
