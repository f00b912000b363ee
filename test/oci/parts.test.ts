import { expect } from 'chai';
import type { Access } from '../../src/oci/credentials/keyring.ts';
import { ImageError } from '../../src/oci/errors.ts';
import type { RegistryRequest, RegistryResponse, SendRequest } from '../../src/oci/http/transport.ts';
import { INDEX, indexOf, knownBy, sha256, startResolver } from './server.ts';

const HOST = 'harbor.example.com';
const MANIFEST = JSON.stringify(indexOf('linux/amd64'));
/** Milliseconds. */
const STEP = 1000;
const TIMEOUT = 15_000;
const EVERY = 5000;
const GOOD = 12;

/** How many images of how many namespaces. */
const SIZES: readonly [images: number, namespaces: number, projects: number][] = [
  [10, 3, 1],
  [60, 2, 1],
  [60, 3, 1],
  [200, 10, 1],
  [200, 10, 3],
];

type Reply = Omit<RegistryResponse, 'url'> | 'silence' | 'no connection';
const found: Reply = {
  status: 200,
  headers: { 'content-type': INDEX, 'docker-content-digest': sha256(MANIFEST) },
  body: Buffer.from(MANIFEST),
};
const status = (code: number, headers: Record<string, string> = {}): Reply => ({
  status: code,
  headers,
  body: new Uint8Array(),
});
const challenged = ({ url, headers }: RegistryRequest): Reply =>
  headers.authorization === undefined
    ? status(401, {
        'www-authenticate': `Bearer realm="https://${HOST}/token",scope="repository:${url.pathname}:pull"`,
      })
    : found;

/** Pods of a namespace. */
const of = (namespace: string): Access => ({ namespace, pullSecrets: [], always: false });

/** What a project that is broken answers, or its token service. */
const broken: [what: string, answer: Reply, token?: Reply][] = [
  ['answers 502', status(502)],
  ['answers 503 with Retry-After 600', status(503, { 'retry-after': '600' })],
  ['answers 429 with Retry-After 600', status(429, { 'retry-after': '600' })],
  ['answers 429', status(429)],
  ['never answers', 'silence'],
  ['gets 500 from its token service', found, status(500)],
  ['gets 429 from its token service', found, status(429, { 'retry-after': '600' })],
  ['gets no answer from its token service', found, 'silence'],
];

/**
 * A virtual registry that answers after 20 ms, and a resolver with jitter. The clock goes on in steps; after each, all
 * images that are wanted and not known are asked for, in another order.
 */
function startWorld(answer: (request: RegistryRequest) => Reply) {
  let time = 1_000_000;
  let seed = 7;
  const random = (): number => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed / 2_147_483_647;
  };
  const due: { at: number; act: () => void }[] = [];
  const asked: string[] = [];
  const send: SendRequest = (request) =>
    new Promise((resolve, reject) => {
      asked.push(request.url.pathname);
      const reply = answer(request);
      const act = (): void => {
        if (typeof reply !== 'string') {
          resolve({ ...reply, url: request.url });
          return;
        }
        const details = { code: 'unavailable', temporary: true, endpoint: HOST } as const;
        reject(new ImageError('no answer', reply === 'silence' ? details : { ...details, unreachable: HOST }));
      };
      request.signal.addEventListener('abort', () => reject(request.signal.reason), { once: true });
      due.push({ at: time + (reply === 'silence' ? TIMEOUT : 20), act });
    });
  const { resolver, stop } = startResolver([], {
    // The limits of real time: none ends during the test. Patience is what it is by default.
    ...{ timeoutMs: 3_600_000, patienceMs: undefined, now: () => time, random, send },
    after(ms, act) {
      const timer = { at: time + ms, act };
      due.push(timer);
      return () => void (due.includes(timer) && due.splice(due.indexOf(timer), 1));
    },
  });
  const shuffled = <T>(all: readonly T[]): T[] =>
    all
      .map((each) => ({ each, order: random() }))
      .sort((one, other) => one.order - other.order)
      .map(({ each }) => each);
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  };
  return {
    resolver,
    asked,
    now: () => time,
    stop,
    async step(wanted: readonly { image: string; access: Access }[]): Promise<void> {
      for (const { image, access } of shuffled(wanted)) resolver.look(image, access);
      await settle();
      const until = time + STEP;
      for (;;) {
        const next = due.sort((one, other) => one.at - other.at)[0];
        if (next === undefined || next.at > until) break;
        due.shift();
        time = next.at;
        next.act();
        await settle();
      }
      time = until;
    },
  };
}

describe('broken projects of a registry', () => {
  for (const [what, answer, token] of broken) {
    const sizes = what === 'answers 502' ? SIZES : SIZES.slice(-1);
    for (const [bad, namespaces, projects] of sizes) {
      it(`delay no other one by 5 seconds: ${projects}, each of which ${what}, with ${bad} images of ${namespaces} namespaces`, async () => {
        const world = startWorld((request) => {
          if (request.url.pathname === '/token') return token ?? found;
          if (!request.url.pathname.startsWith('/v2/proxy')) return found;
          return token === undefined ? answer : challenged(request);
        });
        const spoiled = Array.from({ length: bad }, (_, index) => ({
          image: `${HOST}/proxy${index % projects}/x${index}:t`,
          access: of(`n${index % namespaces}`),
        }));
        // One every 5 seconds, from the beginning, for the same namespaces and for one of its own.
        const good = Array.from({ length: GOOD }, (_, index) => ({
          image: `${HOST}/local/app${index}:t`,
          access: of(index % 2 === 0 ? `n${index % namespaces}` : 'shop'),
          from: world.now() + index * EVERY,
        }));
        const late: string[] = [];
        for (const end = world.now() + (GOOD + 1) * EVERY; world.now() < end; ) {
          const isKnown = ({ image, access }: (typeof spoiled)[number]) =>
            knownBy(world.resolver, image, access) !== undefined;
          const wanted = good.filter((each) => each.from <= world.now() && !isKnown(each));
          for (const { image, from } of wanted) if (world.now() - from > EVERY - STEP) late.push(image);
          await world.step([...wanted, ...spoiled]);
        }
        world.stop();
        expect(late).to.deep.equal([]);
        expect(good.filter(({ image, access }) => knownBy(world.resolver, image, access) === undefined)).to.deep.equal(
          [],
        );
      });
    }
  }
});

describe('what fails at a registry', () => {
  const imagesAt = (count: number, name: (index: number) => string, namespaces: number) =>
    Array.from({ length: count }, (_, index) => ({
      image: `${HOST}/${name(index)}`,
      access: of(`n${index % namespaces}`),
    }));

  const floods: [what: string, flood: (index: number) => string, wanted: (index: number) => string][] = [
    ['other repositories of the project', (index) => `hub/bad${index % 20}:v${index}`, (index) => `hub/good${index}:t`],
    ['new repositories of the project', (index) => `hub/bad${index}:t`, (index) => `hub/good${index}:t`],
    ['the same repository', (index) => `hub/app:bad${index}`, (index) => `hub/app:good${index}`],
  ];
  for (const [what, flood, wanted] of floods) {
    it(`delays an image of another namespace by single seconds if ${what} answer 500 to a tenant's 200 images`, async () => {
      const world = startWorld(({ url }) => (url.pathname.includes('bad') ? status(500) : found));
      const bad = imagesAt(200, flood, 1);
      // The pauses are at their longest by then.
      for (const end = world.now() + 120_000; world.now() < end; ) await world.step(bad);
      const delays: number[] = [];
      for (const [index, image] of [0, 1, 2].map((each) => [each, `${HOST}/${wanted(each)}`] as const)) {
        const from = world.now();
        const isKnown = () => knownBy(world.resolver, image, of(`shop${index}`)) !== undefined;
        while (!isKnown() && world.now() - from < 60_000)
          await world.step([...bad, { image, access: of(`shop${index}`) }]);
        delays.push(world.now() - from);
      }
      world.stop();
      expect(Math.max(...delays)).to.be.at.most(EVERY);
    });
  }

  it('is asked little in an outage, and all that wait for it are known within seconds of its first answer', async () => {
    let isAway = true;
    let answeredAt = Number.POSITIVE_INFINITY;
    const world = startWorld(() => {
      if (!isAway) answeredAt = Math.min(answeredAt, world.now());
      return isAway ? 'no connection' : found;
    });
    const wanted = imagesAt(200, (index) => `p${index % 20}/app${index}:t`, 10);
    for (const end = world.now() + 300_000; world.now() < end; ) await world.step(wanted);
    expect(world.asked.length).to.be.at.most(40);
    isAway = false;
    const left = () => wanted.filter(({ image, access }) => knownBy(world.resolver, image, access) === undefined);
    for (const end = world.now() + 60_000; left().length > 0 && world.now() < end; ) await world.step(left());
    world.stop();
    expect(left()).to.deep.equal([]);
    expect(world.now() - answeredAt).to.be.at.most(EVERY);
  });
});
