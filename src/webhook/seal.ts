import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Seal } from '../placement/admission/record.ts';
import type { ServingCertificate } from './certificates/source.ts';

/** Apart from what else a key is used for. */
const PURPOSE = 'archaware.dev/managed';

/**
 * Signs records of pods (HMAC-SHA256). All replicas serve with the same private key, and so all have a key: that of the Secret, or
 * one that follows from the private key where certificates come from a directory, or from a Secret of an earlier version. Without a
 * certificate nothing is believed.
 */
export function createSeal(current: () => Pick<ServingCertificate, 'key' | 'shared'> | undefined): Seal {
  return {
    sign: (text) => hmac(keysOf(current())[0] ?? randomBytes(32), text).toString('base64url'),
    isSigned(text, signature) {
      const found = Buffer.from(signature, 'base64url');
      return keysOf(current()).some((key) => isEqual(hmac(key, text), found));
    },
  };
}

/** The first one signs. The other one may be that of a replica that has not yet read the Secret again. */
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
