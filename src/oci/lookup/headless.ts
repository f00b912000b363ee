import { createLru } from '../../kit/lru.ts';
import { type EndpointTarget, repositoryUrl } from '../endpoints/endpoint.ts';

/** Remembers for some hours where HEAD of a manifest does not work. */
export type Headless = {
  holdsFor(target: EndpointTarget): boolean;
  /** Records a host: if it answers HEAD without a digest, it does so for every image. */
  rememberHost(target: EndpointTarget): void;
  /**
   * Records a repository: HEAD failed although GET did not. A user who pushes and deletes a tag there can cause that,
   * so it counts for the repository only.
   */
  rememberRepository(target: EndpointTarget): void;
};

/** Milliseconds; after that HEAD is tried again, because the registry may support it by then. */
const KEPT = 6 * 3_600_000;

export function createHeadless(now: () => number): Headless {
  const until = createLru<number>(10_000);
  const holds = (name: string): boolean => (until.get(name) ?? Number.NEGATIVE_INFINITY) > now();
  return {
    holdsFor: (target) => holds(target.endpoint.host) || holds(repositoryUrl(target)),
    rememberHost: ({ endpoint }) => void until.set(endpoint.host, now() + KEPT),
    rememberRepository: (target) => void until.set(repositoryUrl(target), now() + KEPT),
  };
}
