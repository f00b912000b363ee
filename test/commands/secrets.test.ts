import { expect } from 'chai';
import { createPullSecretReader, createServiceAccountReader } from '../../src/commands/secrets.ts';
import type { ApiClient } from '../../src/kube/client.ts';
import { systemClock } from '../../src/kube/clock.ts';
import { ApiError, ConnectionError } from '../../src/kube/errors.ts';

describe('reading what a pod names', () => {
  let asked: string[];
  let failure: Error | undefined;
  const client: ApiClient = {
    host: 'api.test',
    addresses: () => new Set(),
    async request(_verb, path) {
      asked.push(path);
      if (failure !== undefined) throw failure;
      return { type: 'Opaque', data: {}, imagePullSecrets: [{ name: 'pull' }] };
    },
    stream: () => Promise.reject(new Error('nothing is watched')),
    close: async () => undefined,
  };
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

  for (const name of [
    '',
    '.',
    '..',
    '../../kube-system/secrets/x',
    'a/b',
    'a b',
    'a?b=c',
    'a#b',
    'a%2fb',
    'a\nb',
    'é',
    'A',
    '-a',
    'a.',
    'a..b',
    'n'.repeat(254),
  ]) {
    it(`asks for nothing that is called ${JSON.stringify(name.slice(0, 30))}`, async () => {
      expect(await read(name, 'good')).to.deep.equal([
        { name, problem: 'its name is not one that a Secret can have' },
        { name: 'good', type: 'Opaque', data: {} },
      ]);
      expect(await accounts(name)).to.deep.equal([]);
      expect(asked).to.deep.equal(['/api/v1/namespaces/ns/secrets/good']);
    });
  }

  const problems: [status: number, problem: string][] = [
    [400, 'it cannot be read: the API server answers 400'],
    [403, 'we may not read it'],
    [404, 'it does not exist'],
    [414, 'it cannot be read: the API server answers 414'],
    [431, 'it cannot be read: the API server answers 431'],
  ];
  for (const [status, problem] of problems) {
    it(`passes over what is answered with ${status}`, async () => {
      failure = new ApiError(status, {}, 'get x');
      expect(await read('a')).to.deep.equal([{ name: 'a', problem }]);
      expect(await accounts('a')).to.deep.equal([]);
    });
  }

  for (const error of [new ApiError(500, {}, 'get x'), new ConnectionError('not there')]) {
    it(`fails where that may pass: ${error.name} ${error.message}`, async () => {
      failure = error;
      expect(await read('a').catch((thrown: unknown) => thrown)).to.equal(error);
      expect(await accounts('a').catch((thrown: unknown) => thrown)).to.equal(error);
    });
  }
});
