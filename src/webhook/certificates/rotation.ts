import type { Life } from './issue.ts';

/** How long a new authority is in everybody's bundle before anything is signed by it. */
const OVERLAP_MS = 3_600_000;

/** What there is of our own certificates. What is missing or damaged is undefined. */
export type Rotation = {
  /** The serving certificate, where an authority in the bundle vouches for it. `lacks`: wanted names that are not in it. */
  readonly serving: (Life & { readonly lacks: readonly string[] }) | undefined;
  /** The authority that signs. */
  readonly authority: Life | undefined;
  /** The one that is to follow it: in the bundle, and signing nothing yet. */
  readonly next: Life | undefined;
  /** Whether all who call us have the next one in their bundle now. */
  readonly isTrusted: boolean;
  /** Since when they were seen to; milliseconds since the epoch. */
  readonly trustedSince: number | undefined;
  /** Whether something is not as it was written, be it not needed. */
  readonly isDamaged: boolean;
};

/**
 * One step of keeping our certificates good; the next one is planned on what it has made.
 * - `create`: a new authority and a certificate by it, at once: there is nothing that callers could go on trusting;
 * - `announce`: a new authority, into the bundle only;
 * - `note`: write down whether callers trust the next authority, and since when;
 * - `switch`: the next authority signs from now on; the one before stays in the bundle until it has expired;
 * - `issue`: a new serving certificate by the authority that signs.
 */
export type RotationStep = 'keep' | 'create' | 'announce' | 'note' | 'switch' | 'issue';

/** Plans the next step. Pure; `now` in milliseconds since the epoch. */
export function planRotation(rotation: Rotation, now: number): RotationStep {
  const { isTrusted, trustedSince, isDamaged } = rotation;
  const serving = inForce(rotation.serving, now);
  const authority = inForce(rotation.authority, now);
  const next = inForce(rotation.next, now);
  const former = authority ?? serving;
  if (former === undefined) return next === undefined ? 'create' : 'switch';
  if (authority !== undefined && serving === undefined) return 'issue';

  if (next === undefined) {
    if (authority === undefined || isOld(authority, now)) return 'announce';
  } else {
    // A time to come was written by a clock that has been set back since.
    const since = trustedSince !== undefined && trustedSince <= now ? trustedSince : undefined;
    if (isTrusted !== (since !== undefined)) return 'note';
    const overlap = Math.min(OVERLAP_MS, (former.notAfter - former.notBefore) / 10);
    if (since !== undefined && now - since >= overlap) return 'switch';
    // Soon nobody will trust what there is, whether or not they trust what follows.
    if (former.notAfter - now < overlap) return 'switch';
  }
  if (authority === undefined || serving === undefined) return 'keep';
  const isDue = isDamaged || serving.lacks.length > 0 || isOld(serving, now);
  return isDue ? 'issue' : 'keep';
}

function inForce<T extends Life>(life: T | undefined, now: number): T | undefined {
  return life !== undefined && life.notBefore <= now && now < life.notAfter ? life : undefined;
}

/** Whether two thirds of a life are over. */
function isOld({ notBefore, notAfter }: Life, now: number): boolean {
  return now - notBefore >= ((notAfter - notBefore) * 2) / 3;
}
