import { expect } from 'chai';
import { ImageError } from '../../../src/oci/errors.ts';
import type { Credential } from '../../../src/oci/http/transport.ts';
import { createLogins, type Logins } from '../../../src/oci/lookup/logins.ts';
import { targetFor } from './target.ts';

describe('a login that was refused is left alone', () => {
  let time: number;
  const login = (fingerprint: string): Credential => ({ username: 'u', password: 'p', fingerprint, shared: false });
  const [one, two] = [login('one'), login('two')];
  const refused = new ImageError('no', { code: 'denied', temporary: false, status: 401, refusesLogin: true });
  let all: Logins;
  const isLeftOut = (image = 'c/z', namespace = 'n', who = one, host = 'r.example.com') =>
    all.refusal(targetFor(`${host}/${image}:1`), who, [namespace]) !== undefined;
  const refuse = (image: string, namespace = 'n') =>
    all.refused(targetFor(`r.example.com/${image}:1`), one, refused, [namespace]);
  beforeEach(() => {
    time = 1000;
    all = createLogins(() => time);
  });

  it('for two repositories, at the whole host, until it has worked there or has changed', () => {
    refuse('a/x');
    all.refused(targetFor('r.example.com/a/x:2'), one, refused, ['n']);
    expect(isLeftOut(), 'one repository').to.equal(false);
    refuse('b/y');
    expect(isLeftOut(), 'two').to.equal(true);
    expect([isLeftOut('c/z', 'n', one, 's.example.com'), isLeftOut('c/z', 'n', two)], 'elsewhere').to.deep.equal([
      false,
      false,
    ]);
    all.forgive();
    expect(isLeftOut(), 'credentials have changed').to.equal(false);
    for (const image of ['a/x', 'b/y']) refuse(image);
    expect(isLeftOut()).to.equal(true);
    all.worked(targetFor('r.example.com/d/z:1'), one);
    expect(isLeftOut(), 'it has worked').to.equal(false);
    for (const image of ['a/x', 'b/y']) refuse(image);
    expect(isLeftOut(), 'it had worked there').to.equal(false);
  });

  it('and not for a namespace that met no refusal, until four tries were refused', () => {
    for (const image of ['a/x', 'b/y']) refuse(image, 'tenant');
    expect([isLeftOut('c/z', 'tenant'), isLeftOut('c/z', 'shop')]).to.deep.equal([true, false]);
    refuse('c/z', 'shop');
    expect([isLeftOut('d/z', 'shop'), isLeftOut('d/z', 'other')]).to.deep.equal([true, false]);
    refuse('d/z', 'other');
    expect(isLeftOut('e/z', 'last')).to.equal(true);
  });

  it('and not after 30 s in a project that has not refused it', () => {
    for (const image of ['a/x', 'b/y']) refuse(image);
    time += 29_999;
    expect(isLeftOut('c/z')).to.equal(true);
    time += 1;
    expect([isLeftOut('c/z'), isLeftOut('a/z')]).to.deep.equal([false, true]);
    refuse('c/z');
    time += 30_000;
    expect(isLeftOut('d/z')).to.equal(true);
  });

  for (const [namespaces, projects, most] of [
    [1, 1, 2],
    [1, 30, 3],
    [30, 1, 4],
    [30, 30, 4],
  ] as const) {
    it(`and is sent ${most} times in five minutes at most: ${namespaces} namespaces, ${projects} projects`, () => {
      const sent: number[] = [];
      for (let step = 0; step < 120; step += 1, time += 10_000) {
        for (let index = 0; index < 30; index += 1) {
          const image = `p${(step + index) % projects}/app${index}`;
          const namespace = `n${(step + index) % namespaces}`;
          if (isLeftOut(image, namespace)) continue;
          sent.push(time);
          refuse(image, namespace);
        }
      }
      const counts = sent.map((from) => sent.filter((each) => each >= from && each < from + 300_000).length);
      expect(Math.max(...counts)).to.equal(most);
    });
  }
});
