import { X509Certificate } from 'node:crypto';
import { lookup as systemLookup } from 'node:dns';
import { setMaxListeners } from 'node:events';
import { isIP, type LookupFunction } from 'node:net';
import { createSecureContext } from 'node:tls';
import ipaddr from 'ipaddr.js';
import { LRUCache } from 'lru-cache';
import { Agent, type buildConnector, type Dispatcher } from 'undici';
import { type Clock, systemClock } from '../../kit/clock.ts';
import { isSame } from '../../kit/json.ts';
import { createLru } from '../../kit/lru.ts';
import { createConnector } from '../../kit/network/connector.ts';
import { createDns, libuvThreads } from '../../kit/network/dns.ts';
import type { ForwardProxy, ProxySelector } from '../../kit/network/forward-proxy.ts';
import { ImageError } from '../errors.ts';
import { addressText } from '../sentences.ts';
import { createTunnel, forward } from './proxy.ts';
import { type AddressPolicy, type ClientCertificate, createAuthorities, type Trust } from './trust.ts';

// Why ipaddr.js and not net.BlockList: a BlockList only says yes or no, and unwraps only ::ffff:. Here the bytes
// are needed, for the IPv4 addresses inside NAT64 and 6to4, and the kind of the match.

type Cidr = ReturnType<typeof ipaddr.parseCIDR>;

/**
 * The kinds of addresses; all others are public. `loopback` may be dialled for hosts that the configuration names. Registries inside
 * companies have `private` addresses. `reserved` (link-local, multicast, ...) and `metadata` (services of clouds) are never dialled.
 * The first match wins. Metadata services that lie within private or public ranges therefore come first.
 */
const KINDS = {
  metadata: [
    ...['169.254.0.0/16', '100.100.100.200', '168.63.129.16', '192.0.0.192', 'fd00:ec2::/32', 'fd20:ce::254'],
    // Of Oracle Cloud and Scaleway. Teredo (RFC 4380) leads to an IPv4 address that is not readable as it stands.
    ...['fd00:c1::a9fe:a9fe', 'fd00:42::42', '2001::/32'],
  ].map(parseCidr),
  reserved: ['0.0.0.0/8', '224.0.0.0/4', '240.0.0.0/4', '::', 'fe80::/10', 'ff00::/8'].map(parseCidr),
  loopback: ['127.0.0.0/8', '::1'].map(parseCidr),
  private: [
    ...['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', '192.0.0.0/24', '198.18.0.0/15'],
    ...['fc00::/7', 'fec0::/10'],
  ].map(parseCidr),
};
const isKind = (name: string): name is keyof typeof KINDS => Object.hasOwn(KINDS, name);

/** IPv6 ranges that carry an IPv4 address, with the byte at which it begins. The IPv4 address is the one that is judged. */
const WRAPPERS = (
  [
    ['::ffff:0:0/96', 12],
    ['64:ff9b::/96', 12],
    // A network's own NAT64 prefix (RFC 8215), of which the usual length is 96, and SIIT (RFC 2765).
    ['64:ff9b:1::/48', 12],
    ['::ffff:0:0:0/96', 12],
    ['2002::/16', 2],
    ['::/96', 12],
  ] as const
).map(([text, offset]) => [parseCidr(text), offset] as const);

/**
 * Parses `10.0.0.0/8`, `fd00::/8`, or one address.
 *
 * @throws Error naming the text if it is neither
 */
export function parseCidr(text: string): Cidr {
  const [address = ''] = text.split('/');
  const cidr = text.includes('/') ? text : `${text}/${isIP(text) === 4 ? 32 : 128}`;
  if (isIP(address) === 0 || !ipaddr.isValidCIDR(cidr)) {
    throw new Error(`"${text}" is not a CIDR such as 10.0.0.0/8 or fd00::/8`);
  }
  return ipaddr.parseCIDR(cidr);
}

function within(address: ipaddr.IPv4 | ipaddr.IPv6, [network, bits]: Cidr): boolean {
  return address.kind() === network.kind() && address.match([network, bits]);
}

/** Returns the address that packets go to: an IPv4 address taken out of its IPv6 form; `::` and `::1` stay as they are. */
function unwrap(address: ipaddr.IPv4 | ipaddr.IPv6): ipaddr.IPv4 | ipaddr.IPv6 {
  if (address instanceof ipaddr.IPv4 || ['::', '::1'].includes(address.toString())) return address;
  const wrapper = WRAPPERS.find(([cidr]) => within(address, cidr));
  if (wrapper === undefined) return address;
  return new ipaddr.IPv4(address.toByteArray().slice(wrapper[1], wrapper[1] + 4));
}

function kindOf(address: ipaddr.IPv4 | ipaddr.IPv6): keyof typeof KINDS | 'public' {
  const name = ipaddr.subnetMatch(address, KINDS);
  return isKind(name) ? name : 'public';
}

export type AddressRules = {
  /** CIDRs that are allowed despite the built-in kinds and `ownAddresses`; metadata services stay forbidden. */
  readonly allow?: readonly string[];
  /** CIDRs that are never dialled; they win over every other rule. */
  readonly deny?: readonly string[];
  /** The current addresses of the API server: forbidden, except for hosts that the configuration names. */
  readonly ownAddresses?: () => Iterable<string>;
  /** The names of the API server, without ports; the same rule applies. */
  readonly ownNames?: readonly string[];
};

/**
 * Judges textual addresses as resolvers and sockets return them; a text that is not an address is forbidden.
 *
 * @throws Error for an invalid CIDR
 */
export function createAddressJudge(rules: AddressRules) {
  const allow = (rules.allow ?? []).map(parseCidr);
  const deny = (rules.deny ?? []).map(parseCidr);
  const ownNames = new Set((rules.ownNames ?? []).map((name) => name.toLowerCase()));
  const isAllowed = (address: ipaddr.IPv4 | ipaddr.IPv6) => allow.some((cidr) => within(address, cidr));
  const read = (text: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined =>
    isIP(text) === 0 ? undefined : unwrap(ipaddr.parse(text));

  /** Returns undefined if the address may be dialled, otherwise why not. */
  function forbidden(
    text: string,
    policy: AddressPolicy,
  ): 'private' | 'loopback' | 'reserved' | 'denied' | 'own' | undefined {
    const address = read(text);
    if (address === undefined) return 'reserved';
    if (deny.some((cidr) => within(address, cidr))) return 'denied';
    const kind = kindOf(address);
    if (kind === 'metadata') return 'reserved';
    if (policy === 'configured') return kind === 'reserved' && !isAllowed(address) ? kind : undefined;
    const isOwn = [...(rules.ownAddresses?.() ?? [])].some((own) => read(own)?.toString() === address.toString());
    // The operator allows a range for registries, not for the services that a public registry points to.
    if (policy === 'public') return isOwn ? 'own' : kind === 'public' ? undefined : kind;
    if (isAllowed(address)) return undefined;
    if (isOwn) return 'own';
    return kind === 'public' || kind === 'private' ? undefined : kind;
  }

  return {
    forbidden,
    /** The same for the host of a URL, if it is an address or a name of the API server; other names depend on their addresses. */
    forbiddenHost(host: string, policy: AddressPolicy): ReturnType<typeof forbidden> {
      if (policy !== 'configured' && ownNames.has(host.replace(/\.$/, ''))) return 'own';
      const literal = host.replace(/^\[|\]$/g, '');
      return isIP(literal) === 0 ? undefined : forbidden(literal, policy);
    },
    isPublic(text: string): boolean {
      const address = read(text);
      return address === undefined || kindOf(address) === 'public';
    },
  };
}

export type GuardOptions = AddressRules & {
  /** Milliseconds for the DNS lookup, connecting and the TLS handshake together. */
  readonly connectTimeoutMs: number;
  /** The longest silence within a body, in milliseconds. A deadline ends all requests but those that read as it arrives. */
  readonly silenceMs?: number;
  readonly now: () => number;
  /** For the deadlines of DNS lookups; default: the timers of the machine. */
  readonly after?: Clock['after'];
  /** PEM of additional authorities that are trusted at this moment. */
  readonly authorities?: () => readonly string[];
  /** Replaces the system's resolver. */
  readonly lookup?: LookupFunction;
  /** Absent: all requests are sent directly. */
  readonly proxy?: ProxySelector | undefined;
};

/** Everything that decides which connections a request may use. */
type Passage = { readonly url: URL; readonly policy: AddressPolicy; readonly trust?: Trust | undefined };

type SentRequest = Pick<Dispatcher.RequestOptions, 'method' | 'body'> & {
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
};

/** Connections whose addresses are judged when they are made. */
export type Guard = ReturnType<typeof createGuard>;

/** The connections of one policy, trust and proxy. Without a proxy `https` is for both schemes. */
type Pools = { readonly https: Agent; readonly http: Agent };

const MAX_POOLS = 64;
const POOL: Agent.Options = {
  pipelining: 1,
  // Less than the five seconds after which common servers close an idle connection, so that a request does not meet one that is closing.
  keepAliveTimeout: 4000,
  maxHeaderSize: 16 * 1024,
};

/** The error of a lookup whose name leads to a forbidden address. Its message is the kind of the address. */
class ForbiddenLookup extends Error {}

/** @throws Error for an invalid CIDR in the options */
export function createGuard(options: GuardOptions) {
  const guard = createGuardState(options);
  const { judge, publicHosts, kept, pools, ending } = guard;
  return {
    /**
     * Sends a request. If a connection that was kept from before turns out to be closed, which says nothing about the host, it is
     * sent once more, unless it is a POST.
     *
     * @throws ImageError for a name of the API server, and for a forbidden address in the URL; ProxyFailure; Error for an invalid
     * client certificate, and for what fails below HTTP
     */
    async request(passage: Passage, sent: SentRequest): Promise<Dispatcher.ResponseData> {
      const { url, policy } = passage;
      // Other names are judged by their addresses when they are dialled; a proxy decides which of them it allows.
      const reason = judge.forbiddenHost(url.hostname, policy);
      if (reason !== undefined) throw refusal(url.host, reason);
      const proxy = options.proxy?.(url);
      const path = url.pathname + url.search;
      for (let isFirst = true; ; isFirst = false) {
        const { https, http } = poolsOf(guard, passage, proxy);
        const wasKept = kept.begin();
        try {
          if (proxy !== undefined && url.protocol === 'http:') return await forward(http, proxy, url, sent);
          return await https.request({ ...sent, origin: url.origin, path });
        } catch (error) {
          const mayRepeat = isFirst && sent.method !== 'POST' && !sent.signal.aborted;
          if (!mayRepeat || !wasKept(error)) throw error;
        }
      }
    },
    /** Whether a host[:port] answered from a public address; also true for a host that is not known. */
    isPublic: (host: string): boolean => publicHosts.get(host) ?? true,
    /** Closes all connections, and ends the requests on them. What is left of retired pools ends with the signals of its requests. */
    destroy(): void {
      ending.abort();
      for (const { https, http } of pools.values()) {
        for (const agent of [https, http]) void agent.destroy().catch(() => undefined);
      }
    },
  };
}

/** What connections are made and judged with, and those that are kept. */
type GuardState = ReturnType<typeof createGuardState>;

function createGuardState(options: GuardOptions) {
  const { authorities = () => [], lookup = systemLookup, silenceMs, now } = options;
  const ending = new AbortController();
  setMaxListeners(0, ending.signal);
  const later = options.after ?? systemClock.after;
  const threads = libuvThreads(process.env.UV_THREADPOOL_SIZE);
  const pool: Agent.Options = { ...POOL, ...(silenceMs === undefined ? {} : { bodyTimeout: silenceMs }) };
  return {
    ...{ authorities, ending, pool, timeoutMs: options.connectTimeoutMs, kept: createKeptConnections() },
    judge: createAddressJudge(options),
    authoritiesFor: createAuthorities(authorities, process.env.NODE_EXTRA_CA_CERTS),
    // A host that was public once stays public. Otherwise an attacker could make a name private between its challenge and
    // the token request.
    publicHosts: createLru<boolean>(10_000),
    lookup: createDns({ lookup, threads, now, later, signal: ending.signal }),
    pools: new LRUCache<string, Pools>({ max: MAX_POOLS, dispose: retire }),
    trusted: authorities(),
  };
}

/** Returns the TLS settings of a trust. The context is created once, because a `ca` option is parsed again for every connection. */
function tlsOf({ authoritiesFor }: GuardState, trust?: Trust): buildConnector.BuildOptions {
  const ca = authoritiesFor(trust);
  const clients = usable(trust?.clients ?? []);
  const verify = trust?.verify === false ? { rejectUnauthorized: false } : {};
  if (ca === undefined && clients.length === 0) return verify;
  const [cert, key] = [clients.map(({ certificate }) => certificate), clients.map((client) => client.key)];
  return { ...verify, secureContext: createSecureContext({ ca, cert, key }) };
}

function connector({ timeoutMs, lookup, ending }: GuardState, more: buildConnector.BuildOptions) {
  return createConnector({ timeout: timeoutMs, autoSelectFamily: true, lookup, ...more }, ending.signal);
}

function direct(guard: GuardState, policy: AddressPolicy, trust: Trust | undefined): Agent {
  const { judge, publicHosts, lookup, pool } = guard;
  const connect = connector(guard, {
    ...tlsOf(guard, trust),
    // Called for names only, never for literal addresses. Every address is judged, because Node.js chooses the one that is dialled.
    lookup: (hostname, lookupOptions, callback) => {
      lookup(hostname, { ...lookupOptions, all: true }, (error, addresses) => {
        if (error !== null || typeof addresses === 'string') return callback(error, addresses);
        const [reason] = addresses.flatMap(({ address }) => judge.forbidden(address, policy) ?? []);
        if (reason !== undefined) return callback(new ForbiddenLookup(reason), []);
        const [first] = addresses;
        if (lookupOptions.all === true || first === undefined) return callback(null, addresses);
        callback(null, first.address, first.family);
      });
    },
  });
  return new Agent({
    ...pool,
    connect: (target, callback) =>
      connect(target, (error, socket) => {
        const host = target.host ?? target.hostname;
        if (error !== null) {
          return callback(error instanceof ForbiddenLookup ? refusal(host, error.message) : error, null);
        }
        publicHosts.set(host, publicHosts.get(host) === true || judge.isPublic(socket.remoteAddress ?? ''));
        callback(null, socket);
      }),
  });
}

function make(guard: GuardState, { policy, trust }: Passage, proxy: ForwardProxy | undefined): Pools {
  if (proxy === undefined) {
    const agent = direct(guard, policy, trust);
    return { https: agent, http: agent };
  }
  // The operator named the proxy, so its own address is not judged any further.
  return createTunnel({
    ...{ proxy, pool: guard.pool, timeoutMs: guard.timeoutMs, signal: guard.ending.signal },
    connectProxy: connector(guard, tlsOf(guard)),
    connectThrough: connector(guard, tlsOf(guard, trust)),
  });
}

/** A connection made for one policy, trust or proxy is never used for another. */
function poolsOf(guard: GuardState, passage: Passage, proxy: ForwardProxy | undefined): Pools {
  const { ending, pools, kept } = guard;
  ending.signal.throwIfAborted();
  const current = guard.authorities();
  if (!isSame(current, guard.trusted)) pools.clear();
  guard.trusted = current;
  const key = JSON.stringify([passage.policy, passage.trust?.id, proxy?.variable, proxy?.origin]);
  const before = pools.get(key);
  if (before !== undefined) return before;
  const made = make(guard, passage, proxy);
  for (const agent of new Set([made.https, made.http])) kept.watch(agent);
  pools.set(key, made);
  return made;
}

/** Lets the requests end that are under way. In this order: one that waits for a tunnel needs the proxy. */
function retire({ https, http }: Pools): void {
  https
    .close()
    .then(() => http.close())
    .catch(() => undefined);
}

/**
 * Returns the first certificate of each type of key: OpenSSL holds one certificate for a type, and the registry says
 * which types it accepts.
 */
function usable(clients: readonly ClientCertificate[]): ClientCertificate[] {
  const types = clients.map(({ certificate }) => new X509Certificate(certificate).publicKey.asymmetricKeyType);
  return clients.filter((_, index) => types.indexOf(types[index]) === index);
}

function refusal(host: string, reason: string): ImageError {
  return new ImageError(addressText(host, reason), { code: 'forbidden-address', endpoint: host });
}

/**
 * Knows which connections existed before a request. If the server has just closed such a connection, that says nothing about the server.
 */
function createKeptConnections() {
  // A counter of events, not a time. Each client of undici is one connection at a time.
  let moment = 0;
  const opened = new WeakMap<object, number>();
  const ended = new WeakMap<object, number>();
  return {
    /** Records the connections of a pool. */
    watch(pool: Agent): void {
      pool.on('connect', (_origin, targets) => {
        moment += 1;
        for (const client of targets.slice(-1)) opened.set(client, moment);
      });
      // undici passes the error of a connection also to the request that was on it.
      pool.on('disconnect', (_origin, targets, error) => {
        const since = targets.slice(-1).flatMap((client) => opened.get(client) ?? []);
        for (const each of since) ended.set(error, each);
      });
    },
    /** Call right before a request is sent. */
    begin() {
      moment += 1;
      const start = moment;
      /** Returns whether the request failed with this error because a connection ended that existed before the request. */
      return (error: unknown): boolean => error instanceof Error && (ended.get(error) ?? start) < start;
    },
  };
}
