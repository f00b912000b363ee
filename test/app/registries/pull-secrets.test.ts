import { getEventListeners } from 'node:events';
import { expect } from 'chai';
import { createPullSecretReader, createServiceAccountReader } from '../../../src/app/registries/pull-secrets.ts';
import { systemClock } from '../../../src/kit/clock.ts';
import { ApiError, ConnectionError } from '../../../src/kube/errors.ts';
import { clientOf } from '../../support/client-of.ts';

describe('reading the Secrets that a pod names', () => {
  let asked: string[];
  let failure: Error | undefined;
  const client = clientOf({
    async request(_verb, path) {
      asked.push(path);
      if (failure !== undefined) throw failure;
      return { type: 'Opaque', data: {}, imagePullSecrets: [{ name: 'pull' }] };
    },
  });
  const signal = new AbortController().signal;
  const read = (...pullSecrets: string[]) =>
    createPullSecretReader(client, systemClock)({ namespace: 'ns', pullSecrets, always: false }, signal);
  const accounts = (name: string) => createServiceAccountReader(client, systemClock)('ns', name, signal);
  beforeEach(() => {
    [asked, failure] = [[], undefined];
  });

  for (const name of ['a', '0-9.x', `${'a'.repeat(63)}.${'b'.repeat(189)}`]) {
    it(`asks for ${name.slice(0, 20)}`, async () => {
      expect(await read(name)).to.deep.equal([{ name, type: 'Opaque', data: {} }]);
      expect(await accounts(name)).to.deep.equal(['pull']);
      expect(asked).to.deep.equal([
        `/api/v1/namespaces/ns/secrets/${name}`,
        `/api/v1/namespaces/ns/serviceaccounts/${name}`,
      ]);
    });
  }

  const bad = ['.', '..', '../../kube-system/secrets/x', 'a b', 'a?b=c', 'a#b', 'a%2fb', 'a\nb', 'é', 'A', '-a', 'a.'];
  for (const name of ['', ...bad, 'a..b', 'n'.repeat(254)]) {
    it(`does not request the name ${JSON.stringify(name.slice(0, 30))}`, async () => {
      expect(await read(name, 'good')).to.deep.equal([
        { name, problem: 'its name is not a valid name of a Secret' },
        { name: 'good', type: 'Opaque', data: {} },
      ]);
      expect(await accounts(name)).to.deep.equal([]);
      expect(asked).to.deep.equal(['/api/v1/namespaces/ns/secrets/good']);
    });
  }

  const problems: [status: number, problem: string][] = [
    [403, 'it may not be read'],
    [404, 'it does not exist'],
    [414, 'it cannot be read: the API server answers 414'],
  ];
  for (const [status, problem] of problems) {
    it(`ignores a Secret that is answered with ${status}`, async () => {
      failure = new ApiError(status, {}, 'get x');
      expect(await read('a')).to.deep.equal([{ name: 'a', problem }]);
      expect(await accounts('a')).to.deep.equal([]);
    });
  }

  for (const error of [new ApiError(500, {}, 'get x'), new ConnectionError('not there')]) {
    it(`fails after a temporary error: ${error.name} ${error.message}`, async () => {
      failure = error;
      expect(await read('a').catch((thrown: unknown) => thrown)).to.equal(error);
      expect(await accounts('a').catch((thrown: unknown) => thrown)).to.equal(error);
    });
  }

  describe('for many lookups at once', () => {
    let running: { path: string; answer: (status?: number) => void }[];
    let most: number;
    let now: number;
    let open: ReturnType<typeof createPullSecretReader>;
    beforeEach(() => {
      [running, most, now] = [[], 0, 0];
      const held = clientOf({
        request: (_verb, path, options) =>
          new Promise((resolve, reject) => {
            asked.push(path.replace(/^.*namespaces\//, ''));
            const leave = () => running.splice(running.indexOf(request), 1);
            const request = {
              path,
              answer(status = 200) {
                leave();
                if (status === 200) resolve({ type: 'Opaque', data: { '.dockercfg': 'x', other: 'y' } });
                else reject(new ApiError(status, {}, 'get x'));
              },
            };
            running.push(request);
            most = Math.max(most, running.length);
            options?.signal?.addEventListener('abort', () => {
              leave();
              reject(options.signal?.reason);
            });
          }),
      });
      open = createPullSecretReader(held, { ...systemClock, monotonic: () => now });
    });
    const access = (namespace: string, ...pullSecrets: string[]) => ({ namespace, pullSecrets, always: false });
    const names = (count: number) => Array.from({ length: count }, (_, index) => `s${index}`);
    const tick = () => new Promise((resolve) => setImmediate(resolve));
    async function answerAll(status = 200): Promise<void> {
      await tick();
      while (running.length > 0) {
        running[0]?.answer(status);
        await tick();
      }
    }

    it('reads a Secret once for all that want it, and not again for ten seconds', async () => {
      const both = Promise.all([open(access('ns', 'a'), signal), open(access('ns', 'a'), signal)]);
      await answerAll();
      const expected = [{ name: 'a', type: 'Opaque', data: { '.dockercfg': 'x' } }];
      expect(await both).to.deep.equal([expected, expected]);
      now = 9_999;
      expect(await open(access('ns', 'a'), signal)).to.deep.equal(expected);
      expect(asked).to.deep.equal(['ns/secrets/a']);
      now = 10_000;
      const again = open(access('ns', 'a'), signal);
      await answerAll(404);
      expect(await again).to.deep.equal([{ name: 'a', problem: 'it does not exist' }]);
      now = 19_999;
      expect(await open(access('ns', 'a'), signal)).to.deep.equal([{ name: 'a', problem: 'it does not exist' }]);
      expect(asked).to.have.lengthOf(2);
    });

    it('reads again at once after a temporary failure', async () => {
      const first = open(access('ns', 'a'), signal).catch((error: unknown) => error);
      await answerAll(503);
      expect(await first).to.be.instanceOf(ApiError);
      const second = open(access('ns', 'a'), signal);
      await answerAll();
      expect(await second).to.have.lengthOf(1);
    });

    it('reads four at once, namespace by namespace', async () => {
      const all = [open(access('big', ...names(20)), signal), open(access('calm', 'a', 'b'), signal)];
      await answerAll();
      expect((await Promise.all(all)).map(({ length }) => length)).to.deep.equal([20, 2]);
      expect(most).to.equal(4);
      expect(asked.slice(4, 8)).to.deep.equal(['big/secrets/s4', 'calm/secrets/a', 'big/secrets/s5', 'calm/secrets/b']);
    });

    it('limits the number of waiting reads in one namespace, without those that were given up', async () => {
      const gone = new AbortController();
      const waiting = open(access('loud', ...names(1_004)), gone.signal).catch((error: unknown) => error);
      const tooMany = await open(access('loud', 'more'), signal).catch((error: unknown) => error);
      expect(String(tooMany)).to.contain('too many Secrets of namespace loud are read at once');
      expect(getEventListeners(gone.signal, 'abort')).to.have.lengthOf(1);
      gone.abort(new Error('late'));
      expect(String(await waiting)).to.equal('Error: late');
      await tick();
      expect(running).to.deep.equal([]);
      const other = open(access('loud', 'a'), signal);
      await answerAll();
      expect(await other).to.have.lengthOf(1);
      expect(asked).to.have.lengthOf(5);
    });
  });
});
