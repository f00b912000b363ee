import { expect } from 'chai';
import { createImageSource } from '../../src/controllers/images.ts';
import { ImageError } from '../../src/oci/errors.ts';
import type { Resolver } from '../../src/oci/resolver.ts';
import { createHandClock } from './hand-clock.ts';

const RETRY_AT = 1_000;

describe('what is asked of images', () => {
  it('plans the next try of a failed image though the try falls due while it is being asked about', () => {
    let [wall, started] = [RETRY_AT - 1, false];
    const error = new ImageError('gone', { code: 'unavailable', temporary: true });
    const resolver: Resolver = {
      known: () => undefined,
      isStale: () => false,
      failure: () => ({ error, firstFailedAt: 0, retryAt: RETRY_AT, attempts: 1 }),
      request() {
        started = wall >= RETRY_AT;
        wall = RETRY_AT;
      },
      onSettled: () => undefined,
      resolve: () => Promise.reject(error),
      pending: () => 0,
      failing: () => 1,
      forgive: () => undefined,
    };
    const images = createImageSource(resolver, { ...createHandClock(), steady: () => wall }, () => undefined);
    const first = images.answer({ image: 'nginx', pullPolicy: '' }, 'default', []);
    expect(started).to.equal(false);
    expect(first).to.have.property('retryInMs', 1);
    const second = images.answer({ image: 'nginx', pullPolicy: '' }, 'default', []);
    expect(started).to.equal(true);
    expect(second).to.have.property('retryInMs', Number.POSITIVE_INFINITY);
  });
});
