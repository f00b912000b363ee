import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Agent, request as send } from 'undici';
import { type AccessLogEntry, parseAccessLog } from './access-log.ts';
import { account } from './account.ts';
import { emptyDirectory } from './directory.ts';
import { freePorts } from './ports.ts';
import { type RegistryOptions, registryFiles, writeRegistryFiles } from './registry-config.ts';
import { type Component, startComponent } from './spawn.ts';
import { startTokenServer, type TokenServer } from './token-server.ts';

/** The real distribution registry on this machine. */
export interface Registry {
  /** 127.0.0.1:PORT, as in image references. */
  readonly host: string;
  /** The host of the same registry for pods and the container runtime of `node`. */
  readonly nodeHost?: string;
  /** With the scheme. */
  readonly url: string;
  /** Path of the certificate authority, PEM; only with `tls`. */
  readonly caFile?: string;
  /** Paths of a client certificate that the registry accepts, PEM; only with mutual TLS. */
  readonly client?: { readonly certificate: string; readonly key: string };
  /** The account that it accepts, if it requires one. */
  readonly account: typeof account;
  readonly tokenServer?: TokenServer;
  readonly directory: string;
  /** Returns the requests since the start or since the last `forgetRequests`, in order, without readiness probes. */
  requests(): Promise<AccessLogEntry[]>;
  forgetRequests(): Promise<void>;
  /** For tests of a registry that hangs: SIGSTOP and SIGCONT. */
  kill(signal: NodeJS.Signals): void;
  /** Stops it; its port refuses connections and its data stays. */
  stop(): Promise<void>;
  /** Starts it again on the same port and data. */
  start(): Promise<void>;
  /** Stops it and its token server for good, and removes a temporary directory. */
  remove(): Promise<void>;
}

const probeAgent = 'archaware-readiness-probe';

export async function startRegistry(options: RegistryOptions = {}): Promise<Registry> {
  const besideNode = options.node && join(options.node.directory, 'registry');
  const directory = await emptyDirectory('registry', options.directory ?? besideNode);
  const [freePort = 0] = await freePorts(1);
  const port = options.port ?? freePort;
  const host = `127.0.0.1:${port}`;
  const url = `${options.tls ? 'https' : 'http'}://${host}`;
  const tokenServer = options.tokenAuth ? await startTokenServer() : undefined;
  await writeRegistryFiles(directory.path, host, options, tokenServer);
  const files = registryFiles(directory.path);

  let component: Component | undefined;
  let forgotten = 0;
  const log = () => readFile(join(directory.path, 'registry.out.log'), 'utf8');
  const entries = async () => parseAccessLog(await log()).filter(({ userAgent }) => userAgent !== probeAgent);
  const start = async () => {
    if (!component?.running) component = await run(directory.path, url, options);
  };
  const stop = async () => {
    await component?.stop();
  };
  const remove = async () => {
    await Promise.all([stop(), tokenServer?.stop()]);
    await directory.remove();
  };
  let nodeHost: string | undefined;
  try {
    await options.node?.expose(port);
    await start();
    nodeHost = await options.node?.pullFrom(port, options.tls ? files.authority : undefined);
  } catch (error) {
    await remove();
    throw error;
  }
  return {
    host,
    ...(nodeHost ? { nodeHost } : {}),
    url,
    account,
    directory: directory.path,
    ...(options.tls ? { caFile: files.authority } : {}),
    ...(options.tls === 'mutual' ? { client: files.client } : {}),
    ...(tokenServer ? { tokenServer } : {}),
    requests: async () => (await entries()).slice(forgotten),
    async forgetRequests() {
      forgotten = (await entries()).length;
    },
    kill: (signal) => component?.kill(signal),
    stop,
    start,
    remove,
  };
}

async function run(directory: string, url: string, { tls, node }: RegistryOptions): Promise<Component> {
  const { client, configuration } = registryFiles(directory);
  const shown = tls === 'mutual' ? { cert: await readFile(client.certificate), key: await readFile(client.key) } : {};
  // This only checks whether it listens, not its identity; the clients under test do verify the certificate.
  const dispatcher = new Agent({ connect: { rejectUnauthorized: false, ...shown } });
  const headers = { 'user-agent': probeAgent };
  try {
    return await startComponent({
      name: 'registry',
      directory,
      ...(node ? { enter: node.enter } : {}),
      args: ['serve', configuration],
      // Without this it would try to export traces, for ever.
      env: { OTEL_TRACES_EXPORTER: 'none' },
      ready: async () => [200, 401].includes((await send(`${url}/v2/`, { headers, dispatcher })).statusCode),
    });
  } finally {
    await dispatcher.destroy();
  }
}
