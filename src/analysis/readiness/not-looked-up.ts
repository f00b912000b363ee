import type { NotLookedUp } from './report.ts';

/** Counts images whose lookups failed, by registry and code, the most first. An image counts once, also if it is named twice. */
export function countNotLookedUp(
  failed: readonly { readonly image: string; readonly registry: string; readonly code: string }[],
): Pick<NotLookedUp, 'images' | 'registries'> {
  const images = new Map(failed.map((each) => [each.image, each]));
  const counts = new Map<string, { registry: string; code: string; images: number }>();
  for (const { registry, code } of images.values()) {
    const key = JSON.stringify([registry, code]);
    const count = counts.get(key) ?? { registry, code, images: 0 };
    counts.set(key, { ...count, images: count.images + 1 });
  }
  const registries = [...counts.values()].sort(
    (one, other) => other.images - one.images || (one.registry < other.registry ? -1 : 1),
  );
  return { images: images.size, registries };
}

const FIRST = 3;

/** `180 images were not looked up (r.example rate-limited: 178, s.example timeout: 2)`. Undefined: all were. */
export function notLookedUpText({
  images,
  registries,
}: Pick<NotLookedUp, 'images' | 'registries'>): string | undefined {
  if (images === 0) return undefined;
  const named = registries
    .slice(0, FIRST)
    .map((each) => `${each.registry || 'no registry'} ${each.code}: ${each.images}`);
  const more = registries.length > FIRST ? [`${registries.length - FIRST} more`] : [];
  return `${images === 1 ? '1 image was' : `${images} images were`} not looked up (${[...named, ...more].join(', ')})`;
}
