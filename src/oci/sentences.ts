import { STATUS_CODES } from 'node:http';
import { isIP } from 'node:net';
import { printableAscii } from '../kit/printable.ts';
import { ARCHITECTURES_ANNOTATION } from '../names.ts';
import type { ImageError, ImageErrorCode, LoginSource, RegistryCode } from './errors.ts';
import type { Trust } from './http/trust.ts';

/** What messages about a failed request say. Nothing of it is text from an answer, but names of hosts. */

/** Codes of a TLS handshake with a server that does not speak TLS at all; others are about a version or a cipher. */
const NO_TLS = /^(EPROTO|ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|UNKNOWN_PROTOCOL))$/;
/** Codes of a certificate that cannot be verified. */
export const UNVERIFIED = /CERT|ISSUER|SIGNATURE|ALTNAME/;

/** What was asked: `registry` is the name of the endpoint in messages. */
type AskedUrl = { readonly registry: string; readonly url: URL };
type Connecting = AskedUrl & { readonly trust?: Trust | undefined; readonly ledBy?: string };

/** `r.example.com`, or `r.example.com leads to auth.example.com, which`. */
export function subjectOf({ registry, url }: AskedUrl): string {
  const [own = ''] = registry.split('/', 1);
  const isOwn = [url.host, `${url.host}:${url.protocol === 'https:' ? 443 : 80}`].includes(own.toLowerCase());
  return isOwn ? registry : `${registry} leads to ${printableAscii(url.host, 100)}, which`;
}

/** What an answer other than 2xx says, and what it means. `what`: `the manifest`. */
export function statusText(
  asked: AskedUrl,
  status: number,
  meaning: ImageErrorCode,
  what: string,
  code: RegistryCode | undefined,
): string {
  const said = code === undefined ? '' : ` (${code})`;
  const answer = `${status} ${STATUS_CODES[status] ?? ''}`.trim();
  return `${subjectOf(asked)} answers ${answer}${said} for ${what}: ${MEANINGS[meaning]}`;
}

const MEANINGS: Readonly<Partial<Record<ImageErrorCode, string>>> = {
  denied: 'a pull secret that may read it is needed, or it does not exist',
  'not-found': 'it does not exist, or may be read only with a pull secret',
  timeout: 'it took too long',
  'rate-limited': 'the limit of requests is reached; credentials may raise it',
  unavailable: 'it will be asked again',
  unsupported: 'this is not a registry that archaware supports',
};

/** `pull secret "expired"`. */
export function loginText({ kind, name }: LoginSource): string {
  return `${kind} "${printableAscii(name, 100)}"`;
}

/** `r.example.com refused the login of pull secret "expired" (DENIED), and an anonymous request (401)`. */
export function refusedText(registry: string, refusals: readonly ImageError[]): string {
  const each = refusals.map(({ login, registryCode, status }) => {
    const who = login === undefined ? 'an anonymous request' : `the login of ${loginText(login)}`;
    // A registry says to an anonymous request that it needs a login, whatever the reason.
    const why = (login === undefined ? undefined : registryCode) ?? status;
    return why === undefined ? who : `${who} (${why})`;
  });
  return `${registry} refused ${[...new Set(each)].join(', and ')}`;
}

/** `r.example.com answers 502 for its project proxy`: why nothing was asked. `part`: what fails of the host, if not all of it. */
export function unaskedText(
  { message, status, byCredential }: Pick<ImageError, 'message' | 'status' | 'byCredential'>,
  host: string,
  part: string,
): string {
  const answers = status === undefined ? message : `${host} answers ${status}${byCredential ? ' to logins' : ''}`;
  return part === '' ? answers : `${answers} for its ${part}`;
}

/** What to do about a host with an address that is refused. Never the address: it would reveal the cluster's network to a pod's author. */
export function addressText(host: string, reason: string): string {
  if (reason === 'loopback' && /^localhost(:|$)/.test(host)) {
    return (
      `${host} is the localhost of each node, which the controller cannot reach; set an address that it can reach with ` +
      `registries.mirrors: {"${host}": {endpoints: ["registry.example.com:5000"]}}, or the architectures of its images with ` +
      `images.overrides: [{pattern: "${host}/*", architectures: [amd64]}], or, if the registry runs on this host, ` +
      `registries.insecure: ["${host}"]`
    );
  }
  const hints: Readonly<Record<string, string>> = {
    loopback: `registries.insecure: ["${host}"] allows it`,
    denied: 'registries.addresses.deny names it',
    own: `it is the API server; registries.insecure: ["${host}"] allows a registry there`,
    private: 'a public registry names a private address',
  };
  const hint = hints[reason] ?? 'registries.addresses.allow can allow it, except for metadata services';
  return `${host} has an address that is not allowed (${reason}): ${hint}`;
}

/** `failure`: what happened over https, if that was tried. */
export function unencryptedText(host: string, failure: ImageError | undefined): string {
  const tried = failure === undefined ? '' : `, and over https: ${failure.message}`;
  return (
    `${host} names a token service that is not https${tried}; its external URL should be https (registries.insecure: ["${host}"] ` +
    'would send logins unencrypted, and skip the verification)'
  );
}

/** `provider`: the name of the kubelet's plug-in. */
export function pulledByPodsText(provider: string): string {
  return (
    `kubelets pull it as the pod's service account (credential provider "${printableAscii(provider, 60)}" with tokenAttributes), and ` +
    `archaware has no such token: give it a pull secret or credentials.directory, or state the architectures in images.overrides or ` +
    `in the annotation ${ARCHITECTURES_ANNOTATION}`
  );
}

/** Why an index says nothing. `skipped`: its entries. */
export function nothingRunsText(skipped: readonly { readonly reason: string }[]): string {
  const [first] = skipped;
  if (first === undefined) return 'the index is empty';
  return `the index names no image that can run: ${skipped.length} left out, the first is ${first.reason}`;
}

/** The most platforms that a message names. */
const MAX_NAMED = 10;

/** `missing`: the platforms of an index whose manifests are not there. */
export function nothingHeldText(label: string, missing: readonly string[]): string {
  const platforms = [...new Set(missing)];
  const more = platforms.length > MAX_NAMED ? ` and ${platforms.length - MAX_NAMED} more` : '';
  return `${label} has none of the platforms of the index (${platforms.slice(0, MAX_NAMED).join(', ')}${more}): copy one of them there`;
}

/** What the code of a connection that failed means; for a code that means nothing here, the code itself. */
export function connectionText(code: string, request: Connecting): string {
  const subject = subjectOf(request);
  if (code === 'UND_ERR_CONNECT_TIMEOUT' || code === 'ETIMEDOUT') {
    return `${subject} could not be reached: the connection timed out`;
  }
  if (code === 'UND_ERR_BODY_TIMEOUT') return `${subject} stopped in the middle of its answer`;
  if (code === 'ETIMEOUT') return `${subject} could not be reached: the DNS server did not answer`;
  const isName = isIP(request.url.hostname.replace(/^\[|\]$/g, '')) === 0;
  if (isName && (code === 'ENOTFOUND' || code === 'EAI_AGAIN')) return `${subject} was not found in the DNS (${code})`;
  const problem = tlsText(code, request);
  if (problem === undefined) return `${subject} could not be reached (${code || 'connection failed'})`;
  // Most of these name the host.
  return `${problem.includes(printableAscii(request.url.host, 100)) ? request.registry : subject} ${problem}`;
}

/** Returns what the code of OpenSSL or of Node.js means for TLS; undefined if it is not about TLS. */
function tlsText(code: string, request: Connecting): string | undefined {
  const { protocol, host } = request.url;
  // In TLS 1.3 a client certificate is refused after the handshake, and undici reports only that the connection was closed.
  if (/^(UND_ERR_SOCKET|ECONNRESET|EPIPE)$/.test(code) && protocol === 'https:') {
    return `closed the connection early (${code}); registries that require a client certificate do this too`;
  }
  if (/^ERR_OSSL_/.test(code)) return `could not be reached: its client certificate or key cannot be used (${code})`;
  const [, ...alert] = code.startsWith('ERR_SSL_') ? code.split('ALERT_') : [];
  if (alert.some((each) => /CERT|UNKNOWN_CA|HANDSHAKE_FAILURE/.test(each))) {
    return `could not be reached: ${host} requires a client certificate, or refused the configured one (${code})`;
  }
  const key = keyFor(request);
  if (NO_TLS.test(code) && request.trust?.plain !== true) {
    return `could not be reached: ${host} does not speak TLS (${code}); if it speaks plain http, ${key.plain} allows it`;
  }
  if (!UNVERIFIED.test(code)) return undefined;
  const hint = /ISSUER|SELF_SIGNED|LEAF_SIGNATURE|UNTRUSTED/.test(code) ? `${key.authority}, ` : '';
  return `has a certificate at ${host} that cannot be verified (${code}); ${hint}${key.unverified} skips the verification`;
}

/**
 * Returns, for error messages, the settings that would accept a host's plain http, its certificate or its authority.
 * For a trust from a `hosts.toml`, they are in that file.
 */
function keyFor({ url, trust, ledBy }: Connecting): Readonly<Record<'plain' | 'unverified' | 'authority', string>> {
  const host = printableAscii(url.host, 100);
  if (trust?.file !== undefined) {
    return {
      plain: `"http://${host}" in ${trust.file}`,
      unverified: `skip_verify = true in ${trust.file}`,
      authority: `ca in ${trust.file} names the authority that signed it`,
    };
  }
  const insecure = `registries.insecure: ["${ledBy === undefined ? host : `${printableAscii(ledBy, 100)}", "${host}`}"]`;
  return { plain: insecure, unverified: insecure, authority: 'registries.caFile adds the authority that signed it' };
}
