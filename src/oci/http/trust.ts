import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import tls from 'node:tls';

/** A client certificate and its key, PEM. */
export type ClientCertificate = { readonly certificate: string; readonly key: string };

/**
 * How an endpoint proves who it is, and we to it. A pool of connections belongs to one trust: two trusts with the same
 * `id` are the same.
 */
export type Trust = {
  /** Changes with any part of it. */
  readonly id: string;
  /** Whether its certificate is verified. */
  readonly verify: boolean;
  /** Whether plain http is tried where https finds no TLS; for `registries.insecure` only. */
  readonly plain: boolean;
  /** PEM, in addition to the built-in authorities and to `registries.caFile`. */
  readonly authorities: readonly string[];
  readonly clients: readonly ClientCertificate[];
  /** The `hosts.toml` that may say otherwise; absent for what the configuration's own keys say. */
  readonly file?: string;
};

/** What `registries.insecure` says of a host. */
export const insecureTrust: Trust = { id: 'insecure', verify: false, plain: true, authorities: [], clients: [] };

/**
 * What of a trust holds for hosts that the endpoint leads to: its authorities, as with containerd, but neither client
 * certificates nor a certificate that nobody verifies. Undefined where nothing is left of it.
 */
export function forStrangers({ id, authorities }: Trust): Trust | undefined {
  if (authorities.length === 0) return undefined;
  return { id: `${id} for strangers`, verify: true, plain: false, authorities, clients: [] };
}

/**
 * Splits a PEM bundle into its certificates; text and other blocks between them are passed over, as in the bundles of
 * distributions.
 *
 * @throws Error for a bundle without a certificate, and for one that cannot be read, by its place
 */
export function readAuthorities(text: string): string[] {
  const blocks = text
    .split(/(?=-----BEGIN CERTIFICATE-----)/)
    .filter((each) => each.startsWith('-----BEGIN CERTIFICATE-----'));
  if (blocks.length === 0) throw new Error('holds no PEM certificate');
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
 * What TLS takes as `ca`. That replaces the built-in authorities, so they are in it; undefined where they are all that
 * is wanted.
 *
 * @param configured PEM of `registries.caFile`
 * @param extraFile `NODE_EXTRA_CA_CERTS`, which a `ca` replaces as well
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

function defaultAuthorities(extraFile: string | undefined): string[] {
  // Since Node.js 22.15: what TLS itself would use, the system's store and the extra file included where asked for.
  const get: unknown = Reflect.get(tls, 'getCACertificates');
  const found: unknown = typeof get === 'function' ? get('default') : undefined;
  if (Array.isArray(found)) return found.filter((each) => typeof each === 'string');
  return [...tls.rootCertificates, ...extraAuthorities(extraFile)];
}

/** None where the file cannot be read: Node.js warns of that itself, and goes on without it. */
function extraAuthorities(file: string | undefined): string[] {
  if (file === undefined || file === '') return [];
  try {
    return readAuthorities(readFileSync(file, 'utf8'));
  } catch {
    return [];
  }
}
