/** Why an image's platforms could not be found out: the closed catalogue for metrics and Events. */
export const IMAGE_ERROR_CODES = [
  'denied',
  'not-found',
  'unsupported',
  'malformed',
  'too-large',
  'forbidden-address',
  'rate-limited',
  'unavailable',
  'timeout',
] as const;
export type ImageErrorCode = (typeof IMAGE_ERROR_CODES)[number];

/** The host that failed: the registry, or one to which it leads. */
export type FailedHost = {
  /** host[:port] of its URL. */
  readonly name: string;
  readonly is: 'registry' | 'token service' | 'blob store';
};

/** Where a login comes from; nothing of its content. The name is that of a Secret, of a file, or of a program. */
export type LoginSource = { readonly kind: 'pull secret' | 'file' | 'helper' | 'plug-in'; readonly name: string };

/** The codes of errors that a registry may give (distribution specification, "Error Codes"). No other text of an answer is shown. */
export const REGISTRY_CODES = [
  'BLOB_UNKNOWN',
  'BLOB_UPLOAD_INVALID',
  'BLOB_UPLOAD_UNKNOWN',
  'DIGEST_INVALID',
  'MANIFEST_BLOB_UNKNOWN',
  'MANIFEST_INVALID',
  'MANIFEST_UNKNOWN',
  'NAME_INVALID',
  'NAME_UNKNOWN',
  'SIZE_INVALID',
  'UNAUTHORIZED',
  'DENIED',
  'UNSUPPORTED',
  'TOOMANYREQUESTS',
] as const;
export type RegistryCode = (typeof REGISTRY_CODES)[number];

/** Of the codes the ones that may pass by themselves. */
const TEMPORARY: readonly ImageErrorCode[] = ['rate-limited', 'unavailable', 'timeout'];

/** What is known of a failure; `temporary` follows from the code if it is absent. `cause`: for debugging, never printed where users read it. */
export type ImageErrorDetails = Pick<ImageError, 'code'> &
  Partial<Omit<ImageError, keyof Error>> & { readonly cause?: unknown };

/**
 * A failed lookup. The message says what happened and, if possible, what to do. It contains no body of an answer, no
 * credential and no resolved address. Every place that prints it cuts and escapes it.
 */
export class ImageError extends Error {
  override readonly name = 'ImageError';
  readonly code: ImageErrorCode;
  /** Whether a retry soon may give another answer. */
  readonly temporary: boolean;
  /** The wait that the registry asked for, or that its failure asks for, in milliseconds, already capped. */
  readonly retryAfterMs?: number | undefined;
  /** The key of the place (lookup/health.ts) whose first answer ends that wait. */
  readonly waitsFor?: string | undefined;
  /** host[:port] of the registry that was asked; never a resolved address. */
  readonly endpoint?: string | undefined;
  /** host[:port] of the URL to which no connection could be made; a redirect or a token service may have named it. */
  readonly unreachable?: string | undefined;
  /** The HTTP status of the answer, if there was one that the failure is about. */
  readonly status?: number | undefined;
  /** The host that answered, or that could not be asked. */
  readonly host?: FailedHost | undefined;
  /** The login that was refused. */
  readonly login?: LoginSource | undefined;
  /** The code in the registry's answer. */
  readonly registryCode?: RegistryCode | undefined;
  /** Whether nothing was asked: the failure is one that others met before. */
  readonly isUnasked: boolean = false;
  /** Whether the request was sent without credentials although there was one: nothing asked for it. */
  readonly isAnonymous: boolean = false;
  /** Whether another credential may bring another answer, whatever the code says, as with a token service's answers. */
  readonly byCredential: boolean = false;
  /** Whether the login itself was refused: by the token service, or as Basic. A token that does not suffice is something else. */
  readonly refusesLogin: boolean = false;
  /** Whether the registry has a single manifest there: that of an artifact, or of an image that names no platform. */
  readonly isSingleManifest: boolean = false;

  constructor(message: string, { cause, ...details }: ImageErrorDetails) {
    super(message, cause === undefined ? undefined : { cause });
    Object.assign(this, details);
    this.code = details.code;
    this.temporary = details.temporary ?? TEMPORARY.includes(details.code);
  }
}

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
  /** A Secret that a pod names cannot be used. */
  readonly unusableSecret: (secret: { readonly [K in 'namespace' | 'name' | 'reason']: string }) => void;
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
