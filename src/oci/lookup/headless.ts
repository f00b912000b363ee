import type { Place } from './place.ts';
import { createSpread } from './spread-starts.ts';

/** Milliseconds for which HEAD is not tried again where it did not work, because the registry may support it by then. */
const HEADLESS_MS = 6 * 3_600_000;

/** Where HEAD of a manifest does not work. */
export type Headless = {
  holdsFor(place: Place): boolean;
  /**
   * `isCertain`: HEAD was answered without a digest. If it only failed although GET did not, that may be the work of a user who
   * pushes and deletes a tag there, so it never counts for the project.
   */
  remember(place: Place, isCertain: boolean): void;
  /** Records that HEAD works there. */
  forget(place: Place): void;
};

/** Remembers where HEAD of a manifest does not work: in repositories, and in projects of which two repositories showed it. */
export function createHeadless(now: () => number): Headless {
  const spread = createSpread(now);
  return {
    holdsFor: ({ repository, project }) => spread.first(repository.key) > 0 || spread.whole(project.key) > 0,
    remember({ repository, project }, isCertain) {
      spread.add(isCertain ? [repository.key, project.key] : [repository.key], now() + HEADLESS_MS);
    },
    forget: ({ repository, project }) => spread.remove([repository.key, project.key]),
  };
}
