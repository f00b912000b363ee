import { printableAscii } from '../../kit/printable.ts';
import type { AddressPolicy, Trust } from '../http/trust.ts';
import type { Reference } from '../reference.ts';

/** A place where an image can be requested: a mirror of its registry, or the registry itself. */
export type Endpoint = {
  /** host[:port], for a mirror with its path prefix; the name in messages, metrics and `inspect`. */
  readonly name: string;
  /** host[:port] of the URL. */
  readonly host: string;
  /** The URL before `/<the image's repository there>/manifests/…`, for example `https://mirror.example.com/v2`. */
  readonly base: string;
  /** The image's repository there, for example `hub/library/nginx`: the repository in a token's scope. */
  readonly repository: string;
  /** The name with which credentials are matched, for example `mirror.example.com/hub/library/nginx`. */
  readonly credentialName: string;
  readonly isSource: boolean;
  /** `?ns=docker.io`: names to a mirror the registry of the image; empty for the source. */
  readonly query: string;
  readonly policy: AddressPolicy;
  /** Absent: verified with the built-in authorities and `registries.caFile`. */
  readonly trust?: Trust;
  /** Headers for this endpoint alone; never sent to a host that it redirects to. */
  readonly headers: Readonly<Record<string, string>>;
  /** Whether the endpoint may resolve tags; if not, it is asked for digests only. */
  readonly resolvesTags: boolean;
  /** Whether it may lack some of the manifests that its indexes name, and so may all that are asked after it. */
  readonly isSparse?: true;
  /**
   * A key of all endpoints of the image if one of them is sparse: what was found holds only for the endpoints that gave it.
   * Absent: each has all.
   */
  readonly route?: string;
  /** Why nothing may be requested here. */
  readonly refusal?: string;
};

/** An image at one of its endpoints. */
export type EndpointTarget = { readonly endpoint: Endpoint; readonly reference: Reference };

/** Returns the name of an endpoint in messages and metrics: the registry by its name in images, a mirror by its own. */
export function labelOf({ endpoint, reference }: EndpointTarget): string {
  return endpoint.isSource ? reference.registry : endpoint.name;
}

/** Returns the URL of the image's repository there, for example `https://mirror.example.com/v2/hub/library/nginx`. */
export function repositoryUrl({ base, repository }: Endpoint): string {
  return `${base}/${repository}`;
}

/** The parts of an endpoint as a configuration writes it. */
export type EndpointAddress = {
  readonly scheme: 'http' | 'https';
  /** host[:port] as written, in lower case. */
  readonly host: string;
  /** Empty, or for example `/hub/cache`; no slash at its end. */
  readonly path: string;
};

const HOST_LABEL = /^[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?$/;
const MAX_HOST = 255;

/**
 * Parses `[http://|https://]host[:port][/path]`; without a scheme it is https.
 *
 * @throws Error naming the problem; it quotes the text unless that may contain a password
 */
export function parseEndpointAddress(text: string): EndpointAddress {
  const [, scheme = 'https', authority = '', rawPath = ''] =
    /^(?:([A-Za-z][A-Za-z0-9+.-]*):\/\/)?([^/]*)(.*)$/s.exec(text) ?? [];
  const rest = authority + rawPath;
  if (rest.includes('@')) {
    throw new Error('an endpoint must not contain user information: use the keys for credentials');
  }
  const refuse = (problem: string): Error => new Error(`"${printableAscii(text, 120)}": ${problem}`);
  const lower = scheme.toLowerCase();
  if (lower !== 'http' && lower !== 'https') throw refuse('the scheme must be http or https');
  // Also refuses characters that become ASCII in lower case, such as the Kelvin sign.
  if (/\P{ASCII}/u.test(rest)) throw refuse('an endpoint must be ASCII');
  if (/[?#]/.test(rest)) throw refuse('an endpoint must not have a query or a fragment');
  const host = authority.toLowerCase();
  const problem = hostProblem(host);
  if (problem !== undefined) throw refuse(problem);
  const path = rawPath.replace(/\/$/, '');
  const parts = path.split('/').slice(1);
  if (parts.includes('')) throw refuse('a part of the path is empty');
  if (!parts.every((part) => /^[A-Za-z0-9._~-]+$/.test(part) && !/^\.\.?$/.test(part))) {
    throw refuse('parts of the path are letters, digits, ".", "_", "~" and "-", and neither "." nor ".."');
  }
  return { scheme: lower, host, path };
}

/** Returns host[:port] as a URL has it: without the default port of its scheme. */
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
      : 'the host is not a valid IPv6 address';
  }
  const isName = host.length <= MAX_HOST && host.split('.').every((label) => HOST_LABEL.test(label));
  // A URL reads `2130706433` and `127.1` as addresses, so the host would be contacted under another name.
  const isItself = isName && URL.canParse(`http://${host}/`) && new URL(`http://${host}/`).hostname === host;
  return isItself ? undefined : 'the host is neither a name nor an address';
}
