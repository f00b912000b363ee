import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

// Why ipaddr.js and not net.BlockList: a BlockList only says yes or no, and unwraps only ::ffff:. This file needs the
// bytes, for the IPv4 addresses inside NAT64 and 6to4, and the kind of the match.

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

/**
 * IPv6 ranges that carry an IPv4 address, with the byte at which it begins. The IPv4 address is the one that is judged.
 */
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

export function within(address: ipaddr.IPv4 | ipaddr.IPv6, [network, bits]: Cidr): boolean {
  return address.kind() === network.kind() && address.match([network, bits]);
}

/**
 * Returns the address that packets go to: an IPv4 address taken out of its IPv6 form; `::` and `::1` stay as they are.
 */
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

/** For whom an address is judged. */
export type AddressPolicy =
  /** A registry that the configuration names as insecure: loopback is allowed too. */
  | 'configured'
  /** Any other registry, and any host to which a registry redirects. */
  | 'registry'
  /** A token service that a registry on a public address named: only public addresses are allowed. */
  | 'public';

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
