import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Seal } from '../placement/admission/record.ts';
import type { ServingCertificate } from './certificates/source.ts';

/** Separates this use of the key from other uses. */
const PURPOSE = 'archaware.dev/managed';

/**
 * Creates the seal that signs records on pods (HMAC-SHA256). All replicas have the same key: the signing key of the Secret, or, if
 * certificates come from a directory or from the Secret of an earlier version, a key derived from the private key that they serve
 * with. Without a certificate no record is believed.
 */
export function createSeal(current: () => Pick<ServingCertificate, 'key' | 'shared'> | undefined): Seal {
  let read: { readonly of: unknown; readonly keys: readonly Buffer[] } | undefined;
  // A review must not pay for the derivation of a key. A certificate is replaced as a whole, so its identity says whether it is
  // the same.
  const keys = () => {
    const certificate = current();
    if (read === undefined || read.of !== certificate) read = { of: certificate, keys: keysOf(certificate) };
    return read.keys;
  };
  return {
    sign: (text) => hmac(keys()[0] ?? randomBytes(32), text).toString('base64url'),
    isSigned(text, signature) {
      const found = Buffer.from(signature, 'base64url');
      return keys().some((key) => isEqual(hmac(key, text), found));
    },
    epoch: current,
  };
}

/** Returns the keys. The first one signs. The other one may be used by a replica that has not read the Secret again yet. */
function keysOf(certificate: Pick<ServingCertificate, 'key' | 'shared'> | undefined): Buffer[] {
  if (certificate === undefined) return [];
  const derived = Buffer.from(hkdfSync('sha256', certificate.key.trim(), '', PURPOSE, 32));
  return certificate.shared === undefined ? [derived] : [Buffer.from(certificate.shared.signingKey, 'hex'), derived];
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

function isEqual(one: Buffer, other: Buffer): boolean {
  return one.length === other.length && timingSafeEqual(one, other);
}
