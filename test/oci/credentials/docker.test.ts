import { expect } from 'chai';
import {
  LoginError,
  type PullSecretData,
  parseDockerConfig,
  parsePullSecret,
} from '../../../src/oci/credentials/docker.ts';

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const modern = (config: unknown): PullSecretData => ({
  type: 'kubernetes.io/dockerconfigjson',
  data: { '.dockerconfigjson': base64(typeof config === 'string' ? config : JSON.stringify(config)) },
});
const legacy = (config: unknown): PullSecretData => ({
  type: 'kubernetes.io/dockercfg',
  data: { '.dockercfg': base64(JSON.stringify(config)) },
});

/** A secret with this entry for `a.b`. */
const one = (entry: object): PullSecretData => modern({ auths: { 'a.b': entry } });
const AUTH = base64('me:s3:cret');
const is = (username: string, password: string) => ({ pattern: 'a.b', username, password });
const LOGIN = is('me', 's3:cret');

describe('a pull secret', () => {
  const accepted: [what: string, secret: PullSecretData, expected: object[]][] = [
    ['auth', one({ auth: AUTH }), [LOGIN]],
    ['auth without padding', one({ auth: AUTH.replace(/=+$/, '') }), [LOGIN]],
    ['user and password', one({ username: 'me', password: 's3:cret' }), [LOGIN]],
    ['a user without a password', one({ username: 'me' }), [is('me', '')]],
    ['a password without a user', one({ password: 's3:cret' }), [is('', 's3:cret')]],
    ['auth over user', one({ auth: AUTH, username: 'x', password: 'y' }), [LOGIN]],
    ['the old type', legacy({ 'a.b': { auth: AUTH } }), [LOGIN]],
    ['only a token', one({ identitytoken: 'x' }), []],
    ['helpers', modern({ auths: {}, credHelpers: { 'a.b': '../../evil' }, credsStore: 'evil' }), []],
    ['no auths', modern({}), []],
    ['null', modern('null'), []],
    ['auths of null', modern({ auths: null }), []],
    ['an entry of null', modern({ auths: { 'x.y': null, 'a.b': { username: 'me', password: 's3:cret' } } }), [LOGIN]],
    ['Auths', modern({ Auths: { 'a.b': { auth: AUTH } } }), [LOGIN]],
    ['Username', one({ Username: 'me', PASSWORD: 's3:cret' }), [LOGIN]],
    ['Auth', one({ Auth: AUTH }), [LOGIN]],
    [
      'a field twice, of which the last counts',
      modern('{"auths":{"a.b":{"username":"x","Username":"me","password":"s3:cret"}}}'),
      [LOGIN],
    ],
    ['null after it', modern('{"auths":{"a.b":{"username":"me","Username":null,"password":"s3:cret"}}}'), [LOGIN]],
    [
      'auths twice, read into one',
      modern({ auths: { 'a.b': { auth: AUTH } }, AUTHS: { 'c.d': { auth: AUTH } } }),
      [LOGIN, { ...LOGIN, pattern: 'c.d' }],
    ],
    ['an entry twice, last null', modern({ auths: { 'a.b': { auth: base64('me:x') } }, Auths: { 'a.b': null } }), []],
    ['auths twice, of which null is the last', modern({ auths: { 'a.b': { auth: base64('me:x') } }, Auths: null }), []],
    ['an entry of null of the old type', legacy({ 'x.y': null, 'a.b': { Auth: AUTH } }), [LOGIN]],
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
    ['auth that is not base64', one({ auth: 'hunter2:%%' }), /auth/],
    ['auth without a colon', one({ auth: base64('hunter2') }), /user:password/],
    ['a number', one({ username: 1 }), /username/],
  ];
  for (const [what, secret, message] of refused) {
    it(`with ${what} is refused, and nothing of it is shown`, () => {
      expect(() => parsePullSecret(secret))
        .to.throw(LoginError, message)
        .that.satisfies((error: Error) => !error.message.includes('hunter2'));
    });
  }
});

describe("an operator's Docker configuration", () => {
  const logins: [what: string, auths: unknown, expected: object[]][] = [
    ['auth', { 'a.b': { auth: AUTH } }, [LOGIN]],
    ['an identity token', { 'a.b': { auth: AUTH, identitytoken: 'i' } }, [{ ...LOGIN, identityToken: 'i' }]],
    [
      'an identity token and a name, as docker login leaves them',
      { 'a.b': { auth: base64('me:'), identitytoken: 'i' } },
      [{ ...is('me', ''), identityToken: 'i' }],
    ],
    ['an identity token alone', { 'a.b': { identitytoken: 'i' } }, [{ ...is('', ''), identityToken: 'i' }]],
    ['a registry token', { 'a.b': { auth: AUTH, registrytoken: 'r' } }, [LOGIN]],
    ['what is in a store', { 'a.b': {} }, []],
    ['an entry of null', { 'c.d': null, 'a.b': { auth: AUTH } }, [LOGIN]],
    ['names in capitals', { 'a.b': { AUTH: AUTH, IdentityToken: 'i' } }, [{ ...LOGIN, identityToken: 'i' }]],
    ['several, in order', { 'c.d': { auth: AUTH }, 'a.b': { auth: AUTH } }, [{ ...LOGIN, pattern: 'c.d' }, LOGIN]],
  ];
  for (const [what, auths, expected] of logins) {
    it(`with ${what} gives ${expected.length}`, () => {
      expect(parseDockerConfig(JSON.stringify({ auths }))).to.deep.equal({ logins: expected, helpers: new Map() });
    });
  }

  const hosts: [key: string, host: string][] = [
    ['GCR.io', 'gcr.io'],
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
    ['auths that is not an object', '{"auths": "hunter2"}', /^auths must be a JSON object/],
    ['an entry that is not an object', '{"auths": {"c.d": {}, "a.b": "hunter2"}}', /^auths\["a\.b"\] is no/],
    ['auth that is not base64', '{"auths": {"a.b": {"auth": "hunter2:%"}}}', /^auths\["a\.b"\] has an auth/],
    ['a token that is a number', '{"auths": {"a.b": {"identitytoken": 1}}}', /identitytoken/],
    ['a key with a line break', '{"auths": {"a\\nb": 1}}', /^auths\["a\\u\{a\}b"\]/],
    ['a helper with a path', '{"credHelpers": {"a.b": "../hunter2"}}', /^credHelpers\["a\.b"\] is not a valid name/],
    ['a helper with an argument', '{"credHelpers": {"a.b": "x hunter2"}}', /is not a valid name/],
    ['a helper that is an object', '{"credHelpers": {"a.b": {}}}', /is not a string/],
    ['a helper for a path', '{"credHelpers": {"gcr.io/a": "gcr"}}', /^credHelpers\["gcr\.io\/a"\] is not a host/],
    ['a store with a path', '{"credsStore": "/bin/hunter2"}', /^credsStore is not a valid name/],
    ['a store that is a list', '{"credsStore": ["x"]}', /^credsStore is not a string/],
  ];
  for (const [what, text, message] of refused) {
    it(`with ${what} is refused, and nothing of it is shown`, () => {
      expect(() => parseDockerConfig(text))
        .to.throw(Error, message)
        .that.satisfies((error: Error) => !error.message.includes('hunter2'));
    });
  }
});
