import { messageOf } from '../../kit/errors.ts';
import { printableAscii } from '../../kit/printable.ts';
import type { AddressPolicy } from '../http/addresses.ts';
import { insecureTrust, type Trust } from '../http/trust.ts';
import type { Reference } from '../reference.ts';
import { type Endpoint, type EndpointAddress, parseEndpointAddress, urlHost } from './endpoint.ts';
import type { HostEntry, HostsConfig } from './hosts-toml.ts';

/** `registries.mirrors`: by registry as in images' names, `docker.io`. */
export type Mirrors = Readonly<
  Record<
    string,
    {
      /** In the order to be asked. */
      readonly endpoints: readonly string[];
      /** Whether the registry itself is asked after them. */
      readonly fallback: boolean;
      /** Whose credentials a mirror gets: its own, or the source's. */
      readonly credentials: 'mirror' | 'source';
    }
  >
>;

export type RouteOptions = {
  readonly mirrors: Mirrors;
  /** host[:port] of registries with plain http or an unverifiable certificate. */
  readonly insecure: readonly string[];
  /** What containerd's directory says of a registry; `mirrors` comes first. */
  readonly hosts: (registry: string) => HostsConfig | undefined;
};

export type Routes = {
  /** Where an image may be asked for, in order; never empty. */
  endpointsOf(reference: Reference): readonly Endpoint[];
  /** host[:port] of the mirrors and insecure registries that the configuration itself names. */
  namedHosts(): ReadonlySet<string>;
};

const HUB = 'docker.io';
const HUB_ENDPOINT = 'registry-1.docker.io';
const HUB_NAMES: ReadonlySet<string> = new Set([HUB, 'index.docker.io', HUB_ENDPOINT]);

/** An endpoint but for the image. */
type Place = {
  readonly address: EndpointAddress;
  readonly credentials: 'mirror' | 'source';
  readonly policy: AddressPolicy;
  readonly trust: Trust | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly resolvesTags: boolean;
};

type Mirrored = { readonly places: readonly Place[]; readonly fallback: boolean };

/** @throws Error naming the key of `registries.mirrors` and what is wrong with it */
export function createRoutes({ mirrors, insecure, hosts }: RouteOptions): Routes {
  const unverified = new Set(insecure.map((host) => hubEndpoint(host.toLowerCase())));
  const trustOf = (host: string): Trust | undefined => (unverified.has(hubEndpoint(host)) ? insecureTrust : undefined);
  const mirrored = readMirrors(mirrors, trustOf);
  const named = new Set([
    ...unverified,
    ...[...mirrored.values()].flatMap(({ places }) => places.map(({ address }) => urlHost(address))),
  ]);

  function source(reference: Reference, entry?: HostEntry<Trust>, isNamed = false): Endpoint {
    const own = trustOf(reference.endpoint);
    return endpointAt(reference, {
      address: { scheme: 'https', host: reference.endpoint, path: '/v2' },
      credentials: 'source',
      policy: isNamed || own !== undefined ? 'configured' : 'registry',
      trust: entry?.tls ?? own ?? (isNamed && isLocalhost(reference.registry) ? insecureTrust : undefined),
      headers: entry?.headers ?? {},
      resolvesTags: true,
    });
  }

  function ofDirectory(reference: Reference, { entries, isDefault }: HostsConfig): Endpoint[] {
    return entries.map((entry) => {
      const { address, tls, headers, resolvesTags } = entry;
      // Whoever writes a pod names the registry that `_default` stands for, and so nobody vouches for its address.
      if (address === undefined) return source(reference, entry, !isDefault);
      const trust = tls ?? (address.scheme === 'https' ? trustOf(address.host) : undefined);
      return endpointAt(reference, {
        address,
        credentials: 'mirror',
        policy: 'configured',
        trust,
        headers,
        resolvesTags,
      });
    });
  }

  return {
    namedHosts: () => named,
    endpointsOf(reference) {
      const mirror = mirrored.get(canonical(reference.registry));
      if (mirror !== undefined) {
        const endpoints = mirror.places.map((place) => endpointAt(reference, place));
        const isComplete = !mirror.fallback || endpoints.some(({ isSource }) => isSource);
        return withoutRepeats(isComplete ? endpoints : [...endpoints, source(reference)]);
      }
      const config = hosts(reference.registry);
      return config === undefined ? [source(reference)] : withoutRepeats(ofDirectory(reference, config));
    },
  };
}

/**
 * Reads an endpoint of `registries.mirrors`, `[http://|https://]host[:port][/prefix]`. The prefix is the beginning of
 * the repository there.
 *
 * @throws Error naming the problem
 */
export function parseEndpoint(text: string): EndpointAddress {
  const address = parseEndpointAddress(text);
  if (/^\/v2(\/|$)/.test(address.path)) {
    throw new Error(`"${printableAscii(text, 120)}": leave "/v2" out, which every registry's paths begin with`);
  }
  return address;
}

function readMirrors(mirrors: Mirrors, trustOf: (host: string) => Trust | undefined): Map<string, Mirrored> {
  const read = new Map<string, Mirrored>();
  for (const [key, { endpoints, fallback, credentials }] of Object.entries(mirrors)) {
    const at = `registries.mirrors.${key}`;
    const { host, path } = explained(at, () => parseEndpointAddress(key));
    if (path !== '' || host !== key.toLowerCase()) throw new Error(`${at}: the host[:port] of a registry is expected`);
    const registry = canonical(host);
    if (read.has(registry)) throw new Error(`${at}: ${registry} is there under another of its names already`);
    if (endpoints.length === 0 && !fallback) throw new Error(`${at}: without endpoints and fallback nobody is asked`);
    const places = endpoints.map((text, index): Place => {
      const address = explained(`${at}.endpoints[${index}]`, () => parseEndpoint(text));
      return {
        address: { ...address, path: `/v2${address.path}` },
        credentials,
        policy: 'configured',
        trust: address.scheme === 'https' ? trustOf(address.host) : undefined,
        headers: {},
        resolvesTags: true,
      };
    });
    read.set(registry, { places, fallback });
  }
  return read;
}

function explained<T>(at: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new Error(`${at}: ${messageOf(error)}`);
  }
}

function endpointAt(
  reference: Reference,
  { address, credentials, policy, trust, headers, resolvesTags }: Place,
): Endpoint {
  // As containerd, which tells a registry's own host under any path from a proxy.
  const isHome = canonical(address.host) === canonical(reference.registry);
  const isSource = isHome && address.path === '/v2';
  const authority = isSource ? reference.endpoint : address.host;
  const { prefix, isPartOfRepository } = readPath(address.path);
  const name = prefix === '' ? authority : `${authority}/${prefix}`;
  return {
    name,
    host: urlHost({ ...address, host: authority }),
    base: `${address.scheme}://${authority}${address.path}`,
    repository: isPartOfRepository ? `${prefix}/${reference.repository}` : reference.repository,
    credentialName: isSource || credentials === 'source' ? reference.name : `${name}/${reference.repository}`,
    isSource,
    query: isHome ? '' : `?ns=${encodeURIComponent(reference.registry)}`,
    policy,
    ...(trust === undefined ? {} : { trust }),
    headers,
    resolvesTags,
  };
}

/**
 * What precedes the image's repository: `/v2/hub` is a repository's beginning, for which tokens are asked; `/hub/v2` is
 * a registry that is not at its host's root.
 */
function readPath(path: string): { prefix: string; isPartOfRepository: boolean } {
  if (path.endsWith('/v2')) return { prefix: path.slice(1, -3), isPartOfRepository: false };
  if (path.startsWith('/v2/')) return { prefix: path.slice(4), isPartOfRepository: true };
  return { prefix: path.slice(1), isPartOfRepository: false };
}

/** Without those that would only be asked the same once more, as containerd does with a source named twice. */
function withoutRepeats(endpoints: readonly Endpoint[]): Endpoint[] {
  const seen = new Set<string>();
  return endpoints.filter(({ base, trust, headers, resolvesTags }) => {
    const [weaker, full] = [false, true].map((tags) => JSON.stringify([base, trust?.id, headers, tags]));
    if (full === undefined || weaker === undefined || seen.has(full)) return false;
    if (!resolvesTags && seen.has(weaker)) return false;
    seen.add(resolvesTags ? full : weaker);
    return true;
  });
}

function canonical(host: string): string {
  return HUB_NAMES.has(host) ? HUB : host;
}

/** The host that is asked: Docker Hub's where it is named otherwise. */
function hubEndpoint(host: string): string {
  return HUB_NAMES.has(host) ? HUB_ENDPOINT : host;
}

/** Which containerd asks without verifying certificates, and over plain http where there is no TLS. */
function isLocalhost(registry: string): boolean {
  return /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?$/.test(registry);
}
