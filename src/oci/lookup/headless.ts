import { LRUCache } from 'lru-cache';
import { type EndpointTarget, repositoryUrl } from '../endpoints/endpoint.ts';

/** Remembers for some hours where a HEAD of a manifest is of no use. */
export type Headless = {
  holdsFor(target: EndpointTarget): boolean;
  /** A host that answers HEAD without a digest does so for every image. */
  rememberHost(target: EndpointTarget): void;
  /** HEAD failed where GET did not, which whoever may push and delete a tag there can bring about. */
  rememberRepository(target: EndpointTarget): void;
};

/** Milliseconds: a registry may come to answer HEAD. */
const KEPT = 6 * 3_600_000;

export function createHeadless(now: () => number): Headless {
  const until = new LRUCache<string, number>({ max: 10_000 });
  const holds = (name: string): boolean => (until.get(name) ?? Number.NEGATIVE_INFINITY) > now();
  return {
    holdsFor: (target) => holds(target.endpoint.host) || holds(repositoryUrl(target)),
    rememberHost: ({ endpoint }) => void until.set(endpoint.host, now() + KEPT),
    rememberRepository: (target) => void until.set(repositoryUrl(target), now() + KEPT),
  };
}
