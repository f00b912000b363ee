import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { messageOf } from '../../kit/errors.ts';
import { readAuthorities } from '../../oci/http/trust.ts';

/** The validity of a certificate; milliseconds since the epoch. */
export type Life = { readonly notBefore: number; readonly notAfter: number };

/** A certificate with its key, checked to belong together. */
export type Pair = Life & {
  /** PEM: the certificate itself, then the intermediate ones. */
  readonly cert: string;
  readonly key: string;
  readonly chain: readonly X509Certificate[];
};

/** The error for a pair that cannot be used. The message names the problem and never contains a key. */
export class PairError extends Error {
  override readonly name = 'PairError';
}

/**
 * Reads a certificate and its key, both PEM.
 *
 * @param names for messages: those of the two files, or of the Secret's entries
 * @throws PairError if one cannot be read, they do not belong together, or TLS refuses them
 */
export function readPair(cert: string, key: string, names: { readonly cert: string; readonly key: string }): Pair {
  const chain = readBundle(cert, names.cert);
  const [certificate] = chain;
  if (certificate === undefined) throw new PairError(`${names.cert} contains no PEM certificate`);
  if (!certificate.checkPrivateKey(readKey(key, names.key))) {
    throw new PairError(`${names.key} does not match ${names.cert}`);
  }
  try {
    createSecureContext({ cert, key });
  } catch (error) {
    throw new PairError(`${names.cert} and ${names.key} cannot be used for TLS: ${messageOf(error)}`);
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
 * @throws PairError if the text is not a bundle
 */
export function readBundle(text: string, name: string): X509Certificate[] {
  try {
    return readAuthorities(text).map((pem) => new X509Certificate(pem));
  } catch (error) {
    throw new PairError(`${name} ${messageOf(error)}`);
  }
}

/** Returns the validity of a certificate. */
export function lifeOf(certificate: X509Certificate): Life {
  return { notBefore: Date.parse(certificate.validFrom), notAfter: Date.parse(certificate.validTo) };
}

/** Returns why a certificate is not valid at this time, or undefined. */
export function timeProblem({ notBefore, notAfter }: Life, now: number): string | undefined {
  if (now > notAfter) return `expired at ${new Date(notAfter).toISOString()}`;
  return now < notBefore ? `is not valid before ${new Date(notBefore).toISOString()}` : undefined;
}

/** Whether one of the authorities signed a pair, directly or through its intermediate certificates. */
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
