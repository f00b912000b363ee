import { assert } from 'chai';
import type { Platform } from '../../src/kit/platform.ts';
import { createImageCache } from '../../src/oci/cache.ts';
import { lookIntoLayers } from '../../src/oci/deep/look-inside.ts';
import { createRoutes } from '../../src/oci/endpoints/mirrors.ts';
import { ImageError } from '../../src/oci/errors.ts';
import { createResolver, type TagResolver } from '../../src/oci/resolver.ts';
import { FIXTURES, type Fixture, TESTIMG_REPOSITORY } from '../../testimg/fixtures.ts';
import { knownBy } from '../oci/server.ts';
import { startTestRegistry, type TestRegistry } from '../simulator/registry/registry.ts';

/** Nobody's pod: no pull secrets, so every registry is asked anonymously. */
const ACCESS = { namespace: 'default', pullSecrets: [], always: false };

/** A resolver with nothing in memory. */
function newResolver(registry: string, signal: AbortSignal): TagResolver {
  const insecure = /^(localhost|127\.)/.test(registry) ? [registry] : [];
  return createResolver({
    cache: createImageCache(100),
    endpointsOf: createRoutes({ mirrors: {}, insecure, hosts: () => undefined }).endpointsOf,
    isPrivate: () => false,
    pullSecrets: async () => [],
    maxEntries: 100,
    ttl: { tag: 600_000, always: 10_000, failure: 30_000 },
    timeoutMs: 15_000,
    maxInFlight: 8,
    insecure,
    addresses: {},
    userAgent: 'archaware-testimg',
    now: Date.now,
    random: Math.random,
    signal,
  });
}

/** As a set, in the table's form: each platform once, in an order of its own. */
function setOf(platforms: readonly Platform[]): string[] {
  const names = platforms.map(({ os, architecture, variant }) => [os, architecture, variant].filter(Boolean).join('/'));
  return [...new Set(names)].sort();
}

/** Resolves one fixture. Returns false where a registry that may refuse it does not have it. */
async function check(registry: string, repository: string, fixture: Fixture): Promise<boolean> {
  const { tag, expected, refusable } = fixture;
  const controller = new AbortController();
  try {
    const resolver = newResolver(registry, controller.signal);
    const answer = await resolver
      .resolve(`${registry}/${repository}:${tag}`, ACCESS, controller.signal)
      .catch((error: unknown) => error);
    if (answer instanceof ImageError) {
      if (answer.code === 'not-found' && refusable !== undefined) return false;
      if (!('error' in expected)) throw answer;
      assert.equal(answer.code, expected.error, answer.message);
      assert.match(answer.message, expected.message);
      assert.isFalse(answer.temporary, 'asking again cannot help');
      return true;
    }
    if (answer instanceof Error) throw answer;
    assert.isTrue('platforms' in expected, `expected an error, got ${JSON.stringify(answer)}`);
    const known = knownBy(resolver, `${registry}/${repository}:${tag}`, ACCESS)?.platforms ?? [];
    if ('platforms' in expected) assert.deepEqual(setOf(known), setOf(expected.platforms));
    if (fixture.deep !== undefined) {
      const { signal } = controller;
      const task = { digest: fixture.build().root.digest, platforms: known, overrides: [{}], access: ACCESS, signal };
      const found = await lookIntoLayers(resolver, `${registry}/${repository}:${tag}`, task);
      assert.deepEqual(
        found.flat().map(({ verdict }) => verdict),
        fixture.deep,
      );
    }
    return true;
  } finally {
    controller.abort();
  }
}

describe('resolving image fixtures', () => {
  describe('on a local registry', () => {
    let registry: TestRegistry | undefined;
    before(async () => {
      registry = await startTestRegistry({ auth: 'bearer', users: { owner: 'secret' } });
      for (const { tag, build } of FIXTURES) registry.load(`local/${TESTIMG_REPOSITORY}`, tag, build());
    });
    after(() => registry?.stop());

    for (const fixture of FIXTURES) {
      it(`${fixture.tag}: ${fixture.description}`, async () => {
        const found = await check(registry?.host ?? '', `local/${TESTIMG_REPOSITORY}`, fixture);
        assert.isTrue(found);
      });
    }
  });

  const { DOCKER_NS, QUAY_NS, DOCKER_REGISTRY, QUAY_REGISTRY } = process.env;
  for (const [registry, namespace] of [
    [DOCKER_REGISTRY || 'docker.io', DOCKER_NS],
    [QUAY_REGISTRY || 'quay.io', QUAY_NS],
  ] as const) {
    if (!DOCKER_NS || !QUAY_NS || !namespace) continue;
    describe(`on ${registry}/${namespace}`, () => {
      for (const fixture of FIXTURES) {
        it(`${fixture.tag}: ${fixture.description}`, async function () {
          if (!(await check(registry, `${namespace}/${TESTIMG_REPOSITORY}`, fixture))) this.skip();
        });
      }
    });
  }
});
