import { expect } from 'chai';
import { type Claim, createLimiter } from '../../src/oci/limiter.ts';

describe('the limiter', () => {
  const NONE = { perNamespace: 0, total: 0 };
  const never = new AbortController().signal;
  const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

  it('serves in order, past those whose own host or namespace is full', async () => {
    const limiter = createLimiter({ perHost: 1, perNamespace: 2, total: 3, unproven: NONE });
    const started: string[] = [];
    const releases = new Map<string, () => void>();
    for (const claim of ['a/1', 'a/2', 'b/1', 'c/1', 'd/2', 'a/3']) {
      const [host = '', namespace = ''] = claim.split('/');
      void limiter.acquire({ host, namespace, isProven: () => true }, never).then((release) => {
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

  it('keeps places free for hosts that are known to answer', async () => {
    const limiter = createLimiter({ perHost: 9, perNamespace: 9, total: 9, unproven: { perNamespace: 2, total: 3 } });
    const started: string[] = [];
    const ask = (claim: Claim) =>
      limiter.acquire(claim, never).then((release) => {
        started.push(`${claim.host}/${claim.namespace}`);
        return release;
      });
    const silent = ['s1/n', 's2/n', 's3/n', 's4/m', 's5/m'].map((text) => {
      const [host = '', namespace = ''] = text.split('/');
      return ask({ host, namespace, isProven: () => false });
    });
    for (const namespace of ['n', 'm']) void ask({ host: 'good', namespace, isProven: () => true });
    await tick();
    await tick();
    expect(started.sort()).to.deep.equal(['good/m', 'good/n', 's1/n', 's2/n', 's4/m']);
    (await silent[0])?.();
    await tick();
    await tick();
    expect(started).to.deep.equal(['good/m', 'good/n', 's1/n', 's2/n', 's4/m', 's3/n']);
  });

  it('forgets who goes away', async () => {
    const limiter = createLimiter({ perHost: 1, perNamespace: 9, total: 9, unproven: NONE });
    const claim = { host: 'a', namespace: 'n', isProven: () => true };
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
