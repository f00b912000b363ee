import { cp, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { htpasswd } from './account.ts';
import { createAuthority } from './certificates.ts';
import { registryName } from './node-config.ts';
import type { RealNode } from './real-node.ts';
import type { TokenServer } from './token-server.ts';

export interface RegistryOptions {
  /** Requires Basic credentials: those of `account`. */
  readonly htpasswd?: boolean;
  /** Requires Bearer tokens of a token server that is started with it. */
  readonly tokenAuth?: boolean;
  /**
   * HTTPS with a certificate of the authority in `caFile`, for 127.0.0.1, localhost and registry.test. `mutual`: only for clients with
   * a certificate of that authority, such as the one in `client`.
   */
  readonly tls?: boolean | 'mutual';
  /**
   * A pull-through cache of that registry, which accepts no pushes; with the account it can read what htpasswd protects
   * there.
   */
  readonly mirrorOf?: {
    readonly url: string;
    readonly account?: { readonly username: string; readonly password: string };
  };
  /** Begins with a copy of that registry's data: quicker than pushing it again, and possible with TLS. */
  readonly contentsOf?: { readonly directory: string };
  /** Default: a free port. */
  readonly port?: number;
  /** Runs beside that node, which pulls from it under the name of `nodeHost`: over plain http, or over HTTPS with `tls`. */
  readonly node?: RealNode;
  /**
   * The directory for data and logs; files of an earlier registry there are removed. Default: a temporary directory.
   */
  readonly directory?: string;
}

/** The files of a registry, by what they hold. */
export const registryFiles = (directory: string) => ({
  data: join(directory, 'data'),
  configuration: join(directory, 'config.yaml'),
  authority: join(directory, 'ca.crt'),
  serving: { certificate: join(directory, 'serving.crt'), key: join(directory, 'serving.key') },
  client: { certificate: join(directory, 'client.crt'), key: join(directory, 'client.key') },
  htpasswd: join(directory, 'htpasswd'),
  keySet: join(directory, 'jwks.json'),
});
type Files = ReturnType<typeof registryFiles>;

/** Writes all that the registry reads when it starts. */
export async function writeRegistryFiles(
  directory: string,
  host: string,
  options: RegistryOptions,
  tokens: TokenServer | undefined,
): Promise<void> {
  const files = registryFiles(directory);
  if (options.contentsOf) await cp(registryFiles(options.contentsOf.directory).data, files.data, { recursive: true });
  else await mkdir(files.data);
  if (options.tls) {
    // Clients that trust two authorities with the same name would confuse them.
    const authority = createAuthority(`archaware test authority of ${host}`);
    await writeFile(files.authority, authority.certificate);
    await writePair(files.serving, authority.issue('registry', ['127.0.0.1', 'localhost', registryName]));
    if (options.tls === 'mutual') await writePair(files.client, authority.issueClient('archaware test client'));
  }
  if (options.htpasswd) await writeFile(files.htpasswd, htpasswd);
  if (tokens) await writeFile(files.keySet, JSON.stringify(tokens.keySet));
  await writeFile(files.configuration, stringify(configuration(files, host, options, tokens)));
}

async function writePair(files: Files['serving'], pair: { certificate: string; key: string }): Promise<void> {
  await writeFile(files.certificate, pair.certificate);
  await writeFile(files.key, pair.key, { mode: 0o600 });
}

function configuration(files: Files, host: string, options: RegistryOptions, tokens: TokenServer | undefined) {
  const clients = options.tls === 'mutual' ? { clientcas: [files.authority] } : {};
  const basic = { htpasswd: { realm: 'archaware', path: files.htpasswd } };
  return {
    version: '0.1',
    log: { level: 'warn' },
    storage: {
      filesystem: { rootdirectory: files.data },
      delete: { enabled: true },
      maintenance: { uploadpurging: { enabled: false } },
    },
    http: {
      addr: options.node ? host.replace(/^.*:/, '0.0.0.0:') : host,
      ...(options.tls ? { tls: { ...files.serving, ...clients } } : {}),
    },
    ...(options.mirrorOf ? { proxy: proxyTo(options.mirrorOf) } : {}),
    ...(tokens ? { auth: { token: tokens.registryOptions(files.keySet) } } : {}),
    ...(options.htpasswd && !tokens ? { auth: basic } : {}),
  };
}

function proxyTo({ url, account }: NonNullable<RegistryOptions['mirrorOf']>) {
  return { remoteurl: url, ...(account ? { username: account.username, password: account.password } : {}) };
}
