import { expect } from 'chai';
import { matchCredentials } from '../../../src/oci/credentials/docker.ts';

describe('credentials match as in the kubelet', () => {
  const rows: [what: string, patterns: string[], name: string, expected: string[]][] = [
    ['a host', ['registry.example.com'], 'registry.example.com/x', ['registry.example.com']],
    ['a scheme', ['https://registry.example.com/'], 'registry.example.com/x', ['https://registry.example.com/']],
    ['/v1/', ['http://registry.example.com/v1/'], 'registry.example.com/x', ['http://registry.example.com/v1/']],
    ['/v2/, a path', ['registry.example.com/v2/team'], 'registry.example.com/team/x', ['registry.example.com/v2/team']],
    ['/v2 alone is a path', ['registry.example.com/v2'], 'registry.example.com/x', []],
    ['the end of a name is not the name', ['registry.example.com'], 'ample.com/x', []],
    ['nor is its beginning', ['registry.example'], 'registry.example.com/x', []],
    ['a dot is a dot', ['registry.example.com'], 'registryxexample.com/x', []],
    ['a glob for a label', ['*.example.com'], 'registry.example.com/x', ['*.example.com']],
    ['a glob is one label', ['*.example.com'], 'a.b.example.com/x', []],
    ['a glob within a label', ['reg*-[0-9].example.com'], 'registry-7.example.com/x', ['reg*-[0-9].example.com']],
    ['a question mark begins a query', ['reg?.example.com'], 'reg7.example.com/x', []],
    ['a class of letters', ['reg[abc].example.com'], 'regb.example.com/x', ['reg[abc].example.com']],
    ['a class that ends in a hyphen', ['reg[a-].example.com'], 'reg-.example.com/x', ['reg[a-].example.com']],
    ['a letter that a class lacks', ['reg[abc].example.com'], 'regd.example.com/x', []],
    ['a negated class', ['reg[^0-9].example.com'], 'reg7.example.com/x', []],
    ['a class without an end', ['reg[0-9.example.com'], 'reg7.example.com/x', []],
    ['ports are equal', ['a.b:5000'], 'a.b:5000/x', ['a.b:5000']],
    ['ports differ', ['a.b:5000'], 'a.b/x', []],
    ['no port does not mean 443', ['a.b:443'], 'a.b/x', []],
    ['a glob is not a port', ['a.b:*'], 'a.b:5000/x', []],
    ['a path', ['a.b/team'], 'a.b/team/x', ['a.b/team']],
    ['a path is a string', ['a.b/team'], 'a.b/team-other/x', ['a.b/team']],
    ['longer paths first', ['a.b', 'a.b/team/app', 'a.b/team'], 'a.b/team/app', ['a.b/team/app', 'a.b/team', 'a.b']],
    ['globs after letters', ['*.b', 'a.b'], 'a.b/x', ['a.b', '*.b']],
    ['one key twice, as given', ['https://a.b', 'a.b'], 'a.b/x', ['https://a.b', 'a.b']],
    ['Docker Hub', ['docker.io'], 'docker.io/library/nginx', ['docker.io']],
    ['its old name', ['https://index.docker.io/v1/'], 'docker.io/library/nginx', ['https://index.docker.io/v1/']],
    ['its old name only if nothing else', ['index.docker.io', 'docker.io'], 'docker.io/library/nginx', ['docker.io']],
    ['its old name for others', ['index.docker.io'], 'quay.io/x', []],
    ['IPv6', ['[::1]:5000'], '[::1]:5000/x', ['[::1]:5000']],
    ['user information', ['https://me@a.b'], 'a.b/x', ['https://me@a.b']],
    ['no URL', ['a b.c', 'a%zz.b', 'a.b:x'], 'a.b/x', []],
    ['capitals in a host', ['MyACR.azurecr.io/Team'], 'myacr.azurecr.io/Team/x', ['MyACR.azurecr.io/Team']],
    ['capitals in a path differ', ['a.b/Team'], 'a.b/team/x', []],
    ['capitals in a glob', ['*.Example.COM:5000'], 'a.example.com:5000/x', ['*.Example.COM:5000']],
    ['longer paths first, whatever their case', ['a.b', 'A.b/team'], 'a.b/team/x', ['A.b/team', 'a.b']],
    ['a pattern whose path makes it an invalid URL', ['a.b/%zz'], 'a.b/%zz/x', []],
    ['nothing', [], 'a.b/x', []],
  ];
  for (const [what, patterns, name, expected] of rows) {
    it(what, () => {
      const entries = patterns.map((pattern) => ({ pattern }));
      expect(matchCredentials(entries, name).map(({ pattern }) => pattern)).to.deep.equal(expected);
    });
  }

  it('in a bounded time for hostile globs', () => {
    matchCredentials([{ pattern: `${'*a'.repeat(20_000)}b` }], `${'a'.repeat(250)}/x`);
  });
});
