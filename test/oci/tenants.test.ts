import { expect } from 'chai';
import type { Access } from '../../src/oci/credentials/keyring.ts';
import { ImageError } from '../../src/oci/errors.ts';
import type { SendRequest } from '../../src/oci/http/transport.ts';
import { type Harness, INDEX, indexOf, sha256, startResolver, stopAfterEach, until } from './server.ts';

const HUB = 'hub.example.com';
const MAX_IN_FLIGHT = 4;
/** Each image of a flood is a project of its own, and one place of the host is left to projects that answered. */
const MAX_NEW = 3;

describe('a flood of lookups of one tenant', () => {
  const of = (namespace: string): Access => ({ namespace, pullSecrets: [], always: false });
  /** The requests without an answer, by `host/repository`, in the order in which they were sent. */
  const sent = new Map<string, () => void>();
  let harness: Harness;

  const send: SendRequest = (request) =>
    new Promise((resolve, reject) => {
      const [, repository = ''] = /^\/v2\/(.*)\/manifests\//.exec(request.url.pathname) ?? [];
      const body = Buffer.from(JSON.stringify(indexOf('linux/amd64')));
      const headers = { 'content-type': INDEX, 'docker-content-digest': sha256(String(body)) };
      if (request.url.host === 'fails.example.com') {
        reject(new ImageError('it fails', { code: 'unavailable', temporary: true, unreachable: request.url.host }));
        return;
      }
      const name = `${request.url.host}/${repository}`;
      sent.set(name, () => {
        sent.delete(name);
        resolve({ status: 200, headers, url: request.url, body });
      });
      request.signal.addEventListener('abort', () => reject(request.signal.reason), { once: true });
    });

  beforeEach(async () => {
    sent.clear();
    harness = startResolver([HUB], { send, maxInFlight: MAX_IN_FLIGHT, timeoutMs: 60_000, maxEntries: 50_000 });
    const known = harness.resolver.resolve(`${HUB}/known`, of('somebody'), new AbortController().signal);
    await answer(`${HUB}/known`);
    await known;
  });
  stopAfterEach();

  async function answer(name: string): Promise<void> {
    await until(() => sent.has(name));
    sent.get(name)?.();
  }
  const ask = (image: string, namespace: string) => harness.resolver.look(image, of(namespace));
  /** Answers requests in their order until this one is sent; returns how many of the flood were sent before it. */
  async function turnsUntilSent(name: string): Promise<number> {
    for (let turns = 0; ; turns += 1) {
      await until(() => sent.has(name) || sent.size === MAX_NEW);
      if (sent.has(name)) return Math.max(0, turns - 1);
      const [first = ''] = sent.keys();
      await answer(first);
      await until(() => sent.size === MAX_NEW);
    }
  }

  for (const [what, count, namespaces] of [
    ['for a pod with 5,000 images', 5_000, 1],
    ['for 200 refused pods with 64 images each', 12_800, 1],
    ['for ten namespaces', 5_000, 10],
  ] as const) {
    it(`${what} lets another tenant have its turn`, async () => {
      for (let index = 0; index < count; index += 1) ask(`${HUB}/flood${index}`, `tenant${index % namespaces}`);
      ask(`${HUB}/wanted`, 'bystander');
      expect(await turnsUntilSent(`${HUB}/wanted`)).to.be.at.most(namespaces);
    });
  }

  it('does not hold up another tenant who wants one of the same images', async () => {
    for (let index = 0; index < 5_000; index += 1) ask(`${HUB}/flood${index}`, 'tenant');
    ask(`${HUB}/flood4000`, 'bystander');
    expect(await turnsUntilSent(`${HUB}/flood4000`)).to.be.at.most(1);
  });

  it('at a registry that never answers takes no place of another registry that the same tenant uses', async () => {
    for (let index = 0; index < 60; index += 1) ask(`hangs.example.com/app${index}`, 'tenant');
    await until(() => sent.size === 3);
    for (const host of [HUB, 'never-asked.example.com']) {
      ask(`${host}/wanted`, 'tenant');
      await answer(`${host}/wanted`);
      await until(() => harness.known(`${host}/wanted`, of('tenant')) !== undefined);
    }
    expect([...sent.keys()]).to.deep.equal([0, 1, 2].map((index) => `hangs.example.com/app${index}`));
  });

  it('has few lookups under way: the others wait as names, and get their turn', async () => {
    let begun = 0;
    const pullSecrets = async () => {
      begun += 1;
      return [];
    };
    const other = startResolver([HUB], { send, pullSecrets, timeoutMs: 60_000, maxEntries: 50_000 });
    // Different secrets for each, because equal ones are read only once.
    const access = (image: string) => ({ ...of('tenant'), pullSecrets: [image] });
    const images = Array.from({ length: 1_000 }, (_, index) => `${HUB}/many${index}`);
    for (const image of images) other.resolver.look(image, access(image));
    expect(other.resolver.pending()).to.equal(1_000);
    await until(() => sent.size > 0);
    expect(begun).to.equal(64);
    for (const image of images) await answer(image);
    await until(() => other.resolver.pending() === 0);
    expect(begun).to.equal(1_000);
  });

  it('is not planned beyond the room for those that wait, and another tenant has room', () => {
    const name = (index: number) => `${HUB}/${'x'.repeat(200)}${index}`;
    let planned = 0;
    for (; planned < 20_000; planned += 1) {
      const look = ask(name(planned), 'tenant');
      if (look.kind === 'pending' && !look.isPlanned) break;
    }
    expect(planned).to.be.within(3_000, 12_000);
    expect(ask(name(0), 'tenant')).to.deep.equal({ kind: 'pending', isPlanned: true });
    expect(ask(name(planned), 'bystander')).to.deep.equal({ kind: 'pending', isPlanned: true });
  });

  it('at a registry that fails ends soon: waiting lookups send no request after the first failures', async () => {
    for (let index = 0; index < 60; index += 1) ask(`fails.example.com/app${index}`, 'tenant');
    await until(() => harness.results.length === 61);
    expect(harness.requests.filter((request) => request === 'GET unavailable')).to.have.length(3);
  });
});
