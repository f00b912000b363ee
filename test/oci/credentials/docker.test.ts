import { expect } from 'chai';
import { type PullSecret, PullSecretError, parsePullSecret } from '../../../src/oci/credentials/docker.ts';

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const modern = (config: unknown): PullSecret => ({
  type: 'kubernetes.io/dockerconfigjson',
  data: { '.dockerconfigjson': base64(typeof config === 'string' ? config : JSON.stringify(config)) },
});
const legacy = (config: unknown): PullSecret => ({
  type: 'kubernetes.io/dockercfg',
  data: { '.dockercfg': base64(JSON.stringify(config)) },
});

describe('a pull secret', () => {
  const login = { pattern: 'a.b', username: 'me', password: 's3:cret' };
  const accepted: [what: string, secret: PullSecret, expected: object[]][] = [
    ['auth', modern({ auths: { 'a.b': { auth: base64('me:s3:cret') } } }), [login]],
    ['auth without padding', modern({ auths: { 'a.b': { auth: base64('me:s3:cret').replace(/=+$/, '') } } }), [login]],
    ['user and password', modern({ auths: { 'a.b': { username: 'me', password: 's3:cret' } } }), [login]],
    [
      'auth over user',
      modern({ auths: { 'a.b': { auth: base64('me:s3:cret'), username: 'x', password: 'y' } } }),
      [login],
    ],
    ['the old type', legacy({ 'a.b': { auth: base64('me:s3:cret') } }), [login]],
    ['only a token', modern({ auths: { 'a.b': { identitytoken: 'x' } } }), []],
    ['helpers', modern({ auths: {}, credHelpers: { 'a.b': '../../evil' }, credsStore: 'evil' }), []],
    ['no auths', modern({}), []],
  ];
  for (const [what, secret, expected] of accepted) {
    it(`with ${what} gives ${expected.length}`, () => expect(parsePullSecret(secret)).to.deep.equal(expected));
  }

  const refused: [what: string, secret: PullSecret, message: RegExp][] = [
    ['another type', { type: 'Opaque', data: {} }, /type/],
    ['no key', { type: 'kubernetes.io/dockerconfigjson', data: {} }, /no key/],
    ['no JSON', modern('hunter2'), /no JSON/],
    ['auths of no object', modern({ auths: ['hunter2'] }), /auths/],
    ['an entry of no object', modern({ auths: { 'a.b': 'hunter2' } }), /entry 1/],
    ['auth of no base64', modern({ auths: { 'a.b': { auth: 'hunter2:%%' } } }), /auth/],
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
