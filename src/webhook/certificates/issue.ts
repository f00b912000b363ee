import { createPrivateKey, randomBytes, webcrypto } from 'node:crypto';
import type { Extension, JsonGeneralNames } from '@peculiar/x509';
import { type Life, type Pair, readPair } from './pair.ts';

/** The names by which the webhook is called: DNS names and addresses. */
export type ServingNames = { readonly dns: readonly string[]; readonly ips: readonly string[] };

type WantedCertificate = {
  readonly subject: string;
  /** The authority that signs; absent: the certificate signs itself. */
  readonly issuer?: { readonly name: string; readonly key: webcrypto.CryptoKey; readonly public: webcrypto.CryptoKey };
  readonly life: Life;
  readonly extensions: readonly Extension[];
};

const NEW = { cert: 'the new certificate', key: 'its key' };
const { subtle } = webcrypto;
const P256 = { name: 'ECDSA', namedCurve: 'P-256' };
const ECDSA_SHA256 = { name: 'ECDSA', hash: 'SHA-256' };

/** Creates a certificate authority. Each has a different name, so that it cannot be confused with its predecessor. */
export async function makeAuthority(life: Life): Promise<Pair> {
  const { BasicConstraintsExtension, KeyUsagesExtension, KeyUsageFlags } = await loadX509();
  return make({
    subject: `CN=archaware-controller webhook ${randomBytes(6).toString('hex')}`,
    life,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
    ],
  });
}

/** Issues a serving certificate for the names. */
export async function issueServing(
  authority: Pick<Pair, 'cert' | 'key'>,
  names: ServingNames,
  life: Life,
): Promise<Pair> {
  const x509 = await loadX509();
  const signer = new x509.X509Certificate(authority.cert);
  const alternatives: JsonGeneralNames = [
    ...names.dns.map((value) => ({ type: 'dns' as const, value })),
    ...names.ips.map((value) => ({ type: 'ip' as const, value })),
  ];
  return make({
    subject: 'CN=archaware-controller',
    issuer: {
      name: signer.subject,
      key: await importKey(authority.key),
      public: await signer.publicKey.export(webcrypto),
    },
    life,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension(alternatives),
    ],
  });
}

async function make({ subject, issuer, life, extensions }: WantedCertificate): Promise<Pair> {
  const x509 = await loadX509();
  const keys = await subtle.generateKey(P256, true, ['sign', 'verify']);
  const certificate = await x509.X509CertificateGenerator.create(
    {
      subject,
      issuer: issuer?.name ?? subject,
      notBefore: new Date(life.notBefore),
      notAfter: new Date(life.notAfter),
      signingAlgorithm: ECDSA_SHA256,
      publicKey: keys.publicKey,
      signingKey: issuer?.key ?? keys.privateKey,
      extensions: [
        ...extensions,
        await x509.SubjectKeyIdentifierExtension.create(keys.publicKey, false, webcrypto),
        await x509.AuthorityKeyIdentifierExtension.create(issuer?.public ?? keys.publicKey, false, webcrypto),
      ],
    },
    webcrypto,
  );
  const der = Buffer.from(await subtle.exportKey('pkcs8', keys.privateKey));
  const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }).export({ type: 'pkcs8', format: 'pem' });
  return readPair(`${certificate.toString('pem').trim()}\n`, key.toString(), NEW);
}

function importKey(pem: string): Promise<webcrypto.CryptoKey> {
  const der = createPrivateKey(pem).export({ type: 'pkcs8', format: 'der' });
  return subtle.importKey('pkcs8', der, P256, false, ['sign']);
}

/**
 * Loads the package when the first certificate is created, because loading it would slow down every start. Its dependency tsyringe
 * refuses to load without the metadata of decorators (a proposal, with a package of its own). The classes that it registers have no
 * parameters, so a function that returns no metadata is enough while it loads.
 */
async function loadX509(): Promise<typeof import('@peculiar/x509')> {
  const missing = ['getMetadata', 'getOwnMetadata'].filter((name) => !(name in Reflect));
  for (const name of missing) Reflect.set(Reflect, name, () => undefined);
  try {
    return await import('@peculiar/x509');
  } finally {
    for (const name of missing) Reflect.deleteProperty(Reflect, name);
  }
}
