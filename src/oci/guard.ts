import { lookup as systemLookup } from 'node:dns';
import { setMaxListeners } from 'node:events';
import { isIP, type LookupFunction } from 'node:net';
import { LRUCache } from 'lru-cache';
import { Agent, buildConnector, type Dispatcher } from 'undici';
import { type AddressPolicy, type AddressRules, createAddressJudge } from './addresses.ts';
import { ImageError } from './errors.ts';

export type GuardOptions = AddressRules & {
  /** host[:port] of registries that may be on loopback, and whose certificate is not verified. */
  readonly insecure: readonly string[];
  /** Milliseconds for looking the name up, connecting and the TLS handshake together. */
  readonly connectTimeoutMs: number;
  /** In place of the system's resolver. */
  readonly lookup?: LookupFunction;
};

/** Connections that are judged by address where they are made. */
export type Guard = {
  /** A pool per policy, so that a connection made under one is never used under another. */
  dispatcher(policy: AddressPolicy): Dispatcher;
  /** Whether the host[:port] is named as insecure. */
  isConfigured(host: string): boolean;
  /** Whether a host[:port] answered from a public address; true as well for one that is not known. */
  isPublic(host: string): boolean;
  /** Ends all connections, and what runs on them. */
  destroy(): void;
};

/** What a lookup reports when a name leads to an address that may not be dialled. Holds no address. */
class ForbiddenLookup extends Error {
  readonly reason: string;
  constructor(reason: string) {
    super('forbidden address');
    this.reason = reason;
  }
}

/** @throws Error for a CIDR in the options that is none */
export function createGuard(options: GuardOptions): Guard {
  const judge = createAddressJudge(options);
  const insecure = new Set(options.insecure.map((host) => host.toLowerCase()));
  // Once public stays public: else an attacker's name could turn private between its challenge and the token request.
  const publicHosts = new LRUCache<string, boolean>({ max: 10_000 });
  const lookup = sharedLookup(options.lookup ?? systemLookup);
  // Destroying an agent leaves a socket that is still connecting to its time-out: the process would wait for it.
  const ending = new AbortController();
  setMaxListeners(0, ending.signal);

  function agent(policy: AddressPolicy): Agent {
    const connect = buildConnector({
      timeout: options.connectTimeoutMs,
      signal: ending.signal,
      autoSelectFamily: true,
      // Literals never come here. Every address is judged: which of them is dialled is not ours to say.
      lookup: (hostname, lookupOptions, callback) => {
        lookup(hostname, { ...lookupOptions, all: true }, (error, addresses) => {
          if (error !== null || typeof addresses === 'string') return callback(error, addresses);
          const reason = addresses
            .map(({ address }) => judge.forbidden(address, policy))
            .find((kind) => kind !== undefined);
          if (reason !== undefined) return callback(new ForbiddenLookup(reason), []);
          const [first] = addresses;
          if (lookupOptions.all === true || first === undefined) return callback(null, addresses);
          callback(null, first.address, first.family);
        });
      },
      ...(policy === 'configured' ? { rejectUnauthorized: false } : {}),
    });
    return new Agent({
      pipelining: 1,
      // Below the five seconds after which common servers hang up, so that a request does not meet a closing connection.
      keepAliveTimeout: 4000,
      maxHeaderSize: 16 * 1024,
      connect: (target, callback) => {
        const host = target.host ?? target.hostname;
        const literal = target.hostname.replace(/^\[|\]$/g, '');
        const reason = isIP(literal) === 0 ? undefined : judge.forbidden(literal, policy);
        if (reason !== undefined) return callback(refusal(host, reason), null);
        connect(target, (error, socket) => {
          if (error !== null) {
            return callback(error instanceof ForbiddenLookup ? refusal(host, error.reason) : error, null);
          }
          const address = socket.remoteAddress ?? '';
          const late = judge.forbidden(address, policy);
          if (late !== undefined) {
            socket.destroy();
            return callback(refusal(host, late), null);
          }
          publicHosts.set(host, publicHosts.get(host) === true || judge.isPublic(address));
          callback(null, socket);
        });
      },
    });
  }

  const agents: Record<AddressPolicy, Agent> = {
    configured: agent('configured'),
    registry: agent('registry'),
    public: agent('public'),
  };
  return {
    dispatcher: (policy) => agents[policy],
    isConfigured: (host) => insecure.has(host),
    isPublic: (host) => publicHosts.get(host) ?? true,
    destroy() {
      ending.abort();
      for (const each of Object.values(agents)) void each.destroy().catch(() => undefined);
    },
  };
}

/** Says what to do about it; never names the address, which would tell a pod's author about the cluster's network. */
function refusal(host: string, reason: string): ImageError {
  const details = { code: 'forbidden-address', temporary: false, endpoint: host } as const;
  if (reason === 'loopback' && /^localhost(:|$)/.test(host)) {
    return new ImageError(
      `${host} is each node's own localhost, which the controller cannot reach; say what its images run on with ` +
        `images.overrides: [{pattern: "${host}/*", architectures: [amd64]}], or, where it is this host's own, ` +
        `registries.insecure: ["${host}"]; a later version will take ` +
        `registries.mirrors: {"${host}": {endpoints: ["registry.example.com:5000"]}}`,
      details,
    );
  }
  const hint =
    reason === 'loopback'
      ? `registries.insecure: ["${host}"] allows it`
      : reason === 'denied'
        ? 'registries.addresses.deny names it'
        : reason === 'own'
          ? `it is an address of the API server; registries.insecure: ["${host}"] allows a registry there`
          : reason === 'private'
            ? 'a public registry names a private address'
            : 'registries.addresses.allow can open it, except for metadata services';
  return new ImageError(`${host} leads to an address that may not be asked (${reason}): ${hint}`, details);
}

/**
 * One question at a time for each name: four threads serve all of a process's look-ups, and eight connections to one
 * dead name would hold them all.
 */
function sharedLookup(lookup: LookupFunction): LookupFunction {
  type Callback = Parameters<LookupFunction>[2];
  const waiting = new Map<string, Callback[]>();
  return (hostname, options, callback) => {
    const key = `${hostname} ${options.family ?? 0} ${options.hints ?? 0}`;
    const others = waiting.get(key);
    if (others !== undefined) {
      others.push(callback);
      return;
    }
    const callbacks = [callback];
    waiting.set(key, callbacks);
    lookup(hostname, options, (error, address, family) => {
      waiting.delete(key);
      for (const each of callbacks) each(error, address, family);
    });
  };
}
