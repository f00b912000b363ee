/** A hostile registry, an honest one, and something internal that nobody may reach, around one resolver. */
import { expect } from 'chai';
import type { Access } from '../../src/oci/credentials/keyring.ts';
import { ImageError } from '../../src/oci/errors.ts';
import type { Resolution } from '../../src/oci/resolver.ts';
import {
  CONFIG,
  type Harness,
  IMAGE,
  INDEX,
  indexOf,
  never,
  pullSecret,
  sha256,
  startResolver,
} from '../oci/server.ts';
import {
  type HeaderLines,
  type HostileServer,
  response,
  type Speak,
  says,
  startHostileServer,
} from './hostile-registry.ts';

/** What a name stands for in the DNS: addresses, or what each question is answered with, in its time. */
export type Answers = readonly string[] | (() => readonly string[] | Promise<readonly string[]>);

export type WorldOptions = {
  /** Milliseconds for one request; a whole lookup gets three times that. It is short for tests in which the deadline ends the lookup. */
  readonly timeoutMs?: number;
};

export type HostileWorld = {
  readonly evil: HostileServer;
  /** Wants a password for everything. */
  readonly bank: HostileServer;
  /** Stands for metadata services and whatever else is internal. */
  readonly canary: HostileServer;
  /** host:port of each. */
  readonly hosts: { readonly evil: string; readonly bank: string; readonly canary: string };
  readonly harness: Harness;
  /** The DNS; a name that is not there does not exist. */
  readonly names: Map<string, Answers>;
  /** Looks an image of the hostile registry up. */
  resolve(rest?: string): Promise<Resolution>;
  /** The error of a lookup that must fail; it is in the catalogue and reveals nothing. */
  fails(rest?: string): Promise<ImageError>;
  /** Looks an image of the honest registry up. */
  resolveGood(): Promise<Resolution>;
  /** The error of a lookup of any image. */
  failsFor(image: string): Promise<ImageError>;
  /** Nothing internal was reached, no credential strayed, nothing is pending, and both registries are of use. */
  expectNoHarm(): Promise<void>;
  /** Forgets what its servers were asked and what a test made them answer. */
  renew(): void;
  stop(): Promise<void>;
};

/** What the hostile registry's own pull secret holds, which it may see. */
export const EVIL_LOGIN = 'me:hunter2';
/** What it may never see. */
export const BANK_LOGIN = 'teller:opensesame';
/** What is in bodies that no message may repeat. */
export const BODY = 'INTERNAL-PAGE';

const ACCESS: Access = { namespace: 'default', pullSecrets: ['both'], always: false };

export function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

export async function startHostileWorld(options: WorldOptions = {}): Promise<HostileWorld> {
  const [evil, bank, canary] = [await startHostileServer(), await startHostileServer(), await startHostileServer()];
  const hosts = {
    evil: `evil.test:${evil.port}`,
    bank: `bank.test:${bank.port}`,
    canary: `canary.test:${canary.port}`,
  };
  const names = new Map<string, Answers>();
  const settle = (): void => {
    for (const name of ['evil.test', 'bank.test', 'canary.test', 'localhost']) {
      names.set(name, ['127.0.0.1']);
    }
    evil.behave();
    canary.on('*', says(200, [], `{"token":"${BODY}","AccessKeyId":"${BODY}"}`));
    // Of an architecture that no test answers with: what is known by its digest is not read again.
    bank.on('*', guarded(manifest(indexOf('linux/ppc64le'))));
  };
  settle();
  const harness = startResolver([hosts.evil, hosts.bank], {
    timeoutMs: options.timeoutMs ?? 20_000,
    pullSecrets: async () => [pullSecret('both', { [hosts.evil]: EVIL_LOGIN, [hosts.bank]: BANK_LOGIN })],
    lookup: (name, _options, callback) => {
      const answers = names.get(name) ?? [];
      // Never at once: the system's does not do that either.
      void Promise.resolve(typeof answers === 'function' ? answers() : answers).then((addresses) => {
        const found = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
        const missing = Object.assign(new Error(`getaddrinfo ENOTFOUND ${name}`), { code: 'ENOTFOUND' });
        setImmediate(() => (found.length === 0 ? callback(missing, []) : callback(null, found)));
      });
    },
  });

  const { resolver } = harness;
  async function failsFor(image: string): Promise<ImageError> {
    const error: unknown = await resolver.resolve(image, ACCESS, never).catch((reason: unknown) => reason);
    if (!(error instanceof ImageError)) return expect.fail(`${image}: ${JSON.stringify(error).slice(0, 300)}`);
    expect(error.message).to.match(/^[\x20-\x7e]{1,500}$/);
    for (const secret of [BODY, ...secretsOf(EVIL_LOGIN), ...secretsOf(BANK_LOGIN)]) {
      expect(error.message).to.not.include(secret);
    }
    expect(error.retryAfterMs ?? 0).to.be.within(0, 600_000);
    return error;
  }

  /** A deadline that is short for the sake of a case may be too short for an honest answer of a busy machine. */
  async function persist(image: string): Promise<Resolution> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await resolver.resolve(image, ACCESS, never);
      } catch (error) {
        if (attempt === 20 || !(error instanceof ImageError) || error.code !== 'timeout') throw error;
      }
    }
  }

  return {
    evil,
    bank,
    canary,
    hosts,
    harness,
    names,
    resolve: (rest = 'app:v1') => resolver.resolve(`${hosts.evil}/${rest}`, ACCESS, never),
    fails: (rest = 'app:v1') => failsFor(`${hosts.evil}/${rest}`),
    resolveGood: () => persist(`${hosts.bank}/vault:v1`),
    failsFor,
    async expectNoHarm() {
      expect(canary.connections(), 'connections to what is internal').to.equal(0);
      expect(strayed(evil, BANK_LOGIN), "the bank's login").to.deep.equal([]);
      expect(strayed(bank, EVIL_LOGIN), "the hostile registry's login").to.deep.equal([]);
      expect(resolver.pending(), 'lookups').to.equal(0);
      settle();
      expect(await persist(`${hosts.bank}/vault:v1`))
        .to.have.property('platforms')
        .length(1);
      // Whatever it was punished with is over by then.
      harness.advance(600_000);
      evil.on('*', manifest(indexOf('linux/arm64')));
      expect(await persist(`${hosts.evil}/honest:v1`))
        .to.have.property('platforms')
        .length(1);
    },
    renew() {
      for (const server of [evil, bank, canary]) {
        server.behave();
        server.asked.length = 0;
      }
      names.clear();
      settle();
      harness.advance(600_000);
    },
    async stop() {
      harness.stop();
      await Promise.all([evil.stop(), bank.stop(), canary.stop()]);
    },
  };
}

/**
 * Gives all tests of a suite the same world if their options are the same: to start one takes longer than most rows of a
 * table. For tests whose lookups fail, because an answer that succeeds is remembered. A failed test takes its world along.
 */
export function shareHostileWorlds(): (options?: WorldOptions) => Promise<HostileWorld> {
  const worlds = new Map<string, HostileWorld>();
  const stop = async (): Promise<void> => {
    const started = [...worlds.values()];
    worlds.clear();
    await Promise.all(started.map((world) => world.stop()));
  };
  afterEach(async function () {
    if (this.currentTest?.state === 'failed') await stop();
  });
  after(stop);
  return async (options = {}) => {
    const key = JSON.stringify(options);
    const world = worlds.get(key) ?? (await startHostileWorld(options));
    worlds.set(key, world);
    world.renew();
    return { ...world, stop: async () => undefined };
  };
}

function secretsOf(login: string): string[] {
  return [login.split(':')[1] ?? login, base64(login)];
}

/** Requests that hold a login in any form. */
export function strayed(server: HostileServer, login: string): string[] {
  return server.asked
    .map(({ text }) => text)
    .filter((text) => secretsOf(login).some((secret) => text.includes(secret)));
}

/** Says a manifest, with its type and digest. */
export function manifest(value: unknown, type = INDEX, more: HeaderLines = []): Speak {
  const body = typeof value === 'string' ? value : JSON.stringify(value);
  return says(200, [['Content-Type', type], ['Docker-Content-Digest', sha256(body)], ...more], body);
}

/** Says what it says to holders of the bank's login only. */
function guarded(speak: Speak): Speak {
  return (socket, asked) => {
    if (asked.headers.get('authorization') === `Basic ${base64(BANK_LOGIN)}`) speak(socket, asked);
    else socket.write(response(401, [['WWW-Authenticate', 'Basic realm="bank"']], BODY));
  };
}

/** Puts an image of one platform under the tag `v1`; gives the path of its config blob. */
export function putSingle(server: HostileServer, repository: string, config: unknown, more: HeaderLines = []): string {
  const blob = typeof config === 'string' ? config : JSON.stringify(config);
  const digest = sha256(blob);
  const path = `/v2/${repository}/blobs/${digest}`;
  server.on(path, says(200, [], blob));
  const image = { schemaVersion: 2, mediaType: IMAGE, config: { mediaType: CONFIG, digest, size: 1 }, layers: [] };
  server.on(`/v2/${repository}/manifests/v1`, manifest(image, IMAGE, more));
  return path;
}
