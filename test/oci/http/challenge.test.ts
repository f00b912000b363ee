import { expect } from 'chai';
import { ImageError } from '../../../src/oci/errors.ts';
import { acceptRealm, parseChallenges } from '../../../src/oci/http/token.ts';

describe('a WWW-Authenticate header', () => {
  const rows: [header: string | undefined, expected: [string, Record<string, string>][]][] = [
    [undefined, []],
    ['', []],
    ['Basic realm="x"', [['basic', { realm: 'x' }]]],
    ['Basic', [['basic', {}]]],
    ['BEARER Realm="https://a/t", SERVICE=s', [['bearer', { realm: 'https://a/t', service: 's' }]]],
    ['Bearer realm="a,b",scope="repository:x:a,b"', [['bearer', { realm: 'a,b', scope: 'repository:x:a,b' }]]],
    ['Bearer realm="a\\"b\\\\c"', [['bearer', { realm: 'a"b\\c' }]]],
    [
      'Negotiate YII==, Basic realm="x", Bearer realm = "y" , error="invalid_token"',
      [
        ['negotiate', {}],
        ['basic', { realm: 'x' }],
        ['bearer', { realm: 'y', error: 'invalid_token' }],
      ],
    ],
    [
      'Basic realm="1", Bearer realm="2"',
      [
        ['basic', { realm: '1' }],
        ['bearer', { realm: '2' }],
      ],
    ],
    ['Bearer realm="1",realm="2"', [['bearer', { realm: '1' }]]],
    [',, Basic realm=x ,,', [['basic', { realm: 'x' }]]],
    ['Bearer realm="unfinished', [['bearer', {}]]],
    [`Bearer realm="${'\\\\'.repeat(8001)}`, [['bearer', {}]]],
    ['"quoted"', []],
    ['realm="x"', [['realm', {}]]],
  ];
  for (const [header, expected] of rows) {
    it(`is parsed: ${JSON.stringify(header)}`.slice(0, 90), () => {
      const found = parseChallenges(header).map(({ scheme, parameters }) => [scheme, Object.fromEntries(parameters)]);
      expect(found).to.deep.equal(expected);
    });
  }

  it('is parsed in linear time, and never beyond 8 KiB', () => {
    for (const part of ['a', 'a=', 'a=b,', 'a="', '\\"', ', ', 'Basic ', 'a ='])
      parseChallenges(`Bearer ${part.repeat(1_000_000)}`);
  });
});

describe('a realm', () => {
  const REGISTRY = { host: 'r.example.com:5000', hostname: 'r.example.com' };
  const rows: [realm: string, insecure: boolean, code: string | undefined][] = [
    ['https://auth.docker.io/token?x=1', false, undefined],
    ['http://auth.example.com/token', true, undefined],
    ['http://auth.example.com/token', false, 'forbidden-address'],
    ['file:///etc/passwd', true, 'forbidden-address'],
    ['https://user:pass@a.b/', false, 'forbidden-address'],
    ['https://user@a.b/', false, 'forbidden-address'],
    ['javascript:1', true, 'forbidden-address'],
    ['https://a.b/#x', false, 'malformed'],
    ['/token', false, 'malformed'],
    ['//a.b/token', false, 'malformed'],
    ['http://', true, 'malformed'],
    ['', false, 'malformed'],
    [`https://a.b/${'x'.repeat(3000)}`, false, 'malformed'],
  ];
  for (const [realm, insecure, code] of rows) {
    it(`${realm.slice(0, 40)} ${insecure ? 'of an insecure registry ' : ''}is ${code ?? 'accepted'}`, () => {
      const accept = (): URL => acceptRealm(realm, { ...REGISTRY, insecure });
      if (code === undefined) expect(accept().href).to.equal(realm);
      else expect(accept).to.throw(ImageError).that.includes({ code });
    });
  }

  const raised: [realm: string, accepted: string][] = [
    ['http://r.example.com/token?x=1', 'https://r.example.com/token?x=1'],
    ['http://R.example.com:80/token', 'https://r.example.com/token'],
    ['http://r.example.com:8443/token', 'https://r.example.com:8443/token'],
  ];
  for (const [realm, accepted] of raised) {
    it(`${realm} of that host becomes https, unless it is insecure`, () => {
      expect(acceptRealm(realm, { ...REGISTRY, insecure: false }).href).to.equal(accepted);
      expect(acceptRealm(realm, { ...REGISTRY, insecure: true }).href).to.equal(new URL(realm).href);
    });
  }

  it('with http on another host, also one that only ends alike, is refused with what to do', () => {
    for (const realm of ['http://auth.r.example.com/token', 'http://example.com/', 'http://xr.example.com/']) {
      expect(() => acceptRealm(realm, { ...REGISTRY, insecure: false })).to.throw(
        ImageError,
        'r.example.com:5000 names a token service that is not https; its external URL should be https ' +
          '(registries.insecure: ["r.example.com:5000"] would send logins unencrypted, and skip the verification)',
      );
    }
  });

  it('that is not a URL is refused every time: URL.canParse changes its answer once it is optimised', () => {
    const accepted = Array.from({ length: 12_000 }, () => {
      try {
        return acceptRealm('https://\u00c3\u0080', { ...REGISTRY, insecure: false });
      } catch (error) {
        return error instanceof ImageError && error.code === 'malformed' ? 'malformed' : error;
      }
    });
    expect(new Set(accepted)).to.deep.equal(new Set(['malformed']));
  });
});
