import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { isIPv4 } from 'node:net';

/** A certificate and its private key, both PEM. */
export interface KeyPair {
  readonly certificate: string;
  readonly key: string;
}

/** A certificate authority for tests, which lives as long as the test that created it. */
export interface Authority {
  /** PEM */
  readonly certificate: string;
  /** Issues a serving certificate for the hosts: DNS names, IPv4 addresses and `::1`. */
  issue(commonName: string, hosts: readonly string[], notAfter?: Date): KeyPair;
  /** Issues a client certificate (mutual TLS). */
  issueClient(commonName: string): KeyPair;
}

// About fifty lines of DER (X.690) instead of a package with many dependencies, or of an openssl that may be missing.

const der = (tag: number, ...content: Buffer[]): Buffer => {
  const body = Buffer.concat(content);
  return Buffer.concat([Buffer.from([tag, ...lengthOf(body.length)]), body]);
};

function lengthOf(length: number): number[] {
  if (length < 0x80) return [length];
  return length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
}

const sequence = (...content: Buffer[]) => der(0x30, ...content);
const set = (...content: Buffer[]) => der(0x31, ...content);
const integer = (value: Buffer) => der(0x02, value);
const octets = (value: Buffer) => der(0x04, value);
const bits = (value: Buffer, unused = 0) => der(0x03, Buffer.from([unused]), value);
const yes = der(0x01, Buffer.from([0xff]));

function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  return der(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

function base128(value: number): number[] {
  const groups = [value & 0x7f];
  for (let left = value >> 7; left > 0; left >>= 7) groups.unshift((left & 0x7f) | 0x80);
  return groups;
}

/** UTCTime, which RFC 5280 requires until 2049. */
const time = (date: Date) => der(0x17, Buffer.from(`${date.toISOString().replace(/[-:T]/g, '').slice(2, 14)}Z`));
const distinguishedName = (commonName: string) =>
  sequence(set(sequence(oid('2.5.4.3'), der(0x0c, Buffer.from(commonName)))));
const ecdsaWithSha256 = sequence(oid('1.2.840.10045.4.3.2'));

function generalName(host: string): Buffer {
  if (isIPv4(host)) return der(0x87, Buffer.from(host.split('.').map(Number)));
  if (host === '::1') return der(0x87, Buffer.concat([Buffer.alloc(15), Buffer.from([1])]));
  return der(0x82, Buffer.from(host));
}

function authorityExtensions(): Buffer[] {
  return [
    sequence(oid('2.5.29.19'), yes, octets(sequence(yes))),
    // digitalSignature, keyCertSign, cRLSign
    sequence(oid('2.5.29.15'), yes, octets(bits(Buffer.from([0x86]), 1))),
  ];
}

/** The extensions of a certificate for a use: `1.3.6.1.5.5.7.3.1` serverAuth, `….2` clientAuth. */
function leafExtensions(use: string): Buffer[] {
  return [
    sequence(oid('2.5.29.19'), yes, octets(sequence())),
    sequence(oid('2.5.29.15'), yes, octets(bits(Buffer.from([0x80]), 7))),
    sequence(oid('2.5.29.37'), octets(sequence(oid(use)))),
  ];
}

function servingExtensions(hosts: readonly string[]): Buffer[] {
  const names = sequence(oid('2.5.29.17'), octets(sequence(...hosts.map(generalName))));
  return [...leafExtensions('1.3.6.1.5.5.7.3.1'), names];
}

interface Request {
  readonly subject: string;
  readonly issuer: string;
  readonly publicKey: KeyObject;
  readonly signer: KeyObject;
  readonly notAfter: Date;
  readonly extensions: Buffer[];
}

function certify(request: Request): string {
  const serial = randomBytes(16);
  // A serial is positive (top bit clear) and has no leading zero octet.
  serial.writeUInt8((serial.readUInt8(0) & 0x7f) | 0x40, 0);
  // An hour back, because the clocks of containers differ.
  const notBefore = new Date(Math.min(Date.now(), request.notAfter.getTime()) - 3_600_000);
  const body = sequence(
    der(0xa0, integer(Buffer.from([2]))),
    integer(serial),
    ecdsaWithSha256,
    distinguishedName(request.issuer),
    sequence(time(notBefore), time(request.notAfter)),
    distinguishedName(request.subject),
    request.publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(...request.extensions)),
  );
  return pem(sequence(body, ecdsaWithSha256, bits(sign('sha256', body, request.signer))));
}

function pem(certificate: Buffer): string {
  const lines = certificate.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}

/** A P-256 key pair, as certificates and service account tokens use it. */
export const generateKey = (): { publicKey: KeyObject; privateKey: KeyObject } =>
  generateKeyPairSync('ec', { namedCurve: 'P-256' });

/** Returns a private key in PKCS #8, which all of the Go components read. */
export const privatePem = (key: KeyObject): string => key.export({ type: 'pkcs8', format: 'pem' }).toString();

/** Creates an authority whose certificate is valid for ten years. */
export function createAuthority(commonName: string): Authority {
  const keys = generateKey();
  const inTenYears = new Date(Date.now() + 3650 * 86_400_000);
  const common = { issuer: commonName, signer: keys.privateKey };
  const certificate = certify({
    ...common,
    subject: commonName,
    publicKey: keys.publicKey,
    notAfter: inTenYears,
    extensions: authorityExtensions(),
  });
  const issue = (subject: string, extensions: Buffer[], notAfter: Date): KeyPair => {
    const { publicKey, privateKey } = generateKey();
    const issued = certify({ ...common, subject, publicKey, notAfter, extensions });
    return { certificate: issued, key: privatePem(privateKey) };
  };
  return {
    certificate,
    issue: (subject, hosts, notAfter = inTenYears) => issue(subject, servingExtensions(hosts), notAfter),
    issueClient: (subject) => issue(subject, leafExtensions('1.3.6.1.5.5.7.3.2'), inTenYears),
  };
}
