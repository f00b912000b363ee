import type { Life } from './issue.ts';

/** How long a new authority is in all bundles before it signs anything. */
const OVERLAP_MS = 3_600_000;

/** The state of archaware's own certificates. A part that is missing or damaged is undefined. */
export type Rotation = {
  /** The serving certificate, if an authority of the bundle signed it. `lacks`: wanted names that are not in it. */
  readonly serving: (Life & { readonly lacks: readonly string[] }) | undefined;
  /** The authority that signs. */
  readonly authority: Life | undefined;
  /** The authority that will follow it. It is in the bundle and signs nothing yet. */
  readonly next: Life | undefined;
  /** Whether all callers have the next authority in their bundle now. */
  readonly isTrusted: boolean;
  /** Since when that is known; milliseconds since the epoch. */
  readonly trustedSince: number | undefined;
  /** Whether an entry is damaged, even one that is not needed. */
  readonly isDamaged: boolean;
};

/**
 * One step of the rotation. The next step is planned on its result.
 * - `create`: create an authority and a certificate at once, because there is nothing that callers could go on trusting;
 * - `announce`: create the next authority and put it into the bundle only;
 * - `note`: record whether callers trust the next authority, and since when;
 * - `switch`: let the next authority sign from now on; the one before stays in the bundle until it expires;
 * - `issue`: issue a new serving certificate by the authority that signs;
 * - `keep`: nothing is due.
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
    // A time in the future was written by a clock that has been set back since. It does not count.
    const since = trustedSince !== undefined && trustedSince <= now ? trustedSince : undefined;
    if (isTrusted !== (since !== undefined)) return 'note';
    const overlap = Math.min(OVERLAP_MS, (former.notAfter - former.notBefore) / 10);
    if (since !== undefined && now - since >= overlap) return 'switch';
    // The present authority expires soon, so the next one must sign even if not all callers trust it yet.
    if (former.notAfter - now < overlap) return 'switch';
  }
  if (authority === undefined || serving === undefined) return 'keep';
  const isDue = isDamaged || serving.lacks.length > 0 || isOld(serving, now);
  return isDue ? 'issue' : 'keep';
}

function inForce<T extends Life>(life: T | undefined, now: number): T | undefined {
  return life !== undefined && life.notBefore <= now && now < life.notAfter ? life : undefined;
}

/** Whether two thirds of the validity are over. */
function isOld({ notBefore, notAfter }: Life, now: number): boolean {
  return now - notBefore >= ((notAfter - notBefore) * 2) / 3;
}
