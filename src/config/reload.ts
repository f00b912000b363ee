import { isDeepStrictEqual } from 'node:util';
import { allKeys, assign, isWithin, valueAt } from './keys.ts';
import { type Config, schema } from './schema.ts';

/** Keys that, with all keys below them, apply at once to every later decision. */
const AT_ONCE = ['policies', 'architectures', 'pods', 'images', 'registries', 'credentials', 'log.level'];
/** An exception: the cache of images is created once, with this size. */
const BUT = 'images.cache.maxEntries';

/**
 * Compares the current configuration with one that was read again. Returns the configuration from now on (the new one, except for the
 * keys that need a restart), the keys that changed and apply, and those that changed but keep their old value until a restart.
 */
export function compareConfig(before: Config, after: Config) {
  const config: Record<string, unknown> = {};
  const [applies, needsRestart]: [string[], string[]] = [[], []];
  for (const { path } of allKeys()) {
    const [old, now] = [valueAt(before, path), valueAt(after, path)];
    const isSame = isDeepStrictEqual(old, now);
    if (!isSame) (appliesAtOnce(path) ? applies : needsRestart).push(path);
    assign(config, path, isSame || !appliesAtOnce(path) ? old : now);
  }
  return { config: schema.parse(config), applies, needsRestart };
}

/** Whether a key affects which registries are asked, and how. */
export function concernsRegistries(key: string): boolean {
  return ['registries', 'credentials', 'images.cache'].some((group) => isWithin(group, key));
}

/** Whether a changed key applies without a restart. */
export function appliesAtOnce(key: string): boolean {
  return AT_ONCE.some((group) => isWithin(group, key)) && key !== BUT;
}
