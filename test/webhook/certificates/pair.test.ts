import { generateKeyPairSync, webcrypto, X509Certificate } from 'node:crypto';
import { expect } from 'chai';
import { issueServing, makeAuthority } from '../../../src/webhook/certificates/issue.ts';
import { isVouchedFor, readBundle, readPair } from '../../../src/webhook/certificates/pair.ts';

const NOW = Date.UTC(2030, 0, 1);
const LIFE = { notBefore: NOW, notAfter: NOW + 86_400_000 };
const NAMES = { cert: 'tls.crt', key: 'tls.key' };

/** An intermediate authority. */
async function intermediate(root: { cert: string; key: string }): Promise<{ cert: string; key: string }> {
  const own = await makeAuthority(LIFE);
  // The package is loaded by now.
  const x509 = await import('@peculiar/x509');
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256' };
  const der = x509.PemConverter.decodeFirst(root.key);
  const certificate = await x509.X509CertificateGenerator.create(
    {
      subject: new x509.X509Certificate(own.cert).subject,
      issuer: new x509.X509Certificate(root.cert).subject,
      ...{ notBefore: new Date(LIFE.notBefore), notAfter: new Date(LIFE.notAfter) },
      signingAlgorithm: { name: 'ECDSA', hash: 'SHA-256' },
      publicKey: new x509.X509Certificate(own.cert).publicKey,
      signingKey: await webcrypto.subtle.importKey('pkcs8', der, algorithm, false, ['sign']),
      extensions: [new x509.BasicConstraintsExtension(true, undefined, true)],
    },
    webcrypto,
  );
  return { cert: `${certificate.toString('pem')}\n`, key: own.key };
}

describe('a certificate and its key', () => {
  const names = { dns: ['hook.svc'], ips: [] };

  it('are signed by the authority, directly or through intermediate certificates', async () => {
    const [root, stranger] = [await makeAuthority(LIFE), await makeAuthority(LIFE)];
    const between = await intermediate(root);
    const leaf = await issueServing(between, names, LIFE);
    const alone = readPair(leaf.cert, leaf.key, NAMES);
    const chained = readPair(leaf.cert + stranger.cert + between.cert, leaf.key, NAMES);
    const bundle = (pem: string) => readBundle(pem, 'ca.crt');
    expect(isVouchedFor(alone, bundle(between.cert))).to.equal(true);
    expect(isVouchedFor(alone, bundle(root.cert))).to.equal(false);
    expect(isVouchedFor(chained, bundle(root.cert))).to.equal(true);
    expect(isVouchedFor(chained, bundle(await makeAuthority(LIFE).then(({ cert }) => cert)))).to.equal(false);
    expect(isVouchedFor(alone, bundle(stranger.cert + between.cert))).to.equal(true);
    expect(isVouchedFor(alone, [])).to.equal(false);
  });

  it('are trusted if the certificate itself is in the bundle', async () => {
    const own = await makeAuthority(LIFE);
    expect(isVouchedFor(readPair(own.cert, own.key, NAMES), readBundle(own.cert, 'ca.crt'))).to.equal(true);
  });

  it('have the validity of the certificate, not of the intermediate ones', async () => {
    const root = await makeAuthority({ notBefore: NOW - 5000, notAfter: NOW + 5000 });
    const leaf = await issueServing(root, names, LIFE);
    expect(readPair(leaf.cert + root.cert, leaf.key, NAMES)).to.include(LIFE);
  });

  it('cannot be read if the key is encrypted, and the message contains nothing of the key', async () => {
    const { cert } = await makeAuthority(LIFE);
    const { privateKey: key } = generateKeyPairSync('ec', {
      namedCurve: 'P-256',
      publicKeyEncoding: { type: 'spki', format: 'pem' },
      privateKeyEncoding: { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'secret' },
    });
    expect(() => readPair(cert, key, NAMES)).to.throw(
      /^tls\.key cannot be read as a private key \(PEM, not encrypted\)$/,
    );
  });

  it('are P-256 if archaware created them, and each authority has a different name', async () => {
    const [one, other] = [await makeAuthority(LIFE), await makeAuthority(LIFE)].map(
      ({ cert }) => new X509Certificate(cert),
    );
    expect(one?.publicKey.asymmetricKeyDetails).to.deep.equal({ namedCurve: 'prime256v1' });
    expect(one?.ca).to.equal(true);
    expect(one?.subject).not.to.equal(other?.subject);
  });

  it('change nothing in the global Reflect', async () => {
    await makeAuthority(LIFE);
    expect(Reflect).not.to.have.any.keys('getMetadata', 'getOwnMetadata');
  });
});
