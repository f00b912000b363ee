import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Agent, request as send } from 'undici';
import { stringify } from 'yaml';
import { type AccessLogEntry, parseAccessLog } from './access-log.ts';
import { account, htpasswd } from './account.ts';
import { createAuthority } from './certificates.ts';
import { emptyDirectory } from './directory.ts';
import { freePorts } from './ports.ts';
import { type Component, startComponent } from './spawn.ts';
import { startTokenServer, type TokenServer, type TokenServerOptions } from './token-server.ts';

export interface RegistryOptions {
  /** Asks for Basic credentials: those of `account`. */
  readonly htpasswd?: boolean;
  /** Asks for Bearer tokens of a token server of our own. */
  readonly tokenAuth?: boolean | TokenServerOptions;
  /** HTTPS with a certificate of the authority in `caFile`, for 127.0.0.1 and localhost. */
  readonly tls?: boolean;
  /** Default: a free one. */
  readonly port?: number;
  /** For data and logs; what an earlier registry left there is removed. Default: a temporary one. */
  readonly directory?: string;
}

/** The real distribution registry on this machine. */
export interface Registry {
  /** 127.0.0.1:PORT, as it stands in image references. */
  readonly host: string;
  /** With the scheme. */
  readonly url: string;
  /** Path of the certificate authority, PEM; only with `tls`. */
  readonly caFile?: string;
  /** What it lets in, when it asks. */
  readonly account: typeof account;
  readonly tokenServer?: TokenServer;
  readonly directory: string;
  /** What was asked since the start or since the last `forgetRequests`, in order, readiness probes apart. */
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
  const directory = await emptyDirectory('registry', options.directory);
  const [freePort = 0] = await freePorts(1);
  const host = `127.0.0.1:${options.port ?? freePort}`;
  const url = `${options.tls ? 'https' : 'http'}://${host}`;
  const tokenServer = options.tokenAuth
    ? await startTokenServer(options.tokenAuth === true ? {} : options.tokenAuth)
    : undefined;
  await writeFiles(directory.path, host, options, tokenServer);

  let component: Component | undefined;
  let forgotten = 0;
  const log = () => readFile(join(directory.path, 'registry.out.log'), 'utf8');
  const entries = async () => parseAccessLog(await log()).filter(({ userAgent }) => userAgent !== probeAgent);
  const start = async () => {
    if (!component?.running) component = await run(directory.path, url);
  };
  const stop = async () => {
    await component?.stop();
  };
  const remove = async () => {
    await Promise.all([stop(), tokenServer?.stop()]);
    await directory.remove();
  };
  try {
    await start();
  } catch (error) {
    await remove();
    throw error;
  }
  return {
    host,
    url,
    account,
    directory: directory.path,
    ...(options.tls ? { caFile: join(directory.path, 'ca.crt') } : {}),
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

async function writeFiles(directory: string, host: string, options: RegistryOptions, tokenServer?: TokenServer) {
  const file = (name: string) => join(directory, name);
  await mkdir(file('data'));
  if (options.tls) {
    const authority = createAuthority('archaware test registry authority');
    const serving = authority.issue('registry', ['127.0.0.1', 'localhost']);
    await writeFile(file('ca.crt'), authority.certificate);
    await writeFile(file('serving.crt'), serving.certificate);
    await writeFile(file('serving.key'), serving.key, { mode: 0o600 });
  }
  if (options.htpasswd) await writeFile(file('htpasswd'), htpasswd);
  if (tokenServer) await writeFile(file('jwks.json'), JSON.stringify(tokenServer.keySet));
  await writeFile(file('config.yaml'), stringify(configuration(file, host, options, tokenServer)));
}

function configuration(file: (name: string) => string, host: string, options: RegistryOptions, tokens?: TokenServer) {
  const tls = { certificate: file('serving.crt'), key: file('serving.key') };
  const basic = { htpasswd: { realm: 'archaware', path: file('htpasswd') } };
  return {
    version: '0.1',
    log: { level: 'warn' },
    storage: {
      filesystem: { rootdirectory: file('data') },
      delete: { enabled: true },
      maintenance: { uploadpurging: { enabled: false } },
    },
    http: { addr: host, ...(options.tls ? { tls } : {}) },
    ...(tokens ? { auth: { token: tokens.registryOptions(file('jwks.json')) } } : {}),
    ...(options.htpasswd && !tokens ? { auth: basic } : {}),
  };
}

async function run(directory: string, url: string): Promise<Component> {
  // Whether it listens is asked, not who it is; the clients under test do check the certificate.
  const dispatcher = new Agent({ connect: { rejectUnauthorized: false } });
  const headers = { 'user-agent': probeAgent };
  try {
    return await startComponent({
      name: 'registry',
      directory,
      args: ['serve', join(directory, 'config.yaml')],
      // It would try to export traces, for ever.
      env: { OTEL_TRACES_EXPORTER: 'none' },
      ready: async () => [200, 401].includes((await send(`${url}/v2/`, { headers, dispatcher })).statusCode),
    });
  } finally {
    await dispatcher.destroy();
  }
}
