import type { Clock } from '../../kit/clock.ts';
import type { Logger } from '../../observability/log.ts';
import type { ImageCache } from '../../oci/cache/cache.ts';
import { createCacheFile } from '../../oci/cache/cache-file.ts';
import type { Context } from '../surroundings.ts';

/** Fills the cache from its file, if one is configured, and writes the cache to the file from then on. */
export async function startCacheFile({ images }: Context['config'], cache: ImageCache, clock: Clock, log: Logger) {
  const { file, maxEntries } = images.cache;
  if (file === '') return undefined;
  const cacheFile = createCacheFile({
    file,
    cache,
    maxEntries,
    now: clock.steady,
    onProblem(problem) {
      if (problem === undefined) log.info({ file }, 'the cache file of images can be written again');
      else log.warn({ file, problem }, 'the cache file of images cannot be used; continuing without it');
    },
  });
  const { digests, tags } = await cacheFile.load();
  cache.onChange(cacheFile.changed);
  log.info({ file, digests, tags }, 'images read from the cache file');
  return cacheFile;
}
