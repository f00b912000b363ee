import type { Place } from './place.ts';
import { createSpread } from './spread.ts';

/**
 * Remembers for some hours where HEAD of a manifest does not work: in repositories, and in projects of which two
 * repositories showed it.
 */
export type Headless = {
  holdsFor(place: Place): boolean;
  /** Records a repository that answers HEAD without a digest. */
  rememberMissing(place: Place): void;
  /**
   * Records a repository where HEAD failed although GET did not. A user who pushes and deletes a tag there can cause
   * that, so it never counts for the project.
   */
  rememberFailed(place: Place): void;
  /** Forgets what is known of a repository and its project, because HEAD works there. */
  forget(place: Place): void;
};

/** Milliseconds; after that HEAD is tried again, because the registry may support it by then. */
const KEPT = 6 * 3_600_000;

export function createHeadless(now: () => number): Headless {
  const spread = createSpread(now);
  const until = (): number => now() + KEPT;
  return {
    holdsFor: ({ repository, project }) => spread.first(repository.key) > 0 || spread.whole(project.key) > 0,
    rememberMissing: ({ repository, project }) => spread.add([repository.key, project.key], until()),
    rememberFailed: ({ repository }) => spread.add([repository.key], until()),
    forget: ({ repository, project }) => spread.remove([repository.key, project.key]),
  };
}
