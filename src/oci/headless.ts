import { LRUCache } from 'lru-cache';

/** Where a repository is asked for, as far as HEAD goes. */
export type Place = {
  /** host[:port] */
  readonly host: string;
  /** URL of the repository. */
  readonly repository: string;
};

/** Remembers for some hours where a HEAD of a manifest is of no use. */
export type Headless = {
  is(place: Place): boolean;
  /** A host that answers HEAD without a digest does so for every image. */
  host(place: Place): void;
  /** HEAD failed where GET did not, which whoever may push and delete a tag there can bring about. */
  repository(place: Place): void;
};

/** Milliseconds: a registry may come to answer HEAD. */
const KEPT = 6 * 3_600_000;

export function createHeadless(now: () => number): Headless {
  const until = new LRUCache<string, number>({ max: 10_000 });
  const holds = (name: string): boolean => (until.get(name) ?? Number.NEGATIVE_INFINITY) > now();
  return {
    is: ({ host, repository }) => holds(host) || holds(repository),
    host: ({ host }) => void until.set(host, now() + KEPT),
    repository: ({ repository }) => void until.set(repository, now() + KEPT),
  };
}
