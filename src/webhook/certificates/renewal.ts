import { issueServing, makeAuthority, type ServingNames } from './issue.ts';
import type { Life } from './pair.ts';
import { extendBundle, type KeptSecret } from './shared-secret.ts';

/** What to make next. */
export type RenewalDue = 'authority' | 'serving' | 'nothing';

export type RenewalOptions = {
  readonly names: ServingNames;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** The lifetime of a serving certificate in milliseconds; an authority lives ten times as long. */
  readonly lifetimeMs: number;
};

const LIVES_OF_AUTHORITY = 10;
/** Certificates are backdated by up to this time, because the callers' clocks may be slow. */
const MOST_BACKDATED_MS = 3_600_000;
/** How long a new authority is in the bundle before it signs anything, as long as what is served is valid. */
const OVERLAP_MS = 60_000;

/**
 * Plans what to make next. A new authority signs nothing at first: it goes into the bundle, and what is served is still verified by the one
 * before, which stays in the bundle. So the two are never exchanged together, and the certificate comes first if both are old. `lacks`:
 * whether a wanted name is not in the certificate.
 */
export function dueNow(
  kept: { readonly [part in 'serving' | 'authority']: Life | undefined },
  lacks: boolean,
  now: number,
): RenewalDue {
  const { serving, authority } = kept;
  if (authority === undefined || !isInForce(authority, now)) return 'authority';
  if (serving === undefined || !isInForce(serving, now)) return 'serving';
  if (lacks || isOld(serving, now)) return 'serving';
  return isOld(authority, now) ? 'authority' : 'nothing';
}

/** Makes what is due: with an authority also a certificate, if there is no valid one. Returns what the Secret should contain then. */
export async function renewed(
  due: RenewalDue,
  kept: KeptSecret,
  { names, now, lifetimeMs }: RenewalOptions,
): Promise<KeptSecret> {
  const notBefore = now - backdatedMs(lifetimeMs);
  let { authority, serving } = kept;
  if (due === 'authority') {
    authority = await makeAuthority({ notBefore, notAfter: now + LIVES_OF_AUTHORITY * lifetimeMs });
  }
  const isServed = due !== 'serving' && serving !== undefined && isInForce(serving, now);
  if (authority !== undefined && !isServed) {
    serving = await issueServing(authority, names, {
      notBefore: Math.max(notBefore, authority.notBefore),
      notAfter: Math.min(now + lifetimeMs, authority.notAfter),
    });
  }
  return { ...kept, authority, serving, bundle: extendBundle({ ...kept, authority, serving }, now), problems: [] };
}

/** Whether an authority was made so long ago that every API server has heard of a bundle with it. */
export function isSettled(
  { notBefore }: Life,
  { now, lifetimeMs }: Pick<RenewalOptions, 'now' | 'lifetimeMs'>,
): boolean {
  return now - notBefore - backdatedMs(lifetimeMs) >= Math.min(OVERLAP_MS, lifetimeMs / 10);
}

function backdatedMs(lifetimeMs: number): number {
  return Math.min(MOST_BACKDATED_MS, lifetimeMs / 10);
}

/** Whether a certificate is valid at this time. */
export function isInForce({ notBefore, notAfter }: Life, now: number): boolean {
  return notBefore <= now && now < notAfter;
}

/** Whether two thirds of the validity are over. */
function isOld({ notBefore, notAfter }: Life, now: number): boolean {
  return now - notBefore >= ((notAfter - notBefore) * 2) / 3;
}
