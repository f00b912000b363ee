import { existsSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { RequestOptions } from 'node:https';
import { homedir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { KubeConfig } from '@kubernetes/client-node/dist/config.js';
import type { Cluster } from '@kubernetes/client-node/dist/config_types.js';
import { parse } from 'yaml';
import { messageOf } from '../kit/errors.ts';
import { isObject, listAt, objectAt, stringAt } from '../kit/json.ts';
import { createProxySelector } from '../kit/network/forward-proxy.ts';
import { parseUrl } from '../kit/network/url.ts';

/** A kubeconfig that cannot be used; the message names the file and says what to do. */
export class KubeconfigError extends Error {
  override readonly name = 'KubeconfigError';
}

/** TLS settings of a connection, in the form of `node:tls`. */
export type TlsOptions = {
  readonly ca?: string | Buffer | Buffer[];
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
  readonly servername?: string;
  readonly rejectUnauthorized?: boolean;
};

/** The address of the API server and how to log in there. */
export type ClusterAccess = {
  /** scheme://host[:port], with a path prefix if the kubeconfig has one. */
  readonly server: string;
  /** Whether the process runs in a pod of that cluster and uses its service account. */
  readonly inCluster: boolean;
  /** The namespace of the context or of the service account, if any. */
  readonly namespace: string | undefined;
  /** The proxy before it, if there is one; `token`: the value of `Proxy-Authorization`. */
  readonly proxy?: { readonly uri: string; readonly token?: string };
  /**
   * Returns the settings for a new connection: the files that the kubeconfig or the service account names may have been
   * replaced since. Files that cannot be read at the moment count as unchanged.
   */
  readonly tls: () => TlsOptions;
  /** Returns the headers that log in; may read a token file or run an exec plug-in. */
  readonly authenticate: () => Promise<Readonly<Record<string, string>>>;
};

/** The name that `KubeConfig.loadFromCluster` gives its context. */
const IN_CLUSTER_CONTEXT = 'inClusterContext';
const IN_CLUSTER_TOKEN = '/var/run/secrets/kubernetes.io/serviceaccount/token';

/**
 * Finds the cluster. Uses the file that `options` names, or the service account of the pod that the process runs in, or `KUBECONFIG` and
 * `~/.kube/config` as kubectl does. Throws {@link KubeconfigError} if there is none or it cannot be used.
 */
export function findCluster(options: { kubeconfig?: string | undefined; context?: string | undefined }): ClusterAccess {
  const config = load(options.kubeconfig);
  if (options.context !== undefined) {
    const names = config.getContexts().map(({ name }) => name);
    if (!names.includes(options.context)) {
      throw new KubeconfigError(
        `--context: got "${options.context}", expected one of ${names.join(', ') || '(the file has none)'}`,
      );
    }
    config.setCurrentContext(options.context);
  }
  const cluster = config.getCurrentCluster();
  if (!cluster) {
    // KubeConfig gives undefined, against its type, for a file that names no current context.
    const current: unknown = config.getCurrentContext();
    throw new KubeconfigError(
      current
        ? `kubeconfig: the current context "${current}" names no cluster of the file; is the file complete? --context chooses another`
        : 'kubeconfig: the file has no current-context; choose a context with --context',
    );
  }
  if (!URL.canParse(cluster.server) || !/^https?:/.test(cluster.server)) {
    throw new KubeconfigError(`kubeconfig: server "${cluster.server}" is not an http or https address`);
  }
  const inCluster = config.getCurrentContext() === IN_CLUSTER_CONTEXT;
  const proxy = inCluster ? undefined : proxyOf(cluster);
  // KubeConfig only logs in here. It fails with a proxy, and, if there is a certificate to verify, with plain http, as `kubectl proxy`
  // serves it.
  const other = { proxyUrl: '', skipTLSVerify: cluster.server.startsWith('http:') || cluster.skipTLSVerify };
  config.clusters = config.clusters.map((entry) => (entry === cluster ? { ...entry, ...other } : entry));
  const tokenFile = inCluster ? undefined : tokenFileOf(filesOf(options.kubeconfig), config.getCurrentUser()?.name);
  return {
    server: cluster.server.replace(/(?<!\/)\/+$/, ''),
    inCluster,
    namespace: config.getContextObject(config.getCurrentContext())?.namespace,
    ...(proxy === undefined ? {} : { proxy }),
    tls: rereading(config),
    authenticate: () => authenticate(config, tokenFile),
  };
}

/** Returns the names of the contexts in the kubeconfig. Throws as {@link findCluster}. */
export function contextNames(kubeconfig: string | undefined): string[] {
  return load(kubeconfig)
    .getContexts()
    .map(({ name }) => name);
}

/** Reads the files that exist, as kubectl does: the first one counts that has an entry of a name, or a current context. */
function load(path: string | undefined): KubeConfig {
  const config = new KubeConfig();
  if (path !== undefined && !existsSync(path)) throw new KubeconfigError(`--kubeconfig: ${path} does not exist`);
  if (path === undefined && process.env.KUBERNETES_SERVICE_HOST && existsSync(IN_CLUSTER_TOKEN)) {
    config.loadFromCluster();
    return config;
  }
  const files = filesOf(path);
  const read = files.filter((file) => existsSync(file)).map(readOne);
  if (read.length === 0) {
    throw new KubeconfigError(
      'no kubeconfig found: give one with --kubeconfig FILE or KUBECONFIG, or run in a pod with a service account ' +
        `(${files.join(', ')} does not exist)`,
    );
  }
  config.loadFromOptions({
    clusters: firstOfEachName(read.flatMap(({ clusters }) => clusters)),
    users: firstOfEachName(read.flatMap(({ users }) => users)),
    contexts: firstOfEachName(read.flatMap(({ contexts }) => contexts)),
    currentContext: read.find(({ currentContext }) => currentContext)?.currentContext,
  });
  return config;
}

/** As kubectl, uses the proxy of the kubeconfig, else that of the environment. In a pod that is the one for registries. */
function proxyOf({ name, server, proxyUrl }: Cluster): ClusterAccess['proxy'] {
  // The text may hold a password.
  if (proxyUrl && !/^(https?|socks5):/.test(parseUrl(proxyUrl)?.protocol ?? '')) {
    throw new KubeconfigError(`kubeconfig: proxy-url of cluster "${name}" is not an http, https or socks5 address`);
  }
  if (proxyUrl) return { uri: proxyUrl };
  try {
    const found = createProxySelector(process.env)?.(new URL(server));
    return found && { uri: found.origin, ...(found.authorization && { token: found.authorization }) };
  } catch (error) {
    throw new KubeconfigError(messageOf(error));
  }
}

function firstOfEachName<T extends { readonly name: string }>(entries: readonly T[]): T[] {
  return entries.filter(({ name }, index) => entries.findIndex((each) => each.name === name) === index);
}

/** Returns the files that kubectl reads. */
function filesOf(path: string | undefined): string[] {
  if (path !== undefined) return [path];
  return process.env.KUBECONFIG ? process.env.KUBECONFIG.split(delimiter) : [join(homedir(), '.kube', 'config')];
}

/** Returns the `tokenFile` of a user, which KubeConfig does not read. As with kubectl, the first file that has the user counts. */
function tokenFileOf(files: readonly string[], name: string | undefined): string | undefined {
  for (const file of files.filter((each) => existsSync(each))) {
    const config: unknown = parse(readFileSync(file, 'utf8'));
    const users = (isObject(config) && listAt(config, 'users')) || [];
    const user = users.find((each) => isObject(each) && stringAt(each, 'name') === name);
    const tokenFile = stringAt(objectAt(user ?? {}, 'user'), 'tokenFile');
    if (user !== undefined) return tokenFile && resolve(dirname(file), tokenFile);
  }
  return undefined;
}

function readOne(path: string): KubeConfig {
  const config = new KubeConfig();
  try {
    config.loadFromFile(path);
    return config;
  } catch (error) {
    // KubeConfig throws a TypeError for an empty file.
    const message = error instanceof TypeError ? 'it contains no clusters' : messageOf(error).split('\n')[0];
    throw new KubeconfigError(`kubeconfig ${path} cannot be read: ${message}`);
  }
}

function readTls(config: KubeConfig): TlsOptions {
  try {
    const cluster = config.getCurrentCluster();
    const user = config.getCurrentUser();
    const ca = material(cluster?.caFile, cluster?.caData);
    const cert = material(user?.certFile, user?.certData);
    const key = material(user?.keyFile, user?.keyData);
    return {
      ...(ca ? { ca } : {}),
      ...(cert ? { cert } : {}),
      ...(key ? { key } : {}),
      ...(cluster?.tlsServerName ? { servername: cluster.tlsServerName } : {}),
      ...(cluster?.skipTLSVerify ? { rejectUnauthorized: false } : {}),
    };
  } catch (error) {
    throw new KubeconfigError(`kubeconfig: certificate or key cannot be read: ${messageOf(error)}`);
  }
}

/** Reads the files of `config` now and again at each call. */
function rereading(config: KubeConfig): () => TlsOptions {
  let last = readTls(config);
  return () => {
    try {
      last = readTls(config);
    } catch {
      // A file that is being replaced; the next connection reads it again.
    }
    return last;
  };
}

function material(file: string | undefined, base64: string | undefined): Buffer | undefined {
  if (base64) return Buffer.from(base64, 'base64');
  return file ? readFileSync(file) : undefined;
}

/** `tokenFile`: that of the kubeconfig's user, which wins over its token. */
async function authenticate(config: KubeConfig, tokenFile: string | undefined): Promise<Record<string, string>> {
  try {
    const file: unknown = tokenFile ?? config.getCurrentUser()?.authProvider?.config?.tokenFile;
    // KubeConfig keeps a file's token for a minute of the wall clock: after a 401 it would return the refused token
    // again, and for as long as a clock was set back.
    if (typeof file === 'string') {
      const token = (await readFile(file, 'utf8')).trim();
      // Without a token it would be the login of nobody, which the server answers with 403 and not with 401.
      if (token === '') throw new Error(`${file} is empty`);
      return { authorization: `Bearer ${token}` };
    }
    const options: RequestOptions = {};
    await config.applyToHTTPSOptions(options);
    const headers: Record<string, string> = {};
    for (const [name, value] of Object.entries(options.headers ?? {})) {
      if (typeof value === 'string') headers[name.toLowerCase()] = value;
    }
    if (options.auth) headers.authorization = `Basic ${Buffer.from(options.auth).toString('base64')}`;
    return headers;
  } catch (error) {
    const command = stringAt(config.getCurrentUser()?.exec ?? {}, 'command');
    // The message of a plug-in is what it wrote to standard error, which may begin with an empty line.
    const [line = 'it failed without a message'] = /\S.*/.exec(messageOf(error)) ?? [];
    throw new KubeconfigError(`kubeconfig: cannot log in${command ? ` with ${command}` : ''}: ${line}`);
  }
}
