import { expect } from 'chai';
import { printableAscii } from '../../src/kit/printable.ts';
import { ImageError } from '../../src/oci/errors.ts';
import { canonicalName, parseReference } from '../../src/oci/reference.ts';

const DIGEST = `sha256:${'a'.repeat(64)}`;
const LONG_TAG = 't'.repeat(128);
/** As long as the ID of an image. */
const LONG_NAME = 'a'.repeat(64);

describe('a reference', () => {
  const accepted: [text: string, name: string, rest: string][] = [
    ['nginx', 'docker.io/library/nginx', ':latest'],
    ['docker.io/nginx', 'docker.io/library/nginx', ':latest'],
    ['index.docker.io/library/nginx:1', 'docker.io/library/nginx', ':1'],
    ['user/app', 'docker.io/user/app', ':latest'],
    ['quay.io/ns/x:tag', 'quay.io/ns/x', ':tag'],
    [`quay.io/ns/x:tag@${DIGEST}`, 'quay.io/ns/x', `:tag@${DIGEST}`],
    [`x@${DIGEST}`, 'docker.io/library/x', `@${DIGEST}`],
    [`x@sha512:${'b'.repeat(128)}`, 'docker.io/library/x', `@sha512:${'b'.repeat(128)}`],
    ['localhost/x', 'localhost/x', ':latest'],
    ['localhost:5000/x:v1', 'localhost:5000/x', ':v1'],
    ['[::1]:5000/a/b', '[::1]:5000/a/b', ':latest'],
    ['[2001:DB8::1]/a:b', '[2001:db8::1]/a', ':b'],
    ['Registry.Example.com/a', 'registry.example.com/a', ':latest'],
    ['UPPER/a', 'upper/a', ':latest'],
    [`x:${LONG_TAG}`, 'docker.io/library/x', `:${LONG_TAG}`],
    ['a.b/c__d/e---f_g.h', 'a.b/c__d/e---f_g.h', ':latest'],
    ['foo_bar.com/x', 'foo_bar.com/x', ':latest'],
    ['a__b-c.foo_bar.com/x/y:1', 'a__b-c.foo_bar.com/x/y', ':1'],
    [`${LONG_NAME}:tag`, `docker.io/library/${LONG_NAME}`, ':tag'],
    [`${LONG_NAME}@${DIGEST}`, `docker.io/library/${LONG_NAME}`, `@${DIGEST}`],
    [`x@sha384:${'b'.repeat(96)}`, 'docker.io/library/x', `@sha384:${'b'.repeat(96)}`],
    ['a.b/c/d/e/f:Upper_Case.1-2', 'a.b/c/d/e/f', ':Upper_Case.1-2'],
    ['192.0.2.1:5000/x', '192.0.2.1:5000/x', ':latest'],
    ['host.example/nginx', 'host.example/nginx', ':latest'],
  ];
  for (const [text, name, rest] of accepted) {
    it(`accepts ${text.slice(0, 60)}`, () => {
      const host = name.slice(0, name.indexOf('/'));
      const endpoint = host === 'docker.io' ? 'registry-1.docker.io' : host;
      expect(parseReference(text)).to.include({ canonical: name + rest, name, endpoint });
    });
  }

  const refused: [problem: RegExp, ...texts: string[]][] = [
    [/the host is not valid/, '\u212a8s.io/a', 'registry.0/a', '_foo.com/x', 'foo___bar.com/x', '1.2.3.256:80/a'],
    [/the host is not valid/, 'Foo_bar.com/x', 'foo_bar.com:5000/x'],
    [/255/, `foo_bar.com/${'c'.repeat(250)}`, 'c'.repeat(256)],
    [/digest/, `x@sha384:${'b'.repeat(64)}`, 'a@sha256:abc', `a@${DIGEST.toUpperCase()}`, 'user:pass@a.b/x'],
    [/digest/, `a@md5:${'a'.repeat(32)}`, `a.b/x@${DIGEST}@${DIGEST}`],
    [/empty/, '', '/x', 'a//b'],
    [/image "Foo": repository names are lower case/, 'Foo'],
    [/missing/, 'a.b/'],
    [/tag/, 'a:', `a:${LONG_TAG}t`, 'a:.b', 'a.b/x:a\nb'],
    [/port/, 'a.b:0/x', 'a.b:x/y', 'a.b:/x', 'a.b:65536/x'],
    [/host|port/, '[::1/x', '[::g]/x', '[::1]x/y'],
    [/host/, '-a.b/x', 'a..b/x', '[fe80::1%lo]:5000/x', 'b\u00fccher.example/x'],
    [/component/, 'a___b', 'a_-b', 'a b', 'a.b/../c', 'a.b/x?y=z', 'a.b/%2e%2e/x', 'a.b\\x'],
    [/host|component/, '../../etc'],
    [/ID of an image/, 'a'.repeat(64)],
    [/800/, 'x'.repeat(100_000)],
    [/host|port|empty/, 'https://a.b/x'],
    [/missing|empty/, 'a.b/x/'],
  ];
  for (const [problem, text] of refused.flatMap(([why, ...texts]) => texts.map((each) => [why, each] as const))) {
    it(`refuses ${JSON.stringify(text.slice(0, 60))}`, () => {
      expect(() => parseReference(text))
        .to.throw(ImageError, problem)
        .that.includes({ code: 'malformed', temporary: false });
    });
  }

  it('takes linear time for hostile input', () => {
    for (const part of ['a-', '-', '__', 'a.', '[', ':', '@', '/', 'a_'])
      expect(() => parseReference(`${part.repeat(399)}!`)).to.throw(ImageError);
  });

  it('has a name even if it is malformed', () => {
    expect(canonicalName('nginx')).to.equal('docker.io/library/nginx:latest');
    expect(canonicalName('Nope')).to.equal('Nope');
  });
});

describe('printableAscii', () => {
  const rows: [text: string, max: number, printed: string][] = [
    ['plain', 10, 'plain'],
    ['a\nb\u001b[31m', 40, 'a\\u{a}b\\u{1b}[31m'],
    ['ü', 10, '\\u{fc}'],
    ['x'.repeat(20), 5, 'xxxxx...'],
    ['\n\n\n', 6, '\\u{a}\\...'],
  ];
  for (const [text, max, printed] of rows) {
    it(`prints ${JSON.stringify(text)}`, () => expect(printableAscii(text, max)).to.equal(printed));
  }
});
