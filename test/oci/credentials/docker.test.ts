import { expect } from 'chai';
import {
  type PullSecretData,
  PullSecretError,
  parseDockerConfig,
  parsePullSecret,
} from '../../../src/oci/credentials/docker.ts';
import { SourceError } from '../../../src/oci/credentials/source-error.ts';

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const modern = (config: unknown): PullSecretData => ({
  type: 'kubernetes.io/dockerconfigjson',
  data: { '.dockerconfigjson': base64(typeof config === 'string' ? config : JSON.stringify(config)) },
});
const legacy = (config: unknown): PullSecretData => ({
  type: 'kubernetes.io/dockercfg',
  data: { '.dockercfg': base64(JSON.stringify(config)) },
});

describe('a pull secret', () => {
  const login = { pattern: 'a.b', username: 'me', password: 's3:cret' };
  const accepted: [what: string, secret: PullSecretData, expected: object[]][] = [
    ['auth', modern({ auths: { 'a.b': { auth: base64('me:s3:cret') } } }), [login]],
    ['auth without padding', modern({ auths: { 'a.b': { auth: base64('me:s3:cret').replace(/=+$/, '') } } }), [login]],
    ['user and password', modern({ auths: { 'a.b': { username: 'me', password: 's3:cret' } } }), [login]],
    [
      'a user without a password',
      modern({ auths: { 'a.b': { username: 'me' } } }),
      [{ pattern: 'a.b', username: 'me', password: '' }],
    ],
    [
      'a password without a user',
      modern({ auths: { 'a.b': { password: 's3:cret' } } }),
      [{ pattern: 'a.b', username: '', password: 's3:cret' }],
    ],
    [
      'auth over user',
      modern({ auths: { 'a.b': { auth: base64('me:s3:cret'), username: 'x', password: 'y' } } }),
      [login],
    ],
    ['the old type', legacy({ 'a.b': { auth: base64('me:s3:cret') } }), [login]],
    ['only a token', modern({ auths: { 'a.b': { identitytoken: 'x' } } }), []],
    ['helpers', modern({ auths: {}, credHelpers: { 'a.b': '../../evil' }, credsStore: 'evil' }), []],
    ['no auths', modern({}), []],
    ['null', modern('null'), []],
    ['auths of null', modern({ auths: null }), []],
    ['an entry of null', modern({ auths: { 'x.y': null, 'a.b': { username: 'me', password: 's3:cret' } } }), [login]],
    ['Auths', modern({ Auths: { 'a.b': { auth: base64('me:s3:cret') } } }), [login]],
    ['Username', modern({ auths: { 'a.b': { Username: 'me', PASSWORD: 's3:cret' } } }), [login]],
    ['Auth', modern({ auths: { 'a.b': { Auth: base64('me:s3:cret') } } }), [login]],
    [
      'a field twice, of which the last counts',
      modern('{"auths":{"a.b":{"username":"x","Username":"me","password":"s3:cret"}}}'),
      [login],
    ],
    [
      'a field of null after it',
      modern('{"auths":{"a.b":{"username":"me","Username":null,"password":"s3:cret"}}}'),
      [login],
    ],
    [
      'auths twice, read into one',
      modern({ auths: { 'a.b': { auth: base64('me:s3:cret') } }, AUTHS: { 'c.d': { auth: base64('me:s3:cret') } } }),
      [login, { ...login, pattern: 'c.d' }],
    ],
    [
      'an entry twice, of which null is the last',
      modern({ auths: { 'a.b': { auth: base64('me:x') } }, Auths: { 'a.b': null } }),
      [],
    ],
    ['auths twice, of which null is the last', modern({ auths: { 'a.b': { auth: base64('me:x') } }, Auths: null }), []],
    ['an entry of null of the old type', legacy({ 'x.y': null, 'a.b': { Auth: base64('me:s3:cret') } }), [login]],
  ];
  for (const [what, secret, expected] of accepted) {
    it(`with ${what} gives ${expected.length}`, () => expect(parsePullSecret(secret)).to.deep.equal(expected));
  }

  const refused: [what: string, secret: PullSecretData, message: RegExp][] = [
    ['another type', { type: 'Opaque', data: {} }, /type/],
    ['no key', { type: 'kubernetes.io/dockerconfigjson', data: {} }, /no key/],
    ['no JSON', modern('hunter2'), /not a JSON/],
    ['auths that is not an object', modern({ auths: ['hunter2'] }), /auths/],
    ['an entry that is not an object', modern({ auths: { 'a.b': 'hunter2' } }), /entry 1/],
    ['auth that is not base64', modern({ auths: { 'a.b': { auth: 'hunter2:%%' } } }), /auth/],
    ['auth without a colon', modern({ auths: { 'a.b': { auth: base64('hunter2') } } }), /user:password/],
    ['a number', modern({ auths: { 'a.b': { username: 1 } } }), /username/],
  ];
  for (const [what, secret, message] of refused) {
    it(`with ${what} is refused, and nothing of it is shown`, () => {
      expect(() => parsePullSecret(secret))
        .to.throw(PullSecretError, message)
        .that.satisfies((error: Error) => !error.message.includes('hunter2'));
    });
  }
});

describe("an operator's Docker configuration", () => {
  const auth = base64('me:s3:cret');
  const login = { pattern: 'a.b', username: 'me', password: 's3:cret' };
  const logins: [what: string, auths: unknown, expected: object[]][] = [
    ['auth', { 'a.b': { auth } }, [login]],
    ['user and password', { 'a.b': { username: 'me', password: 's3:cret' } }, [login]],
    ['an identity token', { 'a.b': { auth, identitytoken: 'i' } }, [{ ...login, identityToken: 'i' }]],
    [
      'an identity token and a name, as docker login leaves them',
      { 'a.b': { auth: base64('me:'), identitytoken: 'i' } },
      [{ pattern: 'a.b', username: 'me', password: '', identityToken: 'i' }],
    ],
    [
      'an identity token alone',
      { 'a.b': { identitytoken: 'i' } },
      [{ pattern: 'a.b', username: '', password: '', identityToken: 'i' }],
    ],
    ['a registry token', { 'a.b': { auth, registrytoken: 'r' } }, [login]],
    ['what is in a store', { 'a.b': {} }, []],
    ['null', null, []],
    ['an entry of null', { 'c.d': null, 'a.b': { auth } }, [login]],
    ['names in capitals', { 'a.b': { AUTH: auth, IdentityToken: 'i' } }, [{ ...login, identityToken: 'i' }]],
    ['several, in their order', { 'c.d': { auth }, 'a.b': { auth } }, [{ ...login, pattern: 'c.d' }, login]],
  ];
  for (const [what, auths, expected] of logins) {
    it(`with ${what} gives ${expected.length}`, () => {
      expect(parseDockerConfig(JSON.stringify({ auths }))).to.deep.equal({ logins: expected, helpers: new Map() });
    });
  }

  const hosts: [key: string, host: string][] = [
    ['gcr.io', 'gcr.io'],
    ['GCR.io', 'gcr.io'],
    ['https://gcr.io', 'gcr.io'],
    ['a.b:5000', 'a.b:5000'],
    ['http://a.b:5000/v2/', 'a.b:5000'],
    ['[::1]:5000', '[::1]:5000'],
    ['docker.io', 'docker.io'],
    ['index.docker.io', 'docker.io'],
    ['https://index.docker.io/v1/', 'docker.io'],
  ];
  for (const [key, host] of hosts) {
    it(`with a helper for ${key} means ${host}`, () => {
      const { helpers } = parseDockerConfig(JSON.stringify({ credHelpers: { [key]: 'ecr-login' } }));
      expect([...helpers]).to.deep.equal([[host, 'ecr-login']]);
    });
  }

  it('names a store, and the hosts that are not in it', () => {
    const config = parseDockerConfig('{"credsStore":"pass","credHelpers":{"a.b":""},"psFormat":"x"}');
    expect(config).to.deep.equal({ logins: [], helpers: new Map([['a.b', '']]), store: 'pass' });
    expect(parseDockerConfig('{"credsStore":""}')).to.not.have.property('store');
  });

  it('has keys in any case, as Docker takes them', () => {
    const config = parseDockerConfig('{"AUTHS":{"a.b":{}},"CredHelpers":{"c.d":"gcr","e.f":null},"credsstore":"pass"}');
    expect(config).to.deep.equal({
      logins: [],
      helpers: new Map([
        ['c.d', 'gcr'],
        ['e.f', ''],
      ]),
      store: 'pass',
    });
    expect(parseDockerConfig('null')).to.deep.equal({ logins: [], helpers: new Map() });
  });

  const refused: [what: string, text: string, message: RegExp][] = [
    ['a helper in capitals with a path', '{"CREDHELPERS": {"a.b": "../hunter2"}}', /is not a valid name/],
    ['no JSON', '{"auths": {"a.b": {"auth": "hunter2"', /not a JSON/],
    ['a list', '["hunter2"]', /not a JSON object/],
    ['auths that is not an object', '{"auths": "hunter2"}', /^auths is no/],
    ['an entry that is not an object', '{"auths": {"c.d": {}, "a.b": "hunter2"}}', /^auths\["a\.b"\] is no/],
    ['auth that is not base64', '{"auths": {"a.b": {"auth": "hunter2:%"}}}', /^auths\["a\.b"\] has an auth/],
    ['a token that is a number', '{"auths": {"a.b": {"identitytoken": 1}}}', /identitytoken/],
    ['a key with a line break', '{"auths": {"a\\nb": 1}}', /^auths\["a\\u\{a\}b"\]/],
    ['a helper with a path', '{"credHelpers": {"a.b": "../hunter2"}}', /^credHelpers\["a\.b"\] is not a valid name/],
    ['a helper with an argument', '{"credHelpers": {"a.b": "x hunter2"}}', /is not a valid name/],
    ['a helper that is an object', '{"credHelpers": {"a.b": {}}}', /is not a string/],
    [
      'a helper for a path',
      '{"credHelpers": {"gcr.io/project": "gcr"}}',
      /^credHelpers\["gcr\.io\/project"\] is not a host/,
    ],
    ['a store with a path', '{"credsStore": "/bin/hunter2"}', /^credsStore is not a valid name/],
    ['a store that is a list', '{"credsStore": ["x"]}', /^credsStore is not a string/],
  ];
  for (const [what, text, message] of refused) {
    it(`with ${what} is refused, and nothing of it is shown`, () => {
      expect(() => parseDockerConfig(text))
        .to.throw(SourceError, message)
        .that.satisfies((error: Error) => !error.message.includes('hunter2'));
    });
  }
});
