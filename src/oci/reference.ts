import { createHash, timingSafeEqual } from 'node:crypto';
import { createLru } from '../kit/lru.ts';
import { printableAscii } from '../kit/printable.ts';
import { ImageError } from './errors.ts';

/** A parsed image name, normalised as Docker and the kubelet do it. */
export type Reference = {
  /** host[:port] in lower case; `docker.io` for Docker Hub under any of its names. */
  readonly registry: string;
  /** The name without the registry: `library/nginx`. */
  readonly repository: string;
  /** If both a tag and a digest are given, the digest decides; with neither, this is `latest`. */
  readonly tag?: string;
  readonly digest?: string;
  /** `docker.io/library/nginx`: the name with which credentials are matched. */
  readonly name: string;
  /** The whole name with all defaults: `docker.io/library/nginx:latest`. */
  readonly canonical: string;
  /** host[:port] that gets the requests: `registry-1.docker.io` for Docker Hub. */
  readonly endpoint: string;
};

export const HUB = 'docker.io';
/** The name under which Docker's clients store logins for Docker Hub. */
export const HUB_LOGIN = 'index.docker.io';
export const HUB_ENDPOINT = 'registry-1.docker.io';

/** A repository of 255, a host of 255, a tag of 128 and a sha512 digest fit; no valid name is longer. */
const MAX_TEXT = 800;
const MAX_REPOSITORY = 255;
const MAX_HOST = 255;
const MAX_TAG = 128;

// Each expression is anchored and can match a text in only one way, so that its time is linear.
const HOST = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/;
const PATH_COMPONENT = /^[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*$/;
const REPOSITORY = /^[a-z0-9]+(?:(?:\.|__?|-+|\/)[a-z0-9]+)*$/;
const TAG = /^[A-Za-z0-9_][A-Za-z0-9_.-]*$/;

/** Whether a text is the repository of an image. */
export function isRepository(text: string): boolean {
  return text.length <= MAX_REPOSITORY && REPOSITORY.test(text);
}

/**
 * Parses an image's name by the grammar of github.com/distribution/reference, with Docker's defaults (`docker.io`,
 * `library/`, `latest`).
 *
 * @throws ImageError `malformed` with a message that names the problem
 */
export function parseReference(text: string): Reference {
  const refuse = (problem: string): ImageError =>
    new ImageError(`image "${printableAscii(text, 120)}": ${problem}`, { code: 'malformed' });

  if (text === '') throw refuse('the name is empty');
  if (text.length > MAX_TEXT) throw refuse(`the name is longer than ${MAX_TEXT} characters`);

  const at = text.indexOf('@');
  const digest = at < 0 ? undefined : text.slice(at + 1);
  if (digest !== undefined && !isDigest(digest)) {
    throw refuse(
      'after "@" a digest is expected: sha256: and 64, sha384: and 96, or sha512: and 128 lower-case hexadecimal digits',
    );
  }
  const undigested = at < 0 ? text : text.slice(0, at);
  const colon = undigested.lastIndexOf(':');
  // A colon before the last slash belongs to a port or an IPv6 address.
  const tagged = colon > undigested.lastIndexOf('/') && !undigested.endsWith(']');
  const tag = tagged ? undigested.slice(colon + 1) : undefined;
  const path = tagged ? undigested.slice(0, colon) : undigested;
  if (tag !== undefined && (tag.length > MAX_TAG || !TAG.test(tag))) {
    throw refuse(`the tag must be 1 to ${MAX_TAG} letters, digits, "_", "." or "-", and not begin with "." or "-"`);
  }

  const slash = path.indexOf('/');
  const first = slash < 0 ? '' : path.slice(0, slash);
  // Docker's rule: a first component that could not be a repository's is a host.
  const hasHost = /[.:]/.test(first) || first === 'localhost' || first !== first.toLowerCase();
  // Only ASCII letters: the Kelvin sign becomes a "k" in lower case, but cannot be part of a host.
  const host = hasHost ? first.replace(/[A-Z]/g, (letter) => letter.toLowerCase()) : HUB;
  const registry = host === HUB_LOGIN ? HUB : host;
  // In Docker's grammar `foo_bar.com/x` is a path, because a host cannot contain an underscore; but container runtimes contact that host.
  const isPath = hasHost && first.includes('_') && PATH_COMPONENT.test(first);
  const hostProblem = isPath ? checkUrlHost(first) : checkHost(registry);
  if (hostProblem !== undefined) throw refuse(hostProblem);

  const rest = hasHost ? path.slice(slash + 1) : path;
  if (rest === '') throw refuse('the repository is missing');
  // Only the bare digits: with a tag or a digest they are an ordinary name.
  if (/^[0-9a-f]{64}$/.test(text)) {
    throw refuse(
      '64 hexadecimal digits are the ID of an image, and registries do not know IDs; write the name of its repository',
    );
  }
  if (rest !== rest.toLowerCase()) throw refuse('repository names are lower case');
  const repository = registry === HUB && !rest.includes('/') ? `library/${rest}` : rest;
  if ((isPath ? path : repository).length > MAX_REPOSITORY)
    throw refuse(`the repository is longer than ${MAX_REPOSITORY} characters`);
  if (!REPOSITORY.test(repository)) {
    const wrong = repository.split('/').find((component) => !PATH_COMPONENT.test(component)) ?? '';
    throw refuse(
      wrong === ''
        ? 'a component of the repository is empty'
        : `"${printableAscii(wrong, 60)}" is not a valid component of a repository: letters and digits, separated by ".", "_", "__" or dashes`,
    );
  }

  const name = `${registry}/${repository}`;
  const effectiveTag = tag ?? (digest === undefined ? 'latest' : undefined);
  return {
    registry,
    repository,
    ...(effectiveTag === undefined ? {} : { tag: effectiveTag }),
    ...(digest === undefined ? {} : { digest }),
    name,
    canonical: `${name}${effectiveTag === undefined ? '' : `:${effectiveTag}`}${digest === undefined ? '' : `@${digest}`}`,
    endpoint: registry === HUB ? HUB_ENDPOINT : registry,
  };
}

/** Returns the canonical name of a digest in the repository of an image. */
export function digestName({ name }: Pick<Reference, 'name'>, digest: string): string {
  return `${name}@${digest}`;
}

/** The same as {@link parseReference}, but returns the error for an invalid name. */
export function tryReference(text: string): Reference | ImageError {
  try {
    return parseReference(text);
  } catch (error) {
    if (error instanceof ImageError) return error;
    throw error;
  }
}

/** The most bytes of the names that are remembered: enough for about 10,000 ordinary ones. */
const MOST_READ = 8 * 1024 * 1024;
/** Bytes of what was read from a name, without the name itself, whose parts are there several times. */
const READ = 320;

/** Names that were read lately: each reconciliation of a pod asks for its images again. */
const READ_LATELY = createLru<Reference | ImageError>(MOST_READ, (_, text) => READ + 5 * text.length);

/** The same as {@link tryReference}, but remembers names. */
export function readReference(text: string): Reference | ImageError {
  const known = READ_LATELY.get(text);
  if (known !== undefined) return known;
  const parsed = tryReference(text);
  // Longer texts are refused at once and are not worth the memory.
  if (text.length <= MAX_TEXT) READ_LATELY.set(text, parsed);
  return parsed;
}

/** Returns the canonical form of an image's name, or the name itself if it is invalid: the key under which its lookup settles. */
export function canonicalName(text: string): string {
  const parsed = tryReference(text);
  return parsed instanceof ImageError ? text : parsed.canonical;
}

function checkHost(host: string): string | undefined {
  const bracketed = /^\[([0-9a-f:.]{2,45})\](?::(\d{1,5}))?$/.exec(host);
  const colon = host.lastIndexOf(':');
  const port = bracketed ? bracketed[2] : colon < 0 ? undefined : host.slice(colon + 1);
  if (port !== undefined && (!/^\d{1,5}$/.test(port) || Number(port) < 1 || Number(port) > 65535)) {
    return 'the port must be a number from 1 to 65535';
  }
  if (bracketed) {
    return URL.canParse(`http://[${bracketed[1] ?? ''}]/`) ? undefined : 'the host is not a valid IPv6 address';
  }
  if (host.length > MAX_HOST) return `the host is longer than ${MAX_HOST} characters`;
  return HOST.test(colon < 0 ? host : host.slice(0, colon)) ? checkUrlHost(host) : 'the host is not valid';
}

/** A URL reads a host that ends in a number as an address, and refuses an invalid one: `registry.0`. */
function checkUrlHost(host: string): string | undefined {
  return URL.canParse(`https://${host}/`) ? undefined : 'the host is not valid';
}
/** The algorithms of container runtimes (go-digest), with their lengths in hexadecimal digits. */
const HEX_LENGTH: ReadonlyMap<string, number> = new Map([
  ['sha256', 64],
  ['sha384', 96],
  ['sha512', 128],
]);

/** Whether a string is a digest that the program can verify: `sha256:`, `sha384:` or `sha512:` and lower-case hex of the right length. */
export function isDigest(text: string): boolean {
  const colon = text.indexOf(':');
  const length = colon < 0 ? undefined : HEX_LENGTH.get(text.slice(0, colon));
  return length !== undefined && text.length === colon + 1 + length && /^[0-9a-f]+$/.test(text.slice(colon + 1));
}

/** Returns the sha256 digest of a body, `sha256:<hex>`. */
export function digestOf(body: Uint8Array): string {
  return `sha256:${createHash('sha256').update(body).digest('hex')}`;
}

/** Whether a body hashes to a digest. False if the text is not a digest. */
export function matchesDigest(body: Uint8Array, digest: string): boolean {
  if (!isDigest(digest)) return false;
  const colon = digest.indexOf(':');
  const actual = createHash(digest.slice(0, colon)).update(body).digest();
  return timingSafeEqual(actual, Buffer.from(digest.slice(colon + 1), 'hex'));
}
