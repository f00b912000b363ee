import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { messageOf } from '../../kit/errors.ts';
import { readAuthorities } from '../../oci/http/trust.ts';
import type { Life } from './issue.ts';

/** A certificate with its key, read and found to belong together. */
export type Pair = Life & {
  /** PEM: the certificate itself, then those that came with it. */
  readonly cert: string;
  readonly key: string;
  readonly chain: readonly X509Certificate[];
};

/** A pair that cannot be served with; the message names what is wrong, and no key. */
export class PairError extends Error {
  override readonly name = 'PairError';
}

/**
 * Reads a certificate and its key, PEM both.
 *
 * @param names of the two, for messages: of files, or of a Secret's entries
 * @throws PairError where one cannot be read, they do not belong together, or TLS refuses them
 */
export function readPair(cert: string, key: string, names: { readonly cert: string; readonly key: string }): Pair {
  const chain = readBundle(cert, names.cert);
  const [certificate] = chain;
  if (certificate === undefined) throw new PairError(`${names.cert} holds no PEM certificate`);
  if (!certificate.checkPrivateKey(readKey(key, names.key))) {
    throw new PairError(`${names.key} does not match ${names.cert}`);
  }
  try {
    createSecureContext({ cert, key });
  } catch (error) {
    const reason = messageOf(error);
    throw new PairError(`TLS refuses ${names.cert} and ${names.key}: ${reason}`);
  }
  return { cert, key, chain, ...lifeOf(certificate) };
}

function readKey(key: string, name: string): KeyObject {
  try {
    return createPrivateKey(key);
  } catch {
    throw new PairError(`${name} cannot be read as a private key (PEM, not encrypted)`);
  }
}

/**
 * Reads a PEM bundle of certificates.
 *
 * @throws PairError where it is none
 */
export function readBundle(text: string, name: string): X509Certificate[] {
  try {
    return readAuthorities(text).map((pem) => new X509Certificate(pem));
  } catch (error) {
    throw new PairError(`${name} ${messageOf(error)}`);
  }
}

/** From when to when a certificate holds. */
export function lifeOf(certificate: X509Certificate): Life {
  return { notBefore: Date.parse(certificate.validFrom), notAfter: Date.parse(certificate.validTo) };
}

/** What the clock says against a certificate, or undefined. */
export function timeProblem({ notBefore, notAfter }: Life, now: number): string | undefined {
  if (now > notAfter) return `expired at ${new Date(notAfter).toISOString()}`;
  return now < notBefore ? `is not valid before ${new Date(notBefore).toISOString()}` : undefined;
}

/** Whether one of the authorities vouches for a pair, by way of the certificates that came with it. */
export function isVouchedFor({ chain }: Pick<Pair, 'chain'>, authorities: readonly X509Certificate[]): boolean {
  const [first, ...between] = chain;
  let left = between;
  for (let at = first; at !== undefined; ) {
    const subject = at;
    if (authorities.some((authority) => authority.raw.equals(subject.raw) || isIssuedBy(subject, authority))) {
      return true;
    }
    at = left.find((candidate) => isIssuedBy(subject, candidate));
    left = left.filter((candidate) => candidate !== at);
  }
  return false;
}

function isIssuedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
}
