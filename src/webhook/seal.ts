import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Seal } from '../placement/admission/record.ts';
import type { ServingCertificate } from './certificates/source.ts';

/** Separates this use of the key from other uses. */
const PURPOSE = 'archaware.dev/managed';

/**
 * Creates the seal that signs records on pods (HMAC-SHA256). All replicas have the same key: the signing key of the Secret, or, if
 * certificates come from a directory, a key derived from the private key that they serve with. Without a certificate no record is
 * believed.
 */
export function createSeal(current: () => Pick<ServingCertificate, 'key' | 'shared'> | undefined): Seal {
  let read: { readonly of: unknown; readonly key: Buffer | undefined } | undefined;
  // A review must not pay for the derivation of a key. A certificate is replaced as a whole, so its identity says whether it is
  // the same.
  const key = () => {
    const certificate = current();
    if (read === undefined || read.of !== certificate) read = { of: certificate, key: keyOf(certificate) };
    return read.key;
  };
  return {
    sign: (text) => hmac(key() ?? randomBytes(32), text).toString('base64url'),
    isSigned(text, signature) {
      const own = key();
      return own !== undefined && isEqual(hmac(own, text), Buffer.from(signature, 'base64url'));
    },
    epoch: current,
  };
}

function keyOf(certificate: Pick<ServingCertificate, 'key' | 'shared'> | undefined): Buffer | undefined {
  if (certificate?.shared !== undefined) return Buffer.from(certificate.shared.signingKey, 'hex');
  return certificate && Buffer.from(hkdfSync('sha256', certificate.key.trim(), '', PURPOSE, 32));
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

function isEqual(one: Buffer, other: Buffer): boolean {
  return one.length === other.length && timingSafeEqual(one, other);
}
