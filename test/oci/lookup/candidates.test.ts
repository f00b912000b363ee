import { expect } from 'chai';
import type { Endpoint } from '../../../src/oci/endpoints/endpoint.ts';
import { ImageError, type ImageErrorCode } from '../../../src/oci/errors.ts';
import { type Candidate, createCandidates } from '../../../src/oci/lookup/candidates.ts';
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
    return { endpoint, reference };
  };
  const error = (code: ImageErrorCode, retryAfterMs?: number) =>
    new ImageError(code, { code, temporary: false, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) });
  const names = (ordered: readonly Candidate[]) => ordered.map((each) => each?.fingerprint ?? 'nobody');
  const [one, two, three] = [credential('one'), credential('two'), credential('three')];
  beforeEach(() => {
    time = 1000;
  });

  it('begin with the one that last worked for the repository, whatever the tag, and for no other repository', () => {
    const { order, worked } = candidates();
    expect(names(order(place('r.example.com/a:1'), [one, two, undefined]))).to.deep.equal(['one', 'two', 'nobody']);
    worked(place('r.example.com/a:1'), two);
    expect(names(order(place('r.example.com/a:2'), [one, two, three]))).to.deep.equal(['two', 'one', 'three']);
    expect(names(order(place('r.example.com/b:1'), [one, two]))).to.deep.equal(['one', 'two']);
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

  it('pause an account that has reached its limit, over all repositories of the host', () => {
    const { refusal, failed } = candidates();
    failed(place('r.example.com/a:1'), one, error('rate-limited', 60_000), 0);
    expect(refusal(place('r.example.com/b:1'), one)).to.include({ code: 'rate-limited', retryAfterMs: 60_000 });
    expect(refusal(place('r.example.com/b:1'), undefined)).to.equal(undefined);
    expect(refusal(place('s.example.com/b:1'), one)).to.equal(undefined);
    time += 60_000;
    expect(refusal(place('r.example.com/b:1'), one)).to.equal(undefined);
  });

  it('pause it for ten seconds if the registry names no time', () => {
    const { refusal, failed } = candidates();
    failed(place('r.example.com/a:1'), undefined, error('rate-limited'), 0);
    expect(refusal(place('r.example.com/a:1'), undefined)).to.include({ code: 'rate-limited', retryAfterMs: 10_000 });
  });
});
