import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { isObject, type JsonObject, objectAt, stringAt, stringsAt } from '../kit/json.ts';
import type { Operation } from '../kit/json-patch.ts';
import { WEBHOOK_SERVICE } from '../names.ts';
import { readAuthorities } from '../oci/http/trust.ts';
import type { ServingNames } from './certificates/issue.ts';

/** cert-manager's CA injector owns `caBundle` if an annotation begins with this. */
const INJECTOR = 'cert-manager.io/inject-';
/** Scheme, host and port of a URL. */
const ORIGIN = /^(https:\/\/[^/?#]+)/i;
const DNS_NAME = /^[a-z0-9]([a-z0-9_.-]*[a-z0-9])?$/;

/** The values that every webhook of a configuration should have; undefined leaves a value as it is. */
export type WantedConfiguration = {
  /** PEM bundle of the authorities that callers should trust. */
  readonly ca?: string | undefined;
  /** The path to which callers send reviews. */
  readonly path?: string | undefined;
};

/**
 * Returns the patch that gives every webhook of a MutatingWebhookConfiguration the wanted values; empty if all have them. A bundle
 * that contains the wanted one and more is not changed, nor are the host and port of a URL. The patch fails on another
 * configuration of the same name, and if the order of the webhooks has changed.
 */
export function configurationPatch(configuration: JsonObject, wanted: WantedConfiguration): Operation[] {
  const operations = webhooksOf(configuration).flatMap(({ webhook, index }): Operation[] => {
    if (!isObject(webhook.clientConfig)) return [];
    const at = `/webhooks/${index}/clientConfig`;
    const changes = [...pathChange(webhook.clientConfig, at, wanted.path), ...bundleChange(webhook, at, wanted.ca)];
    return changes.length === 0
      ? []
      : [{ op: 'test', path: `/webhooks/${index}/name`, value: webhook.name }, ...changes];
  });
  if (operations.length === 0) return [];
  return [{ op: 'test', path: '/metadata/uid', value: objectAt(configuration, 'metadata').uid }, ...operations];
}

function bundleChange(webhook: JsonObject, at: string, ca: string | undefined): Operation[] {
  if (ca === undefined) return [];
  const present = carried(webhook);
  if (fingerprints(ca).every((fingerprint) => present.has(fingerprint))) return [];
  return [{ op: 'add', path: `${at}/caBundle`, value: Buffer.from(ca).toString('base64') }];
}

function pathChange(client: JsonObject, at: string, path: string | undefined): Operation[] {
  if (path === undefined || pathOf(client) === path) return [];
  const [, origin] = ORIGIN.exec(stringAt(client, 'url') ?? '') ?? [];
  if (origin !== undefined) return [{ op: 'add', path: `${at}/url`, value: origin + path }];
  return isObject(client.service) ? [{ op: 'add', path: `${at}/service/path`, value: path }] : [];
}

/** Returns the paths that the API server calls for the webhooks of a configuration; `/` for one that names no path. */
export function calledPaths(configuration: JsonObject | undefined): string[] {
  const clients = configuration === undefined ? [] : webhooksOf(configuration).map(({ webhook }) => webhook);
  return [...new Set(clients.map((webhook) => pathOf(objectAt(webhook, 'clientConfig'))))];
}

function pathOf(client: JsonObject): string {
  const url = stringAt(client, 'url');
  if (url !== undefined) return URL.canParse(url) ? new URL(url).pathname : '/';
  return stringAt(objectAt(client, 'service'), 'path') || '/';
}

/** Whether cert-manager is asked to fill in the bundles of a configuration. */
export function isInjected(configuration: JsonObject): boolean {
  const annotations = stringsAt(objectAt(configuration, 'metadata'), 'annotations');
  return Object.keys(annotations).some((name) => name.startsWith(INJECTOR));
}

/** Whether every webhook's bundle contains an authority (PEM). True without a configuration, because then nobody calls. */
export function trusts(configuration: JsonObject | undefined, authority: string): boolean {
  return configuration === undefined || configurationPatch(configuration, { ca: authority }).length === 0;
}

/** Whether any webhook of a configuration has a bundle with an authority. */
export function trustsAny(configuration: JsonObject | undefined): boolean {
  return configuration !== undefined && webhooksOf(configuration).some(({ webhook }) => carried(webhook).size > 0);
}

/** Returns the first name by which the API server calls a webhook and that a certificate (PEM) is not for; undefined without one. */
export function lackingName(configuration: JsonObject, certificate: string): string | undefined {
  const serving = new X509Certificate(certificate);
  // Of a Service, the API server verifies only the first name. Like the API server, this ignores the subject.
  const called = webhooksOf(configuration).flatMap(({ webhook }) => hostsOf(webhook).slice(0, 1));
  return called.find((name) => !(isIP(name) ? serving.checkIP(name) : serving.checkHost(name, { subject: 'never' })));
}

/**
 * Returns the names by which the API server calls the webhook, from a MutatingWebhookConfiguration (default: those of archaware's
 * Service in its own namespace), and the names of this machine.
 */
export function servingNames(configuration: JsonObject | undefined, namespace: string): ServingNames {
  const called =
    configuration === undefined ? [] : webhooksOf(configuration).flatMap(({ webhook }) => hostsOf(webhook));
  const hosts = called.length > 0 ? called : serviceHosts(WEBHOOK_SERVICE, namespace);
  const names = [...new Set([...hosts, 'localhost', '127.0.0.1', '::1'])];
  return {
    // A name that is not valid in a certificate would be reported as missing forever.
    dns: names.filter((name) => isIP(name) === 0 && DNS_NAME.test(name)),
    ips: names.filter((name) => isIP(name) !== 0),
  };
}

function hostsOf(webhook: JsonObject): string[] {
  const client = objectAt(webhook, 'clientConfig');
  const url = stringAt(client, 'url');
  if (url !== undefined) return URL.canParse(url) ? [new URL(url).hostname.replace(/^\[(.*)\]$/, '$1')] : [];
  const service = objectAt(client, 'service');
  const [name, namespace] = [stringAt(service, 'name'), stringAt(service, 'namespace')];
  return name === undefined || namespace === undefined ? [] : serviceHosts(name, namespace);
}

function serviceHosts(name: string, namespace: string): string[] {
  return [`${name}.${namespace}.svc`, `${name}.${namespace}.svc.cluster.local`, `${name}.${namespace}`];
}

function webhooksOf(configuration: JsonObject): { webhook: JsonObject; index: number }[] {
  const list = configuration.webhooks;
  if (!Array.isArray(list)) return [];
  return list.flatMap((webhook: unknown, index) => (isObject(webhook) ? [{ webhook, index }] : []));
}

/** Returns the fingerprints of the certificates in a webhook's bundle; empty if the bundle is absent or invalid. */
function carried(webhook: JsonObject): ReadonlySet<string> {
  const bundle = stringAt(objectAt(webhook, 'clientConfig'), 'caBundle') ?? '';
  try {
    return new Set(fingerprints(Buffer.from(bundle, 'base64').toString()));
  } catch {
    return new Set();
  }
}

function fingerprints(bundle: string): string[] {
  return readAuthorities(bundle).map((pem) => new X509Certificate(pem).fingerprint256);
}
