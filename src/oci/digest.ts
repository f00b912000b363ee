import { createHash, timingSafeEqual } from 'node:crypto';

/** The algorithms of container runtimes (go-digest), with their lengths in hexadecimal digits. */
const HEX_LENGTH: ReadonlyMap<string, number> = new Map([
  ['sha256', 64],
  ['sha384', 96],
  ['sha512', 128],
]);

/**
 * Whether a string is a digest that the program can verify: `sha256:`, `sha384:` or `sha512:` and lower-case hex of the
 * right length.
 */
export function isDigest(text: string): boolean {
  const colon = text.indexOf(':');
  const length = colon < 0 ? undefined : HEX_LENGTH.get(text.slice(0, colon));
  return length !== undefined && text.length === colon + 1 + length && /^[0-9a-f]+$/.test(text.slice(colon + 1));
}

/** Returns the sha256 digest of a body, `sha256:<hex>`. */
export function digestOf(body: Uint8Array): string {
  return `sha256:${createHash('sha256').update(body).digest('hex')}`;
}

/** Whether a body hashes to a digest. False if the text is not a digest. */
export function matchesDigest(body: Uint8Array, digest: string): boolean {
  if (!isDigest(digest)) return false;
  const colon = digest.indexOf(':');
  const actual = createHash(digest.slice(0, colon)).update(body).digest();
  return timingSafeEqual(actual, Buffer.from(digest.slice(colon + 1), 'hex'));
}
