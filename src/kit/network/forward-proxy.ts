import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { parseUrl } from './url.ts';

/** A proxy that the environment names. */
export type ForwardProxy = {
  /** The name of the variable, in the spelling that is set. */
  readonly variable: string;
  /** host[:port], for messages. */
  readonly host: string;
  /** `http://host:port` or `https://host:port`. */
  readonly origin: string;
  /** The value of `Proxy-Authorization`. */
  readonly authorization?: string;
};

/** Returns the proxy for a URL; undefined if the request is sent directly. */
export type ProxySelector = (url: URL) => ForwardProxy | undefined;

/**
 * Reads `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`; names in lower case win, as with curl and Go's tools. Unknown forms
 * of entries in `NO_PROXY` match nothing. Returns undefined if there is no proxy.
 *
 * @throws Error naming the variable with an invalid proxy, but never its contents, which may hold a password
 */
export function createProxySelector(
  environment: Readonly<Record<string, string | undefined>>,
): ProxySelector | undefined {
  const find = (name: string): readonly [string, string] | undefined =>
    [name.toLowerCase(), name]
      .map((each) => [each, environment[each] ?? ''] as const)
      .find(([, value]) => value !== '');
  const proxies = new Map<string, ForwardProxy>();
  for (const scheme of ['https', 'http']) {
    const found = find(`${scheme.toUpperCase()}_PROXY`);
    if (found !== undefined) proxies.set(`${scheme}:`, readProxy(...found));
  }
  const exemptions = (find('NO_PROXY')?.[1] ?? '')
    .toLowerCase()
    .split(/[\s,]+/)
    .map(exemption);
  if (proxies.size === 0) return undefined;
  return (url) => {
    const proxy = proxies.get(url.protocol);
    if (proxy === undefined) return undefined;
    const host = url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
    const address = isIP(host) === 0 ? undefined : ipaddr.process(host);
    const target = { host, port: url.port || (url.protocol === 'https:' ? '443' : '80'), address };
    // A proxy cannot reach servers on this machine.
    if (host === 'localhost' || address?.range() === 'loopback') return undefined;
    return exemptions.some((matches) => matches(target)) ? undefined : proxy;
  };
}

function readProxy(variable: string, text: string): ForwardProxy {
  const refuse = (problem: string): Error => new Error(`${variable}: ${problem}`);
  const full = text.includes('://') ? text : `http://${text}`;
  const url = parseUrl(full);
  if (url === undefined) throw refuse('is not a URL such as http://proxy.example.com:3128');
  const { protocol, host, username, password } = url;
  if (protocol !== 'http:' && protocol !== 'https:') throw refuse('is neither an http:// nor an https:// URL');
  const proxy = { variable, host, origin: `${protocol}//${host}` };
  if (username === '' && password === '') return proxy;
  try {
    const login = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`, 'utf8');
    return { ...proxy, authorization: `Basic ${login.toString('base64')}` };
  } catch {
    throw refuse(
      'contains a "%" in its user or password that is not followed by two hexadecimal digits ("%25" is a "%")',
    );
  }
}

type ProxyTarget = {
  readonly host: string;
  readonly port: string;
  readonly address: ReturnType<typeof ipaddr.process> | undefined;
};

/** Parses one entry of `NO_PROXY`: `*`, a CIDR, or a host[:port]. A domain covers its subdomains too; `.domain` covers only those. */
function exemption(entry: string): (target: ProxyTarget) => boolean {
  if (entry === '*') return () => true;
  if (entry.includes('/')) {
    const cidr = ipaddr.isValidCIDR(entry) ? ipaddr.parseCIDR(entry) : undefined;
    return ({ address }) => cidr !== undefined && address?.kind() === cidr[0].kind() && address.match(cidr);
  }
  const [, name = '', port] = isIP(entry) === 0 ? (/^(.*?)(?::(\d+))?$/.exec(entry) ?? []) : [entry, entry];
  const host = name.replace(/^\[(.*)\]$/, '$1');
  const isPort = (target: ProxyTarget): boolean => port === undefined || target.port === port;
  if (isIP(host) !== 0) {
    // An address with a zone is never a target.
    if (!ipaddr.isValid(host)) return () => false;
    const address = ipaddr.process(host).toString();
    return (target) => target.address?.toString() === address && isPort(target);
  }
  const domain = host.replace(/^\*(?=\.)/, '').replace(/\.$/, '');
  if (domain === '') return () => false;
  const suffix = domain.startsWith('.') ? domain : `.${domain}`;
  return (target) =>
    target.address === undefined && (target.host === domain || target.host.endsWith(suffix)) && isPort(target);
}
