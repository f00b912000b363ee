/** Where a release is rehearsed: a registry with TLS under a name, and programs that know the name and trust the registry. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { appendFile, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { registryName } from '../../../hack/cluster/node-config.ts';
import type { RealNode } from '../../../hack/cluster/real-node.ts';
import { type Registry, startRegistry } from '../../../hack/cluster/registry.ts';
import { binaries } from '../../../hack/cluster/spawn.ts';
import { toolsFolder } from '../../../hack/programs.ts';
import { type Program, runWith } from '../../e2e/support/programs.ts';
import type { Finished } from '../../support/controller-process.ts';

/** The authorities that this machine's programs trust. The registries of packages may need them while a release is built. */
const AUTHORITIES = '/etc/ssl/certs/ca-certificates.crt';

/** Which of them are not there, with what builds them. */
export const missingTools = (...names: readonly string[]): string[] =>
  names.every((name) => existsSync(join(toolsFolder(), name)))
    ? []
    : [`${names.join(' and ')} in ${toolsFolder()} (run hack/release/build-tools.sh)`];

export type RunOptions = { readonly cwd?: string; readonly environment?: Readonly<Record<string, string>> };

export type Place = {
  readonly directory: string;
  /** registry.test:PORT: the same name here and on the node. */
  readonly host: string;
  readonly registry: Registry;
  /** The variables of every program that is run here. */
  readonly environment: Readonly<Record<string, string>>;
  /** Where the registry's name is known, and its authority trusted: runs a program to its end, whatever its exit code. */
  run(program: Program, options?: RunOptions): Promise<Finished>;
  /** The same; throws with all output unless the exit code is 0. Returns the standard output. */
  must(program: Program, options?: RunOptions): Promise<string>;
  /** A program's words so that it runs like that, for code that starts it in another way. */
  within(program: Program): Program;
  remove(): Promise<void>;
};

/** Starts the registry, on the node if there is one. */
export async function startPlace(node?: RealNode): Promise<Place> {
  const directory = await mkdtemp(join(tmpdir(), 'archaware-release-'));
  const beside = node ? { node, directory: join(node.directory, 'release-registry') } : {};
  const registry = await startRegistry({ tls: true, ...beside });
  const host = registry.host.replace(/^127\.0\.0\.1/, registryName);
  const home = join(directory, 'home');
  const authorities = join(directory, 'authorities.crt');
  const hosts = join(directory, 'hosts');
  await mkdir(join(home, 'docker'), { recursive: true });
  // buildah wants the file to be there.
  await writeFile(join(home, 'docker/config.json'), '{}');
  const known = existsSync(AUTHORITIES) ? await readFile(AUTHORITIES, 'utf8') : '';
  await writeFile(authorities, `${known}\n${await readFile(registry.caFile ?? '', 'utf8')}`);
  await writeFile(hosts, `127.0.0.1 localhost ${registryName}\n`);
  const environment = {
    // Programs in Go read it; Node.js and npm do not.
    SSL_CERT_FILE: authorities,
    PATH: [toolsFolder(), binaries(), process.env.PATH].join(delimiter),
    HELM_CACHE_HOME: join(home, 'helm/cache'),
    HELM_CONFIG_HOME: join(home, 'helm/config'),
    HELM_DATA_HOME: join(home, 'helm/data'),
    // cosign keeps the public keys of its services here; nothing is fetched when a key is given.
    TUF_ROOT: join(home, 'tuf'),
    DOCKER_CONFIG: join(home, 'docker'),
  };
  // A mount namespace with a hosts file of its own: the machine's stays as it is.
  const within = (program: Program): Program => [
    ...(['unshare', '--mount', '--propagation', 'private', 'sh', '-c'] as const),
    ...['mount --bind "$0" /etc/hosts && exec "$@"', hosts, ...program],
  ];
  const run: Place['run'] = async (program, options = {}) => {
    const [command, ...args] = within(program);
    const child = spawn(command, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      cwd: options.cwd ?? directory,
      env: { ...withoutActions(process.env), ...environment, ...options.environment },
    });
    const closed = once(child, 'close');
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), closed]);
    return { code: child.exitCode, stdout, stderr };
  };
  return {
    directory,
    host,
    registry,
    environment,
    run,
    async must(program, options) {
      const { code, stdout, stderr } = await run(program, options);
      if (code !== 0) throw new Error(`${program.join(' ')} ended with ${code}:\n${stdout}${stderr}`);
      return stdout;
    },
    within,
    async remove() {
      await registry.remove();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Without what GitHub Actions sets: a rehearsal there is one of a release by hand, too. */
const withoutActions = (environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(environment).filter(([name]) => !/^(GITHUB_|ACTIONS_|RUNNER_)/.test(name)));

/** Clones the last commit of the repository, with its packages: nothing that is done to the clone reaches the repository. */
export async function cloneHead(root: string, to: string): Promise<string> {
  await runWith({}, ['git'], 'clone', '--quiet', '--no-hardlinks', root, to);
  const git: Program = ['git', '-C', to];
  // The clone has no remote: what is released has none of the names of this machine in it.
  await runWith({}, git, 'remote', 'remove', 'origin');
  await runWith({}, git, 'config', 'user.name', 'A maintainer');
  await runWith({}, git, 'config', 'user.email', 'maintainer@example.com');
  // Instead of npm ci. What is released has packages of its own: hack/release.sh installs them in a clone.
  await symlink(join(root, 'node_modules'), join(to, 'node_modules'));
  await appendFile(join(to, '.git/info/exclude'), '/node_modules\n');
  return to;
}
