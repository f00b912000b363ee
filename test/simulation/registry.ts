import type { Platform } from '../../src/kit/platform.ts';
import { createFailures } from '../../src/oci/cache.ts';
import { ImageError } from '../../src/oci/errors.ts';
import type { Look, Resolver } from '../../src/oci/resolver.ts';
import type { World } from './world.ts';

/** The architectures of every image at the beginning; an empty list: the registry does not have the image. */
export const IMAGES: Readonly<Record<string, readonly string[]>> = {
  'registry.example.com/amd:1': ['amd64'],
  'registry.example.com/arm:1': ['arm64'],
  'registry.example.com/both:1': ['amd64', 'arm64'],
  'registry.example.com/two:1': ['amd64', 'arm64'],
  'registry.example.com/missing:1': [],
  'registry.example.com/late:1': [],
  'registry.example.com/moving:1': ['amd64'],
};

/** What `push` gives the images whose content changes, in turns. */
const PUSHED = { late: [['arm64']], moving: [['amd64', 'arm64'], ['amd64']] } as const;

/** The registry that all images come from. */
export type ModelRegistry = {
  isUp: boolean;
  /** Changes the content of an image. */
  push(what: keyof typeof PUSHED): void;
  /** The architectures that an image always had, or had at some time, since it exists; undefined: it does not exist. */
  always(image: string): readonly string[] | undefined;
  sometimes(image: string): readonly string[];
  /** A resolver of a process; `onAsked` is called when it begins to ask for an image. */
  resolverFor(owner: string, onAsked: (image: string) => void): ModelResolver;
};

export type ModelResolver = Resolver & {
  /** Whether the resolver knows an image. Unlike `look` it starts no lookup. */
  knows(image: string): boolean;
};

const TAG_TTL_MS = 600_000;
const FAILURE_TTL_MS = 30_000;

/** Creates the registry. The world decides when a lookup ends. */
export function createModelRegistry(world: World): ModelRegistry {
  /** What each image has had, newest last. */
  const contents = new Map(Object.entries(IMAGES).map(([image, architectures]) => [image, [architectures]]));
  const pastOf = (image: string) => (contents.get(image) ?? []).filter(({ length }) => length > 0);
  const contentOf = (image: string) => contents.get(image)?.at(-1) ?? [];
  const registry: ModelRegistry = {
    isUp: true,
    push(what) {
      const past = contents.get(`registry.example.com/${what}:1`) ?? [];
      const next: readonly string[] | undefined = PUSHED[what][(past.length - 1) % PUSHED[what].length];
      if (next !== undefined) past.push(next);
    },
    always(image) {
      const [first, ...others] = pastOf(image);
      return first?.filter((name) => others.every((other) => other.includes(name)));
    },
    sometimes: (image) => pastOf(image).flat(),
    resolverFor(owner, onAsked) {
      const clock = world.clockFor(owner);
      const failures = createFailures({ maxEntries: 1000, now: clock.steady, random: clock.random });
      const known = new Map<string, { platforms: readonly Platform[]; at: number }>();
      const asking = new Set<string>();
      const listeners: ((canonical: string) => void)[] = [];

      const platformsOf = (image: string) =>
        contentOf(image).map((architecture): Platform => ({ os: 'linux', architecture }));

      function end(image: string, error: ImageError | undefined): void {
        asking.delete(image);
        if (error !== undefined) failures.add(image, error, FAILURE_TTL_MS, '');
        else {
          failures.remove(image);
          known.set(image, { platforms: platformsOf(image), at: clock.steady() });
        }
        for (const listener of listeners) listener(image);
      }

      function fail(code: 'not-found' | 'unavailable' | 'timeout'): ImageError {
        return new ImageError(`the registry says ${code}`, {
          code,
          temporary: code !== 'not-found',
          endpoint: 'model',
        });
      }

      const isFresh = (image: string) =>
        clock.steady() - (known.get(image)?.at ?? Number.NEGATIVE_INFINITY) < TAG_TTL_MS;

      const answerOf = (image: string) =>
        isFresh(image) || failures.get(image) !== undefined ? known.get(image)?.platforms : undefined;

      function look(image: string, _access?: unknown, mayStart = () => true): Look {
        const platforms = answerOf(image);
        if (platforms !== undefined && isFresh(image))
          return { kind: 'known', platforms, isIndex: platforms.length > 1 };
        const failure = failures.get(image);
        const at = clock.steady();
        const isDue = (failure?.retryAt ?? 0) <= at;
        if (isDue && !asking.has(image) && mayStart()) ask(image);
        if (platforms !== undefined) return { kind: 'known', platforms, isIndex: platforms.length > 1, isStale: true };
        if (failure === undefined) return { kind: 'pending', isPlanned: true };
        const retryInMs = isDue ? Number.POSITIVE_INFINITY : failure.retryAt - at;
        return {
          kind: 'failed',
          error: failure.error,
          isPlanned: true,
          sinceMs: at - failure.firstFailedAt,
          retryInMs,
        };
      }

      function ask(image: string): void {
        asking.add(image);
        onAsked(image);
        world.add({
          owner,
          what: `${owner} is answered for ${image}`,
          run: () =>
            end(
              image,
              !registry.isUp ? fail('unavailable') : contentOf(image).length > 0 ? undefined : fail('not-found'),
            ),
          lose: () => end(image, fail('timeout')),
        });
      }

      return {
        look,
        knows: (image) => answerOf(image) !== undefined,
        onSettled: (listener) => void listeners.push(listener),
        resolve: () => Promise.reject(new Error('nobody waits for an image here')),
        pending: () => asking.size,
        failing: () => failures.count(),
        forgive() {},
      };
    },
  };
  return registry;
}
