import type { ImageErrorCode, LoginSource } from './errors.ts';

/** A Secret that a pod names and that cannot be used. */
type UnusableSecret = { readonly namespace: string; readonly name: string; readonly reason: string };

/** One request as it was sent; `code` is the HTTP status or an ImageError's code. */
export type RequestRecord = {
  readonly registry: string;
  readonly method: string;
  readonly code: string;
  readonly seconds: number;
};

/** Where a request went: without its query, and with the name of its login. */
export type RequestPlace = {
  readonly host: string;
  readonly of: 'manifest' | 'blob' | 'token' | 'tags' | 'API root';
  /** Absent: anonymous, or of a login without a name. */
  readonly login?: LoginSource;
};

/** A registry's limit of pulls, as Docker Hub reports it. */
export type RateLimit = {
  readonly registry: string;
  /** The number of pulls in a window. */
  readonly limit: number;
  readonly remaining: number;
  /** The window, if the registry names it. */
  readonly windowSeconds?: number;
};

/** What the resolver reports while it works. A caller gives the functions that it needs. */
export type ResolverTelemetry = {
  readonly unusableSecret: (secret: UnusableSecret) => void;
  /** A request over the wire has ended. */
  readonly requested: (record: RequestRecord, place: RequestPlace) => void;
  /** A lookup has ended: `ok`, or the error's code. */
  readonly resolved: (result: 'ok' | ImageErrorCode) => void;
  /** How a question was answered from memory, or what a lookup found out. */
  readonly cached: (result: 'hit' | 'miss' | 'stale' | 'revalidated') => void;
  /** An answer about a manifest named the registry's limit. */
  readonly rateLimited: (rateLimit: RateLimit) => void;
  /** A lookup waits for its turn at a registry that limits requests (host[:port]), for about this many milliseconds. */
  readonly waits: (waiting: { readonly registry: string; readonly inMs: number }) => void;
};
