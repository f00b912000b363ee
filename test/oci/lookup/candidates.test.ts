import { expect } from 'chai';
import { ImageError, type ImageErrorCode } from '../../../src/oci/errors.ts';
import { type Candidate, createCandidates } from '../../../src/oci/lookup/candidates.ts';
import { createLogins } from '../../../src/oci/lookup/logins.ts';
import { targetFor } from './target.ts';

describe('the candidates for an image', () => {
  let time: number;
  const candidates = () => createCandidates({ refusedMs: 30_000, now: () => time, logins: createLogins(() => time) });
  const credential = (fingerprint: string) => ({ username: 'u', password: 'p', fingerprint, shared: false });
  const error = (code: ImageErrorCode, retryAfterMs?: number) =>
    new ImageError(code, { code, temporary: false, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) });
  const names = (ordered: readonly Candidate[]) => ordered.map((each) => each?.fingerprint ?? 'nobody');
  const [one, two, three] = [credential('one'), credential('two'), credential('three')];
  beforeEach(() => {
    time = 1000;
  });

  it('begin with the one that last worked for the project, or else for the host', () => {
    const { order, worked } = candidates();
    worked(targetFor('r.example.com/a/x:1'), two);
    expect(names(order(targetFor('r.example.com/b/x:1'), [one, two, undefined]))).to.deep.equal([
      'two',
      'one',
      'nobody',
    ]);
    worked(targetFor('r.example.com/b/y:1'), one);
    expect(names(order(targetFor('r.example.com/a/z:1'), [one, two]))).to.deep.equal(['two', 'one']);
    expect(names(order(targetFor('r.example.com/c/z:1'), [two, one]))).to.deep.equal(['one', 'two']);
    expect(names(order(targetFor('r.example.com/b/z:1'), [two]))).to.deep.equal(['two']);
  });

  it('do not begin without a login because another repository of the host needs none', () => {
    const { order, worked } = candidates();
    worked(targetFor('r.example.com/a/x:1'), undefined);
    expect(names(order(targetFor('r.example.com/a/y:1'), [one, undefined]))).to.deep.equal(['one', 'nobody']);
  });

  it('begin with the one that last worked for the repository, whatever the tag, and on no other host', () => {
    const { order, worked } = candidates();
    expect(names(order(targetFor('r.example.com/a:1'), [one, two, undefined]))).to.deep.equal(['one', 'two', 'nobody']);
    worked(targetFor('r.example.com/a:1'), two);
    expect(names(order(targetFor('r.example.com/a:2'), [one, two, three]))).to.deep.equal(['two', 'one', 'three']);
    expect(names(order(targetFor('other.example.com/a:1'), [one, two]))).to.deep.equal(['one', 'two']);
    worked(targetFor('r.example.com/a:1'), undefined);
    expect(names(order(targetFor('r.example.com/a:1'), [one, two, undefined]))).to.deep.equal(['nobody', 'one', 'two']);
  });

  it('never include a credential that was not among them', () => {
    const { order, worked } = candidates();
    worked(targetFor('r.example.com/a:1'), two);
    expect(names(order(targetFor('r.example.com/a:1'), [one]))).to.deep.equal(['one']);
  });

  it('leave out for a while a credential that was refused for the repository', () => {
    const { refusal, failed, forgive } = candidates();
    failed(targetFor('r.example.com/a:1'), one, error('denied'), 0, ['n']);
    expect(refusal(targetFor('r.example.com/a:2'), one, ['n'])).to.include({ code: 'denied' });
    expect(refusal(targetFor('r.example.com/a:1'), two, ['n'])).to.equal(undefined);
    expect(refusal(targetFor('r.example.com/b:1'), one, ['n'])).to.equal(undefined);
    time += 30_000;
    expect(refusal(targetFor('r.example.com/a:1'), one, ['n'])).to.equal(undefined);
    failed(targetFor('r.example.com/a:1'), one, error('denied'), 0, ['n']);
    forgive();
    expect(refusal(targetFor('r.example.com/a:1'), one, ['n'])).to.equal(undefined);
  });

  it('do not leave out a credential for which a tag is missing', () => {
    const { refusal, failed } = candidates();
    failed(targetFor('r.example.com/a:1'), one, error('not-found'), 0, ['n']);
    expect(refusal(targetFor('r.example.com/a:1'), one, ['n'])).to.equal(undefined);
  });

  it('leave out a login that its host refuses, and never the anonymous try with it', () => {
    const { refusal, failed, forgive } = candidates();
    const no = new ImageError('no', { code: 'denied', temporary: false, status: 401, refusesLogin: true });
    for (const image of ['a/x', 'b/y']) failed(targetFor(`r.example.com/${image}:1`), one, no, 0, ['n']);
    const there = targetFor('r.example.com/c/z:1');
    expect([refusal(there, one, ['n'])?.status, refusal(there, undefined, ['n'])]).to.deep.equal([401, undefined]);
    forgive();
    expect(refusal(there, one, ['n'])).to.equal(undefined);
  });
});
