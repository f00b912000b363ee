import { sha256 } from '../../kit/json.ts';
import { printableAscii } from '../../kit/printable.ts';
import { type AddressPolicy, insecureTrust, type Trust } from '../http/trust.ts';
import { HUB, HUB_ENDPOINT, HUB_LOGIN, isRepository, type Reference } from '../reference.ts';
import { type Endpoint, type EndpointAddress, parseEndpointAddress, repositoryUrl, urlHost } from './endpoint.ts';
import type { HostEntry, HostsConfig } from './hosts-toml.ts';
import { explained } from './operator-file.ts';
import type { PullSource } from './registries-conf.ts';

/** `registries.mirrors`: mirrors by registry, with the name that images use: `docker.io`. */
export type Mirrors = Readonly<
  Record<
    string,
    {
      /** In the order in which they are asked. */
      readonly endpoints: readonly string[];
      /** Whether the registry itself is asked after its mirrors. */
      readonly fallback: boolean;
      /** Which credentials a mirror gets: its own, or those of the source. */
      readonly credentials: 'mirror' | 'source';
      /** Whether its endpoints may lack some of the manifests that an index names. */
      readonly sparse?: boolean;
    }
  >
>;

export type RouteOptions = {
  readonly mirrors: Mirrors;
  /** host[:port] of registries with plain http or an unverifiable certificate. */
  readonly insecure: readonly string[];
  /** host[:port] of registries and mirrors that may lack some of the manifests that an index names. */
  readonly sparse?: readonly string[];
  /** Returns what containerd's directory says of a registry; `mirrors` has precedence. */
  readonly hosts?: (registry: string) => HostsConfig | undefined;
  /** Returns what CRI-O's files say of an image; `mirrors` has precedence. */
  readonly sources?: (reference: Reference) => readonly PullSource[] | undefined;
};

export type Routes = ReturnType<typeof createRoutes>;

/** Containerd contacts such a registry without verifying certificates, and over plain http if it does not speak TLS. */
const LOCALHOST = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?$/;
const HUB_NAMES: ReadonlySet<string> = new Set([HUB, HUB_LOGIN, HUB_ENDPOINT]);

/** The part of an endpoint that does not depend on the image. */
type MirrorPlace = Omit<HostEntry<Trust>, 'tls'> & {
  readonly address: EndpointAddress;
  readonly credentials: 'mirror' | 'source';
  readonly policy: AddressPolicy;
  readonly trust: Trust | undefined;
  /** Whether its registry's mirrors may lack manifests; its host may in any case (`registries.sparse`). */
  readonly isSparse?: boolean | undefined;
};

type Mirrored = HostsConfig & Pick<Mirrors[string], 'fallback' | 'credentials' | 'sparse'>;

/** @throws Error naming the key of `registries.mirrors` and what is wrong with it */
export function createRoutes({ insecure, sparse = [], ...options }: RouteOptions) {
  const mirrored = readMirrors(options.mirrors);
  const unverified = new Set(insecure.map((host) => hubEndpoint(host.toLowerCase())));
  const sparseHosts = new Set(sparse.map((host) => hubEndpoint(host.toLowerCase())));
  const routes: RoutesState = { ...options, mirrored, unverified, sparseHosts, found: new WeakMap() };
  const addresses = [...mirrored.values()].flatMap(({ entries }) => entries.flatMap(({ address }) => address ?? []));
  const named: ReadonlySet<string> = new Set([...unverified, ...addresses.map(urlHost)]);
  return {
    /** host[:port] of the mirrors and insecure registries that the configuration itself names. */
    namedHosts: () => named,
    /** Returns the endpoints of an image, in order; never empty. */
    endpointsOf: (reference: Reference): readonly Endpoint[] => endpointsOf(routes, reference),
    /** Call when what `hosts` and `sources` return has changed. */
    forget(): void {
      routes.found = new WeakMap();
    },
  };
}

/** What the configuration says of registries, and the endpoints that were worked out from it. */
type RoutesState = Pick<RouteOptions, 'hosts' | 'sources'> & {
  readonly mirrored: ReadonlyMap<string, Mirrored>;
  /** The hosts of `registries.insecure`. */
  readonly unverified: ReadonlySet<string>;
  readonly sparseHosts: ReadonlySet<string>;
  found: WeakMap<Reference, readonly Endpoint[]>;
};

function endpointsOf(routes: RoutesState, reference: Reference): readonly Endpoint[] {
  const { mirrored, sources, found } = routes;
  // Every reconciliation asks for those of its references, and the reference objects are reused.
  const before = found.get(reference);
  if (before !== undefined) return before;
  const isMirrored = mirrored.has(canonical(reference.registry));
  const pulled = isMirrored ? undefined : sources?.(reference);
  const all = pulled
    ? withoutRepeats(pulled.map((each) => ofPullSource(routes, reference, each)))
    : allOf(routes, reference);
  // CRI-O takes all manifests of an image from the endpoint that has its index, whatever is asked after it.
  const endpoints = all.some(({ isSparse }) => isSparse) ? withRoute(pulled ? all : believed(all)) : all;
  found.set(reference, endpoints);
  return endpoints;
}

function allOf(routes: RoutesState, reference: Reference): Endpoint[] {
  const { mirrored, hosts } = routes;
  const mirror = mirrored.get(canonical(reference.registry));
  const config = mirror ?? hosts?.(reference.registry);
  if (config === undefined) return [source(routes, reference, false)];
  const endpoints = config.entries.map(({ address, tls, ...entry }) => {
    if (address === undefined) {
      // The author of a pod chooses the registry that `_default` stands for, so the operator does not verify its address.
      const isNamed = !config.isDefault;
      const isLocal =
        isNamed && LOCALHOST.test(reference.registry) && trustOf(routes, reference.endpoint) === undefined;
      return source(routes, reference, isNamed, tls ?? (isLocal ? insecureTrust : undefined), entry.headers);
    }
    return endpointAt(routes, reference, {
      ...entry,
      address,
      credentials: mirror?.credentials ?? 'mirror',
      policy: 'configured',
      trust: tls ?? (address.scheme === 'https' ? trustOf(routes, address.host) : undefined),
      isSparse: mirror?.sparse,
    });
  });
  if (mirror?.fallback && !endpoints.some(({ isSource }) => isSource)) endpoints.push(source(routes, reference, false));
  return withoutRepeats(endpoints);
}

function ofPullSource(routes: RoutesState, reference: Reference, from: PullSource): Endpoint {
  const { image, location, insecure, isNamed, refusal } = from;
  const isSource = image.name === reference.name;
  const endpoint = source(routes, image, isNamed, insecure ? insecureTrust : undefined);
  const name = isSource || location === '' ? endpoint.name : location;
  return { ...endpoint, name, isSource, ...(refusal === undefined ? {} : { refusal }) };
}

/** The registry of the image itself. */
function source(routes: RoutesState, reference: Reference, isNamed: boolean, trust?: Trust, headers = {}): Endpoint {
  const own = trustOf(routes, reference.endpoint);
  return endpointAt(routes, reference, {
    address: { scheme: 'https', host: reference.endpoint, path: '/v2' },
    credentials: 'source',
    policy: isNamed || own !== undefined ? 'configured' : 'registry',
    trust: trust ?? own,
    headers,
    resolvesTags: true,
  });
}

function endpointAt(routes: RoutesState, reference: Reference, at: MirrorPlace): Endpoint {
  const { address, credentials, trust } = at;
  // As in containerd: the registry's own host, under any path, is not a proxy.
  const isHome = canonical(address.host) === canonical(reference.registry);
  const isSource = isHome && address.path === '/v2';
  const authority = isSource ? reference.endpoint : address.host;
  const { prefix, isPartOfRepository } = readPath(address.path);
  const name = prefix === '' ? authority : `${authority}/${prefix}`;
  const rewritten = at.rewrite?.(reference.repository);
  const repository = rewritten ?? reference.repository;
  return {
    name,
    host: urlHost({ ...address, host: authority }),
    base: `${address.scheme}://${authority}${isPartOfRepository ? '/v2' : address.path}`,
    repository: isPartOfRepository ? `${prefix}/${repository}` : repository,
    credentialName: isSource || credentials === 'source' ? reference.name : `${name}/${repository}`,
    ...(rewritten === undefined || isRepository(rewritten)
      ? {}
      : { refusal: `${name} rewrites it to an invalid repository` }),
    isSource,
    query: isHome ? '' : `?ns=${encodeURIComponent(reference.registry)}`,
    policy: at.policy,
    ...(trust === undefined ? {} : { trust }),
    headers: at.headers,
    resolvesTags: at.resolvesTags,
    ...(at.isSparse || isSparse(routes, address) ? { isSparse: true } : {}),
  };
}

function isSparse({ sparseHosts }: RoutesState, address: EndpointAddress): boolean {
  if (sparseHosts.size === 0) return false;
  const { scheme, host } = address;
  const withPort = /:\d+$/.test(host) ? host : `${host}:${scheme === 'https' ? 443 : 80}`;
  return [hubEndpoint(host), urlHost(address), withPort].some((each) => sparseHosts.has(each));
}

function trustOf({ unverified }: RoutesState, host: string): Trust | undefined {
  return unverified.has(hubEndpoint(host)) ? insecureTrust : undefined;
}

/**
 * Parses an endpoint of `registries.mirrors`, `[http://|https://]host[:port][/prefix]`. The prefix is the beginning of
 * the repository there.
 *
 * @throws Error naming the problem
 */
export function parseEndpoint(text: string): EndpointAddress {
  const address = parseEndpointAddress(text);
  if (/^\/v2(\/|$)/.test(address.path)) {
    throw new Error(`"${printableAscii(text, 120)}": omit "/v2", which is added for every registry`);
  }
  return address;
}

function readMirrors(mirrors: Mirrors): Map<string, Mirrored> {
  const read = new Map<string, Mirrored>();
  for (const [key, mirror] of Object.entries(mirrors)) {
    const { endpoints, fallback } = mirror;
    const at = `registries.mirrors.${key}`;
    const { host, path } = explained(at, () => parseEndpointAddress(key));
    if (path !== '' || host !== key.toLowerCase()) throw new Error(`${at}: the host[:port] of a registry is expected`);
    const registry = canonical(host);
    if (read.has(registry)) throw new Error(`${at}: ${registry} is already configured under another of its names`);
    if (endpoints.length === 0 && !fallback)
      throw new Error(`${at}: without endpoints and without fallback no registry is asked`);
    const entries = endpoints.map((text, index): HostEntry<Trust> => {
      const address = explained(`${at}.endpoints[${index}]`, () => parseEndpoint(text));
      return { address: { ...address, path: `/v2${address.path}` }, headers: {}, resolvesTags: true };
    });
    read.set(registry, { ...mirror, entries, isDefault: false });
  }
  return read;
}

/**
 * Splits the path before the image's repository. `/v2/hub` is the beginning of a repository, so tokens are requested
 * for it; `/hub/v2` is a registry that is not at the root of its host.
 */
function readPath(path: string): { prefix: string; isPartOfRepository: boolean } {
  if (path.endsWith('/v2')) return { prefix: path.slice(1, -3), isPartOfRepository: false };
  if (path.startsWith('/v2/')) return { prefix: path.slice(4), isPartOfRepository: true };
  return { prefix: path.slice(1), isPartOfRepository: false };
}

/** Leaves out endpoints that would repeat an earlier request, as containerd does with a source that is named twice. */
function withoutRepeats(endpoints: readonly Endpoint[]): Endpoint[] {
  const seen = new Set<string>();
  return endpoints.filter((endpoint) => {
    const { trust, headers, resolvesTags } = endpoint;
    const [weaker, full] = [false, true].map((tags) =>
      JSON.stringify([repositoryUrl(endpoint), trust?.id, headers, tags]),
    );
    if (full === undefined || weaker === undefined || seen.has(full)) return false;
    if (!resolvesTags && seen.has(weaker)) return false;
    seen.add(resolvesTags ? full : weaker);
    return true;
  });
}

/** Believes an endpoint that may lack manifests if one that has everything is asked after it: runtimes get them there. */
function believed(endpoints: readonly Endpoint[]): Endpoint[] {
  const complete = endpoints.findLastIndex(({ isSparse }) => !isSparse);
  return endpoints.map(({ isSparse, ...endpoint }, index) =>
    isSparse && index > complete ? { ...endpoint, isSparse } : endpoint,
  );
}

/** Says of all endpoints which they are, if one of them may lack manifests. */
function withRoute(endpoints: readonly Endpoint[]): readonly Endpoint[] {
  if (!endpoints.some(({ isSparse }) => isSparse)) return endpoints;
  const parts = endpoints.map((each) => [repositoryUrl(each), each.query, each.isSparse === true]);
  const route = sha256(JSON.stringify(parts)).slice(0, 32);
  return endpoints.map((endpoint) => ({ ...endpoint, route }));
}

function canonical(host: string): string {
  return HUB_NAMES.has(host) ? HUB : host;
}

/** Returns the host that gets the requests: Docker Hub's own, if Docker Hub goes by another name. */
function hubEndpoint(host: string): string {
  return HUB_NAMES.has(host) ? HUB_ENDPOINT : host;
}
