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
};

/**
 * What of a trust holds for hosts that the endpoint leads to: its authorities, as with containerd, but neither client
 * certificates nor a certificate that nobody verifies. Undefined where nothing is left of it.
 */
export function forStrangers({ id, authorities }: Trust): Trust | undefined {
  if (authorities.length === 0) return undefined;
  return { id: `${id} for strangers`, verify: true, plain: false, authorities, clients: [] };
}
