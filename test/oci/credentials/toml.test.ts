import { expect } from 'chai';
import { parseTomlLogin } from '../../../src/oci/credentials/operator.ts';

const GOOD = 'user = "me"\nsecret = "hunter2"\n';

describe('a TOML file of a login', () => {
  const names: [name: string, pattern: string][] = [
    ['docker.io.toml', 'docker.io'],
    ['Quay.io.toml', 'quay.io'],
    ['registry.example.com:5000.toml', 'registry.example.com:5000'],
    ['localhost.toml', 'localhost'],
    ['*.example.com.toml', '*.example.com'],
    ['[fd00::1]:5000.toml', '[fd00::1]:5000'],
  ];
  for (const [name, pattern] of names) {
    it(`with the name ${name} is for ${pattern}`, () => {
      expect(parseTomlLogin(name, GOOD)).to.deep.equal({ pattern, username: 'me', password: 'hunter2' });
    });
  }

  const refused: [what: string, name: string, text: string, message: RegExp][] = [
    ['an unknown key', 'a.b.toml', `${GOOD}password = "hunter2"`, /unknown key "password"; expected user and secret/],
    ['a table', 'a.b.toml', `${GOOD}[auth]\nx = 1`, /unknown key "auth"/],
    ['no user', 'a.b.toml', 'secret = "hunter2"', /^it has no user$/],
    ['no secret', 'a.b.toml', 'user = "hunter2"', /^it has no secret$/],
    ['nothing', 'a.b.toml', '', /^it has no user$/],
    ['a number', 'a.b.toml', 'user = "me"\nsecret = 123', /^its secret must be a string/],
    ['an empty secret', 'a.b.toml', 'user = "me"\nsecret = ""', /^its secret must be/],
    ['a syntax error', 'a.b.toml', 'user = "me"\nsecret = hunter2', /^line 2, column 10: /],
    ['a key twice', 'a.b.toml', `${GOOD}secret = "hunter2"`, /^line 3, column \d+: /],
    ['a name that is not a host', 'a.b_5000.toml', GOOD, /name is not a host/],
    ['a name with a space', 'my registry.toml', GOOD, /name is not a host/],
    ['no name', '.toml', GOOD, /name is not a host/],
  ];
  for (const [what, name, text, message] of refused) {
    it(`with ${what} is refused, and nothing of it is shown`, () => {
      expect(() => parseTomlLogin(name, text))
        .to.throw(Error, message)
        .that.satisfies((error: Error) => !error.message.includes('hunter2'));
    });
  }
});
