import type { Resolution } from '../oci/resolver.ts';
import type { ImageAnswer } from '../placement/images.ts';

/** What a lookup found out about an image. */
export type FoundImage = Partial<Resolution> & Pick<Resolution, 'platforms' | 'skipped'>;

/** The result of the lookup of an image. */
export type LookupResult = FoundImage | { readonly error: LookupError; readonly isSingleManifest?: boolean };

export type LookupError = {
  readonly code: string;
  readonly message: string;
  readonly registry: string;
  /** The login that the registry refused: `pull secret "expired"`. */
  readonly login?: string;
};

/**
 * Turns the result of a lookup into an answer. `sinceMs`: for how long it has failed. An image that was not looked up is `pending`: no
 * platforms would mean that it runs nowhere.
 */
export function answerFrom(lookup: LookupResult | undefined, sinceMs: number): ImageAnswer {
  if (lookup === undefined) return { kind: 'pending' };
  if (!('error' in lookup)) return { kind: 'known', ...lookup };
  const { error, isSingleManifest = false } = lookup;
  return { kind: 'failed', ...error, sinceMs, retryInMs: Number.POSITIVE_INFINITY, isSingleManifest };
}
