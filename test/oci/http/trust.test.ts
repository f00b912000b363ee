import { rootCertificates } from 'node:tls';
import { expect } from 'chai';
import { createAuthority } from '../../../hack/cluster/certificates.ts';
import { createAuthorities, forStrangers, insecureTrust, readAuthorities } from '../../../src/oci/http/trust.ts';
import { folderForEach } from '../../support/folder.ts';

const one = createAuthority('one').certificate;
const two = createAuthority('two').certificate;

describe('a bundle of authorities', () => {
  it('is split into its certificates, with any text between them', () => {
    const text = `# Issuer: one\n${one}\n# Issuer: two\r\n-----BEGIN PRIVATE KEY-----\nMC4=\n-----END PRIVATE KEY-----\n${two}end`;
    expect(readAuthorities(text)).to.deep.equal([one, two]);
    expect(readAuthorities(one.replaceAll('\n', '\r\n'))).to.deep.equal([one]);
  });

  const rows: [what: string, text: string, problem: string][] = [
    ['empty', '', 'contains no PEM certificate'],
    ['without a certificate', 'hello', 'contains no PEM certificate'],
    ['of a key', '-----BEGIN PRIVATE KEY-----\nMC4=\n-----END PRIVATE KEY-----', 'contains no PEM certificate'],
    ['cut off', one + two.slice(0, 200), 'certificate 2 of 2 cannot be read'],
    ['cut off before another', one.slice(0, 200) + two, 'certificate 1 of 2 cannot be read'],
    ['of no certificate', one.replace(/M.*\n/, 'AAAA\n'), 'certificate 1 of 1 cannot be read'],
  ];
  for (const [what, text, problem] of rows) {
    it(`${what}: ${problem}`, () => expect(() => readAuthorities(text)).to.throw(problem));
  }
});

describe('the authorities for TLS', () => {
  it('are not set if only the built-in ones are trusted', () => {
    const authorities = createAuthorities(() => [], undefined);
    expect(authorities()).to.equal(undefined);
    expect(authorities(insecureTrust)).to.equal(undefined);
  });

  it('are the built-in ones, the configured ones of the moment, and those of the trust', () => {
    let configured: string[] = [];
    const authorities = createAuthorities(() => configured, undefined);
    configured = [one];
    expect(authorities())
      .to.include.members([...rootCertificates.slice(0, 3), one])
      .and.not.include(two);
    expect(authorities({ ...insecureTrust, authorities: [two] })).to.include.members([one, two]);
  });

  const { at, write } = folderForEach();
  it('include those of NODE_EXTRA_CA_CERTS, if that file can be read', async function () {
    // Later versions of Node.js fix their answer when the process starts.
    if ('getCACertificates' in process.getBuiltinModule('node:tls')) this.skip();
    await write({ 'extra.pem': one });
    expect(createAuthorities(() => [two], at('extra.pem'))()).to.include.members([one, two]);
    expect(createAuthorities(() => [two], at('none'))()).to.deep.equal([...rootCertificates, two]);
  });
});

describe('a trust, for other hosts', () => {
  it('is its authorities, and undefined if there are none', () => {
    expect(forStrangers(insecureTrust)).to.equal(undefined);
    const clients = [{ certificate: 'C', key: 'K' }];
    const kept = forStrangers({ id: 'a', verify: false, plain: true, authorities: [one], clients });
    expect(kept).to.deep.include({ verify: true, plain: false, authorities: [one], clients: [] });
    expect(kept?.id).not.to.equal('a');
  });
});
