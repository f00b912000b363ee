/** Why an image's platforms could not be found out; the closed catalogue that metrics and Events use. */
export type ImageErrorCode =
  | 'denied'
  | 'not-found'
  | 'unsupported'
  | 'malformed'
  | 'too-large'
  | 'forbidden-address'
  | 'rate-limited'
  | 'unavailable'
  | 'timeout';

export const IMAGE_ERROR_CODES: readonly ImageErrorCode[] = [
  'denied',
  'not-found',
  'unsupported',
  'malformed',
  'too-large',
  'forbidden-address',
  'rate-limited',
  'unavailable',
  'timeout',
];

export type ImageErrorDetails = {
  readonly code: ImageErrorCode;
  /** Whether asking again soon may give another answer. */
  readonly temporary: boolean;
  /** What the registry asked us to wait, in milliseconds, already capped. */
  readonly retryAfterMs?: number;
  /** host[:port] of the registry that was asked; never a resolved address. */
  readonly endpoint?: string;
  /** Whether another credential may bring another answer, whatever the code says; a token service's answers are such. */
  readonly byCredential?: boolean;
  /** Whether the registry has a single manifest there: of an artifact, or of an image that names no platform. */
  readonly isSingleManifest?: boolean;
  /** For debugging; never printed where users read. */
  readonly cause?: unknown;
};

/**
 * A failed look-up. The message says what happened and, where there is one, what to do; it holds no body of an answer,
 * no credential and no resolved address, and is cut and escaped by whoever prints it.
 */
export class ImageError extends Error {
  override readonly name = 'ImageError';
  readonly code: ImageErrorCode;
  readonly temporary: boolean;
  readonly retryAfterMs: number | undefined;
  readonly endpoint: string | undefined;
  readonly byCredential: boolean;
  readonly isSingleManifest: boolean;

  constructor(message: string, details: ImageErrorDetails) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = details.code;
    this.temporary = details.temporary;
    this.retryAfterMs = details.retryAfterMs;
    this.endpoint = details.endpoint;
    this.byCredential = details.byCredential === true;
    this.isSingleManifest = details.isSingleManifest === true;
  }
}

/** What the operating system, Node.js or undici call a failure, as `ENOENT`: their own words may name more. Empty: nothing. */
export function codeOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : '';
}

/**
 * A string from outside, made fit for a log line, an Event or a terminal: everything but printable ASCII is escaped as
 * `\u{…}`, and what is longer than `max` characters is cut and ends in `...`.
 */
export function printable(text: string, max = 200): string {
  // Cut before escaping: the input may be megabytes, and an escape only makes it longer.
  const cut = text.length > max ? text.slice(0, max) : text;
  const escaped = cut.replace(/[^\x20-\x7e]/gu, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
  const limited = escaped.length > max ? escaped.slice(0, max) : escaped;
  return text.length > max || escaped.length > max ? `${limited}...` : limited;
}
