import { expect } from 'chai';
import { ImageError, type ImageErrorCode } from '../../../src/oci/errors.ts';
import type { Credential } from '../../../src/oci/http/transport.ts';
import { createLogins, type Logins, type LoginTry } from '../../../src/oci/lookup/logins.ts';
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
    all.failed(targetFor(`r.example.com/${image}:1`), one, refused, all.generation(), [namespace]);
  beforeEach(() => {
    time = 1000;
    all = createLogins({ refusedMs: 0, now: () => time });
  });

  it('for two repositories, at the whole host, until it has worked there or has changed', () => {
    refuse('a/x');
    refuse('a/x');
    expect(isLeftOut(), 'one repository').to.equal(false);
    refuse('b/y');
    expect(isLeftOut(), 'two').to.equal(true);
    const there = targetFor('r.example.com/c/z:1');
    expect(all.refusal(there, one, ['n'])?.status).to.equal(401);
    expect(all.refusal(there, undefined, ['n'])).to.equal(undefined);
    expect(isLeftOut('c/z', 'n', one, 's.example.com'), 'elsewhere').to.equal(false);
    expect(isLeftOut('c/z', 'n', two), 'another').to.equal(false);
    all.forgive();
    expect(isLeftOut(), 'credentials have changed').to.equal(false);
    for (const image of ['a/x', 'b/y']) refuse(image);
    expect(isLeftOut()).to.equal(true);
    all.accepted(targetFor('r.example.com/d/z:1'), one);
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

describe('the candidates for an image', () => {
  let time: number;
  const at = (image: string) => targetFor(`r.example.com/${image}`);
  const candidates = () => createLogins({ refusedMs: 30_000, now: () => time });
  const credential = (fingerprint: string) => ({ username: 'u', password: 'p', fingerprint, shared: false });
  const error = (code: ImageErrorCode, retryAfterMs?: number) =>
    new ImageError(code, { code, temporary: false, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) });
  const names = (ordered: readonly LoginTry[]) => ordered.map((each) => each?.fingerprint ?? 'nobody');
  const [one, two, three] = [credential('one'), credential('two'), credential('three')];
  beforeEach(() => {
    time = 1000;
  });

  it('begin with the one that last worked for the project, or else for the host', () => {
    const { order, worked } = candidates();
    worked(at('a/x:1'), two);
    expect(names(order(at('b/x:1'), [one, two, undefined]))).to.deep.equal(['two', 'one', 'nobody']);
    worked(at('b/y:1'), one);
    expect(names(order(at('a/z:1'), [one, two]))).to.deep.equal(['two', 'one']);
    expect(names(order(at('c/z:1'), [two, one]))).to.deep.equal(['one', 'two']);
    expect(names(order(at('b/z:1'), [two]))).to.deep.equal(['two']);
  });

  it('do not begin without a login because another repository of the host needs none', () => {
    const { order, worked } = candidates();
    worked(at('a/x:1'), undefined);
    expect(names(order(at('a/y:1'), [one, undefined]))).to.deep.equal(['one', 'nobody']);
  });

  it('begin with the one that last worked for the repository, whatever the tag, and on no other host', () => {
    const { order, worked } = candidates();
    expect(names(order(at('a:1'), [one, two, undefined]))).to.deep.equal(['one', 'two', 'nobody']);
    worked(at('a:1'), two);
    expect(names(order(at('a:2'), [one, two, three]))).to.deep.equal(['two', 'one', 'three']);
    expect(names(order(targetFor('other.example.com/a:1'), [one, two]))).to.deep.equal(['one', 'two']);
    worked(at('a:1'), undefined);
    expect(names(order(at('a:1'), [one, two, undefined]))).to.deep.equal(['nobody', 'one', 'two']);
  });

  it('never include a credential that was not among them', () => {
    const { order, worked } = candidates();
    worked(at('a:1'), two);
    expect(names(order(at('a:1'), [one]))).to.deep.equal(['one']);
  });

  it('leave out for a while a credential that was refused for the repository', () => {
    const { refusal, failed, forgive } = candidates();
    failed(at('a:1'), one, error('denied'), 0, ['n']);
    expect(refusal(at('a:2'), one, ['n'])).to.include({ code: 'denied' });
    expect(refusal(at('a:1'), two, ['n'])).to.equal(undefined);
    expect(refusal(at('b:1'), one, ['n'])).to.equal(undefined);
    time += 30_000;
    expect(refusal(at('a:1'), one, ['n'])).to.equal(undefined);
    failed(at('a:1'), one, error('denied'), 0, ['n']);
    forgive();
    expect(refusal(at('a:1'), one, ['n'])).to.equal(undefined);
  });

  it('do not leave out a credential for which a tag is missing', () => {
    const { refusal, failed } = candidates();
    failed(at('a:1'), one, error('not-found'), 0, ['n']);
    expect(refusal(at('a:1'), one, ['n'])).to.equal(undefined);
  });
});
