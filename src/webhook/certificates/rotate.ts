import { issueServing, type Life, makeAuthority, type ServingNames } from './issue.ts';
import { extendBundle, type Kept } from './kept.ts';
import { type Pair, readPair } from './pair.ts';
import type { RotationStep } from './rotation.ts';

export type RotateOptions = {
  readonly names: ServingNames;
  /** Whether the callers trust the next authority now. */
  readonly isTrusted: boolean;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** The lifetime of a serving certificate in milliseconds; an authority lives ten times as long. */
  readonly lifetimeMs: number;
};

const LIVES_OF_AUTHORITY = 10;
/** Certificates are backdated by up to this time, because the callers' clocks may be slow. */
const MOST_BACKDATED_MS = 3_600_000;

/** Carries out a step of the plan. Returns what the Secret should contain after it. */
export async function rotate(step: Exclude<RotationStep, 'keep'>, kept: Kept, options: RotateOptions): Promise<Kept> {
  const { now, isTrusted } = options;
  const taken = await take();
  return { ...taken, bundle: extendBundle(taken, now), problems: [] };

  async function take(): Promise<Kept> {
    switch (step) {
      case 'create':
        return signedBy(await newAuthority(options));
      case 'announce':
        return { ...kept, next: await newAuthority(options), trustedSince: undefined };
      case 'note':
        return { ...kept, trustedSince: isTrusted ? now : undefined };
      case 'switch':
        return signedBy(kept.next);
      case 'issue':
        return { ...kept, serving: await newServing(kept.authority, options) };
      default:
        return step satisfies never;
    }
  }

  async function signedBy(authority: Pair | undefined): Promise<Kept> {
    const serving = await newServing(authority, options);
    return { ...kept, serving, authority, next: undefined, trustedSince: undefined };
  }
}

async function newAuthority({ now, lifetimeMs }: RotateOptions): Promise<Pair> {
  const life = { notBefore: now - backdated(lifetimeMs), notAfter: now + LIVES_OF_AUTHORITY * lifetimeMs };
  return read(await makeAuthority(life));
}

async function newServing(
  authority: Pair | undefined,
  { names, now, lifetimeMs }: RotateOptions,
): Promise<Pair | undefined> {
  if (authority === undefined) return undefined;
  const life: Life = {
    notBefore: Math.max(now - backdated(lifetimeMs), authority.notBefore),
    notAfter: Math.min(now + lifetimeMs, authority.notAfter),
  };
  return read(await issueServing(authority, names, life));
}

function backdated(lifetimeMs: number): number {
  return Math.min(MOST_BACKDATED_MS, lifetimeMs / 10);
}

function read({ cert, key }: { readonly cert: string; readonly key: string }): Pair {
  return readPair(cert, key, { cert: 'the new certificate', key: 'its key' });
}
