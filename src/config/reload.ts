import { isDeepStrictEqual } from 'node:util';
import { allKeys, assign, valueAt } from './keys.ts';
import { type Config, schema } from './schema.ts';

/** What a configuration that was read again changes. */
export type Reload = {
  /** What holds from now on: the new one, but for keys that need a restart. */
  readonly config: Config;
  /** The keys that changed and apply. */
  readonly applies: readonly string[];
  /** The keys that changed and stay as they were until a restart. */
  readonly needsRestart: readonly string[];
};

/** Keys that apply at once, with all below them, to what is decided from then on. */
const AT_ONCE = ['policies', 'architectures', 'pods', 'images', 'registries', 'credentials', 'log.level'];
/** What was opened with these stays open: the memory of images, and its file. */
const BUT = ['images.cache.file', 'images.cache.maxEntries'];

/** Compares the configuration in force with one that was read again. */
export function compareConfig(before: Config, after: Config): Reload {
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

/** Whether a key decides who is asked for images, and how. */
export function concernsRegistries(key: string): boolean {
  return ['registries', 'credentials', 'images.cache'].some((group) => isWithin(group, key));
}

/** Whether a changed key holds from then on, without a restart. */
export function appliesAtOnce(key: string): boolean {
  return AT_ONCE.some((group) => isWithin(group, key)) && !BUT.includes(key);
}

function isWithin(group: string, key: string): boolean {
  return key === group || key.startsWith(`${group}.`);
}
