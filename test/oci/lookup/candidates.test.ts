import { expect } from 'chai';
import type { Endpoint } from '../../../src/oci/endpoints/endpoint.ts';
import { ImageError, type ImageErrorCode } from '../../../src/oci/errors.ts';
import { type Candidate, createCandidates } from '../../../src/oci/lookup/candidates.ts';
import { targetOf } from '../../../src/oci/lookup/place.ts';
import { parseReference } from '../../../src/oci/reference.ts';

describe('the candidates for an image', () => {
  let time: number;
  const candidates = () => createCandidates({ refusedMs: 30_000, now: () => time });
  const credential = (fingerprint: string) => ({ username: 'u', password: 'p', fingerprint, shared: false });
  const place = (image: string) => {
    const reference = parseReference(image);
    const endpoint: Endpoint = {
      name: reference.endpoint,
      host: reference.endpoint,
      base: `https://${reference.endpoint}/v2`,
      repository: reference.repository,
      credentialName: reference.name,
      isSource: true,
      query: '',
      policy: 'registry',
      headers: {},
      resolvesTags: true,
    };
    return targetOf(endpoint, reference);
  };
  const error = (code: ImageErrorCode, retryAfterMs?: number) =>
    new ImageError(code, { code, temporary: false, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) });
  const names = (ordered: readonly Candidate[]) => ordered.map((each) => each?.fingerprint ?? 'nobody');
  const [one, two, three] = [credential('one'), credential('two'), credential('three')];
  beforeEach(() => {
    time = 1000;
  });

  it('begin with the one that last worked for the project, or else for the host', () => {
    const { order, worked } = candidates();
    worked(place('r.example.com/a/x:1'), two);
    expect(names(order(place('r.example.com/b/x:1'), [one, two, undefined]))).to.deep.equal(['two', 'one', 'nobody']);
    worked(place('r.example.com/b/y:1'), one);
    expect(names(order(place('r.example.com/a/z:1'), [one, two]))).to.deep.equal(['two', 'one']);
    expect(names(order(place('r.example.com/c/z:1'), [two, one]))).to.deep.equal(['one', 'two']);
    expect(names(order(place('r.example.com/b/z:1'), [two]))).to.deep.equal(['two']);
  });

  it('do not begin without a login because another repository of the host needs none', () => {
    const { order, worked } = candidates();
    worked(place('r.example.com/a/x:1'), undefined);
    expect(names(order(place('r.example.com/a/y:1'), [one, undefined]))).to.deep.equal(['one', 'nobody']);
  });

  it('begin with the one that last worked for the repository, whatever the tag, and on no other host', () => {
    const { order, worked } = candidates();
    expect(names(order(place('r.example.com/a:1'), [one, two, undefined]))).to.deep.equal(['one', 'two', 'nobody']);
    worked(place('r.example.com/a:1'), two);
    expect(names(order(place('r.example.com/a:2'), [one, two, three]))).to.deep.equal(['two', 'one', 'three']);
    expect(names(order(place('other.example.com/a:1'), [one, two]))).to.deep.equal(['one', 'two']);
    worked(place('r.example.com/a:1'), undefined);
    expect(names(order(place('r.example.com/a:1'), [one, two, undefined]))).to.deep.equal(['nobody', 'one', 'two']);
  });

  it('never include a credential that was not among them', () => {
    const { order, worked } = candidates();
    worked(place('r.example.com/a:1'), two);
    expect(names(order(place('r.example.com/a:1'), [one]))).to.deep.equal(['one']);
  });

  it('leave out for a while a credential that was refused for the repository', () => {
    const { refusal, failed, forgive } = candidates();
    failed(place('r.example.com/a:1'), one, error('denied'), 0);
    expect(refusal(place('r.example.com/a:2'), one)).to.include({ code: 'denied' });
    expect(refusal(place('r.example.com/a:1'), two)).to.equal(undefined);
    expect(refusal(place('r.example.com/b:1'), one)).to.equal(undefined);
    time += 30_000;
    expect(refusal(place('r.example.com/a:1'), one)).to.equal(undefined);
    failed(place('r.example.com/a:1'), one, error('denied'), 0);
    forgive();
    expect(refusal(place('r.example.com/a:1'), one)).to.equal(undefined);
  });

  it('do not leave out a credential for which a tag is missing', () => {
    const { refusal, failed } = candidates();
    failed(place('r.example.com/a:1'), one, error('not-found'), 0);
    expect(refusal(place('r.example.com/a:1'), one)).to.equal(undefined);
  });

  const limited: [what: string, met: string[], paused: string[], asked: string[]][] = [
    ['at the repository that answered 429', ['a/x:1'], ['a/x:1', 'a/x:2'], ['a/y:1', 'b/x:1']],
    ['at the project once two of its repositories did', ['a/x:1', 'a/y:1'], ['a/x:1', 'a/z:1'], ['b/x:1']],
    ['at two projects that did, and at no third one', ['a/x:1', 'b/x:1'], ['a/x:1', 'a/y:1', 'b/y:1'], ['c/x:1']],
  ];
  for (const [what, met, paused, asked] of limited) {
    it(`pause an account ${what}, and nobody else`, () => {
      const { refusal, failed } = candidates();
      for (const image of met) failed(place(`r.example.com/${image}`), one, error('rate-limited', 600_000), 0);
      const state = (image: string, candidate: Candidate) => refusal(place(`r.example.com/${image}`), candidate)?.code;
      for (const image of paused) expect(state(image, one), image).to.equal('rate-limited');
      for (const image of asked) expect(state(image, one), image).to.equal(undefined);
      for (const other of [two, undefined]) expect(state('a/x:1', other)).to.equal(undefined);
      expect(refusal(place('s.example.com/a/x:1'), one)).to.equal(undefined);
      time += 600_000;
      for (const image of paused) expect(state(image, one), image).to.equal(undefined);
    });
  }

  it('pause the projects of an account no longer when one of them answers', () => {
    const { refusal, failed, worked } = candidates();
    for (const image of ['a/x', 'a/y', 'b/x'])
      failed(place(`r.example.com/${image}`), one, error('rate-limited', 60_000), 0);
    worked(place('r.example.com/a/z'), one);
    const refused = ['a/w', 'b/y', 'a/x', 'b/x'].map(
      (image) => refusal(place(`r.example.com/${image}`), one) !== undefined,
    );
    expect(refused).to.deep.equal([false, false, true, true]);
  });

  it('say what the limit is for, and that nothing was asked', () => {
    const { refusal, failed } = candidates();
    failed(place('r.example.com/a/x'), one, error('rate-limited', 60_000), 0);
    const own = 'r.example.com has reached its limit of requests for its repository a/x';
    expect(refusal(place('r.example.com/a/x'), one)).to.include({
      message: own,
      isUnasked: true,
      retryAfterMs: 60_000,
    });
    failed(place('r.example.com/a/y'), one, error('rate-limited', 60_000), 0);
    const project = 'r.example.com has reached its limit of requests for its project a';
    expect(refusal(place('r.example.com/a/z'), one)).to.include({ message: project, isUnasked: true });
    failed(place('r.example.com/b/x'), one, error('rate-limited', 60_000), 0);
    const several = 'r.example.com has reached its limit of requests for several of its projects';
    expect(refusal(place('r.example.com/b/y'), one)).to.include({ message: several, isUnasked: true });
  });

  it('pause it for ten seconds if the registry names no time', () => {
    const { refusal, failed } = candidates();
    failed(place('r.example.com/a:1'), undefined, error('rate-limited'), 0);
    expect(refusal(place('r.example.com/a:1'), undefined)).to.include({ code: 'rate-limited', retryAfterMs: 10_000 });
  });
});
