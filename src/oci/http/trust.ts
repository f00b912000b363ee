import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import tls from 'node:tls';

/** By whom a host was named, and so which of its addresses are allowed. */
export type AddressPolicy =
  /** A registry that the configuration names as insecure: loopback is allowed too. */
  | 'configured'
  /** Any other registry, and any host to which a registry redirects. */
  | 'registry'
  /** A token service that a registry on a public address named: only public addresses are allowed. */
  | 'public';

/** A client certificate and its key, PEM. */
export type ClientCertificate = { readonly certificate: string; readonly key: string };

/**
 * How an endpoint and the controller prove their identity to each other. A pool of connections belongs to one trust:
 * two trusts with the same `id` are the same.
 */
export type Trust = {
  /** Changes with every other field. */
  readonly id: string;
  /** Whether the endpoint's certificate is verified. */
  readonly verify: boolean;
  /** Whether plain http is tried if the endpoint does not speak TLS; only for `registries.insecure`. */
  readonly plain: boolean;
  /** PEM, in addition to the built-in authorities and to `registries.caFile`. */
  readonly authorities: readonly string[];
  readonly clients: readonly ClientCertificate[];
  /** The `hosts.toml` with the settings; absent for settings from the configuration's own keys. */
  readonly file?: string;
};

/** The trust of the hosts in `registries.insecure`. */
export const insecureTrust: Trust = { id: 'insecure', verify: false, plain: true, authorities: [], clients: [] };

/**
 * Returns the part of a trust that applies to hosts to which the endpoint leads: its authorities, as with containerd,
 * but no client certificates and no permission to skip verification. Undefined if nothing is left.
 */
export function forStrangers({ id, authorities }: Trust): Trust | undefined {
  if (authorities.length === 0) return undefined;
  return { id: `${id} for strangers`, verify: true, plain: false, authorities, clients: [] };
}

/**
 * Splits a PEM bundle into its certificates; text and other blocks between them are skipped, as in the bundles of distributions.
 *
 * @throws Error for a bundle without a certificate, and for a certificate that cannot be parsed, by its position
 */
export function readAuthorities(text: string): string[] {
  const blocks = text
    .split(/(?=-----BEGIN CERTIFICATE-----)/)
    .filter((each) => each.startsWith('-----BEGIN CERTIFICATE-----'));
  if (blocks.length === 0) throw new Error('contains no PEM certificate');
  return blocks.map((block, index) => {
    const end = '-----END CERTIFICATE-----';
    const at = block.indexOf(end);
    try {
      if (at < 0) throw new Error('cut off');
      return new X509Certificate(block.slice(0, at + end.length)).toString();
    } catch {
      throw new Error(`certificate ${index + 1} of ${blocks.length} cannot be read`);
    }
  });
}

/**
 * Creates the `ca` option for TLS. It replaces the built-in authorities, so they are included; undefined if nothing else is wanted.
 *
 * @param configured PEM of `registries.caFile`
 * @param extraFile `NODE_EXTRA_CA_CERTS`, which a `ca` option replaces as well
 */
export function createAuthorities(
  configured: () => readonly string[],
  extraFile: string | undefined,
): (trust?: Trust) => string[] | undefined {
  let builtIn: readonly string[] | undefined;
  return (trust) => {
    const wanted = [...configured(), ...(trust?.authorities ?? [])];
    if (wanted.length === 0) return undefined;
    builtIn ??= defaultAuthorities(extraFile);
    return [...builtIn, ...wanted];
  };
}

function defaultAuthorities(extraFile = ''): string[] {
  // Since Node.js 22.15: the certificates that TLS itself would use, including the system's store and the extra file if they are enabled.
  const get: unknown = Reflect.get(tls, 'getCACertificates');
  const found: unknown = typeof get === 'function' ? get('default') : undefined;
  if (Array.isArray(found)) return found.filter((each) => typeof each === 'string');
  try {
    return [...tls.rootCertificates, ...(extraFile === '' ? [] : readAuthorities(readFileSync(extraFile, 'utf8')))];
  } catch {
    // Node.js itself warns about a file that cannot be read, and goes on without it.
    return [...tls.rootCertificates];
  }
}
