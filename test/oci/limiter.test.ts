import { expect } from 'chai';
import { createLimiter } from '../../src/oci/limiter.ts';

describe('the limiter', () => {
  const never = new AbortController().signal;
  const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

  it('serves in order, past those whose own host or namespace is full', async () => {
    const limiter = createLimiter({ perHost: 1, perNamespace: 2, total: 3 });
    const started: string[] = [];
    const releases = new Map<string, () => void>();
    for (const claim of ['a/1', 'a/2', 'b/1', 'c/1', 'd/2', 'a/3']) {
      const [host = '', namespace = ''] = claim.split('/');
      void limiter.acquire({ host, namespace }, never).then((release) => {
        started.push(claim);
        releases.set(claim, release);
      });
    }
    const steps: [release: string, started: string[]][] = [
      ['', ['a/1', 'b/1', 'd/2']],
      ['d/2', []],
      ['b/1', ['c/1']],
      ['a/1', ['a/2']],
      ['a/2', ['a/3']],
    ];
    for (const [release, expected] of steps) {
      started.length = 0;
      releases.get(release)?.();
      releases.get(release)?.();
      await tick();
      await tick();
      expect([...started].sort(), `after ${release}`).to.deep.equal(expected.sort());
      if (release === '') started.length = 0;
    }
  });

  it('forgets who goes away', async () => {
    const limiter = createLimiter({ perHost: 1, perNamespace: 9, total: 9 });
    const claim = { host: 'a', namespace: 'n' };
    const release = await limiter.acquire(claim, never);
    const controller = new AbortController();
    const gone = limiter.acquire(claim, controller.signal).catch((error: unknown) => error);
    const next = limiter.acquire(claim, never);
    controller.abort(new Error('gone'));
    expect(String(await gone)).to.equal('Error: gone');
    release();
    (await next)();
    await limiter.acquire(claim, AbortSignal.abort(new Error('before'))).then(
      () => expect.fail(),
      (error: unknown) => expect(String(error)).to.equal('Error: before'),
    );
    (await limiter.acquire(claim, never))();
  });
});
