import { printableAscii } from '../../kit/printable.ts';
import type { AddressPolicy } from '../http/addresses.ts';
import type { Trust } from '../http/trust.ts';
import type { Reference } from '../reference.ts';

/** Where an image may be asked for: a mirror of its registry, or the registry itself. */
export type Endpoint = {
  /** host[:port], and of a mirror its path prefix; what messages, metrics and `inspect` call it. */
  readonly name: string;
  /** host[:port] of the URL. */
  readonly host: string;
  /** What `/<the source's repository>/manifests/…` is appended to, as `https://mirror.example.com/v2/hub`. */
  readonly base: string;
  /** The image's repository there, as `hub/library/nginx`: what a token is asked for. */
  readonly repository: string;
  /** The name that credentials are matched with, as `mirror.example.com/hub/library/nginx`. */
  readonly credentialName: string;
  readonly isSource: boolean;
  /** `?ns=docker.io`, which tells a mirror whose image is meant; empty for the source. */
  readonly query: string;
  readonly policy: AddressPolicy;
  /** Absent: verified by the built-in authorities and `registries.caFile`. */
  readonly trust?: Trust;
  /** Sent to this endpoint alone, never to where it redirects. */
  readonly headers: Readonly<Record<string, string>>;
  /** Whether it may say what a tag stands for; else it is asked for digests only. */
  readonly resolvesTags: boolean;
};

/** An image, at one of the endpoints where it may be asked for. */
export type EndpointTarget = { readonly endpoint: Endpoint; readonly reference: Reference };

/** What messages and metrics call an endpoint: the registry by its name in images, a mirror by its own. */
export function labelOf({ endpoint, reference }: EndpointTarget): string {
  return endpoint.isSource ? reference.registry : endpoint.name;
}

/** URL of the image's repository there, as `https://mirror.example.com/v2/hub/library/nginx`. */
export function repositoryUrl({ endpoint, reference }: EndpointTarget): string {
  return `${endpoint.base}/${reference.repository}`;
}

/** An endpoint as a configuration writes it, taken apart. */
export type EndpointAddress = {
  readonly scheme: 'http' | 'https';
  /** host[:port] as written, in lower case. */
  readonly host: string;
  /** Empty, or as `/hub/cache`: no slash at its end. */
  readonly path: string;
};

const HOST_LABEL = /^[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?$/;
const MAX_HOST = 255;

/**
 * Reads `[http://|https://]host[:port][/path]`; without a scheme it is https.
 *
 * @throws Error naming the problem; with the text, unless that may hold a password
 */
export function parseEndpointAddress(text: string): EndpointAddress {
  const [, scheme = 'https', rest = ''] = /^(?:([A-Za-z][A-Za-z0-9+.-]*):\/\/)?(.*)$/s.exec(text) ?? [];
  if (rest.includes('@')) throw new Error('an endpoint holds no user information: credentials have keys of their own');
  const refuse = (problem: string): Error => new Error(`"${printableAscii(text, 120)}": ${problem}`);
  const lower = scheme.toLowerCase();
  if (lower !== 'http' && lower !== 'https') throw refuse('the scheme must be http or https');
  // Also what becomes ASCII in lower case, as the sign for kelvin.
  if (/\P{ASCII}/u.test(rest)) throw refuse('an endpoint is ASCII');
  if (/[?#]/.test(rest)) throw refuse('an endpoint has neither query nor fragment');
  const slash = rest.indexOf('/');
  const host = (slash < 0 ? rest : rest.slice(0, slash)).toLowerCase();
  const problem = hostProblem(host);
  if (problem !== undefined) throw refuse(problem);
  const path = slash < 0 ? '' : rest.slice(slash).replace(/\/$/, '');
  const parts = path.split('/').slice(1);
  if (parts.includes('')) throw refuse('a part of the path is empty');
  if (!parts.every((part) => /^[A-Za-z0-9._~-]+$/.test(part) && !/^\.\.?$/.test(part))) {
    throw refuse('parts of the path are letters, digits, ".", "_", "~" and "-", and neither "." nor ".."');
  }
  return { scheme: lower, host, path };
}

/** host[:port] as a URL has it: without its scheme's own port. */
export function urlHost({ scheme, host }: EndpointAddress): string {
  return new URL(`${scheme}://${host}/`).host;
}

function hostProblem(authority: string): string | undefined {
  const [, host = '', port] = /^(\[[^\]]*\]|[^:]*)(?::(.*))?$/s.exec(authority) ?? [];
  if (host === '') return 'a host is expected';
  if (port !== undefined && (!/^[1-9]\d{0,4}$/.test(port) || Number(port) > 65535)) {
    return 'the port must be a number from 1 to 65535';
  }
  if (host.startsWith('[')) {
    return /^\[[0-9a-f:.]{2,45}\]$/.test(host) && URL.canParse(`http://${host}/`)
      ? undefined
      : 'the host is no IPv6 address';
  }
  const isName = host.length <= MAX_HOST && host.split('.').every((label) => HOST_LABEL.test(label));
  // `2130706433` and `127.1` are addresses to a URL, and would be asked under another name.
  const isItself = isName && URL.canParse(`http://${host}/`) && new URL(`http://${host}/`).hostname === host;
  return isItself ? undefined : 'the host is neither a name nor an address';
}
