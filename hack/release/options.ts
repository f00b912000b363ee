/** Reads the command line and the environment of a release. Pure: the shell around it is main.ts. */
import { PLACEHOLDER } from './names.ts';
import { VERSION } from './versions.ts';

/** The command line. */
export type CommandLine = { readonly version: string; readonly push: boolean };

/** Where a release goes, and how it is signed. */
export type Target = {
  /** HOST[:PORT] */
  readonly registry: string;
  /** The path below the registry. */
  readonly repository: string;
  /** The https URL of the repository. */
  readonly source: string;
  /** The image with Node.js that replaces the one of the Dockerfile, by digest. */
  readonly baseImage: string | undefined;
  readonly signing: Signing;
};

/** How a release is signed: with a key, with the identity of a workflow (keyless), or not at all. */
export type Signing =
  | { readonly kind: 'key'; readonly key: string }
  | { readonly kind: 'keyless' }
  | { readonly kind: 'none' };

type Environment = Readonly<Record<string, string | undefined>>;

/** With a dot, a port, or localhost: crane and docker take any other first part of a name for an account on Docker Hub. */
const HOST = /^(?=localhost$|.*[.:])[a-z0-9]+(?:[.-][a-z0-9]+)*(?::\d{1,5})?$/i;
/** The path of a repository (OCI distribution-spec, "Pulling manifests"). */
const PATH = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$/;
const BY_DIGEST = /@sha256:[0-9a-f]{64}$/;

/** Reads the command line; a text says what is wrong with it. */
export function readCommandLine(args: readonly string[]): CommandLine | string {
  const flags = args.filter((arg) => arg.startsWith('-'));
  const [version, ...more] = args.filter((arg) => !arg.startsWith('-'));
  const unknown = flags.find((flag) => flag !== '--no-push');
  if (unknown !== undefined) return `got ${unknown}, expected --no-push`;
  if (version === undefined) return 'VERSION is missing, for example 0.2.0';
  if (more.length > 0) return `got "${more[0]}" after the version, expected nothing`;
  const number = version.replace(/^v/, '');
  if (!VERSION.test(number)) return `got the version "${version}", expected MAJOR.MINOR.PATCH, for example 0.2.0`;
  return { version: number, push: !flags.includes('--no-push') };
}

/**
 * Reads where a release goes. `origin` is the URL of the git remote of that name. What is wrong is in `problems`; the target then has
 * an empty text there. `notes` say what was assumed.
 */
export function readTarget(
  env: Environment,
  push: boolean,
  origin: string | undefined,
): { readonly target: Target; readonly problems: readonly string[]; readonly notes: readonly string[] } {
  const problems: string[] = [];
  const inActions = env.GITHUB_ACTIONS === 'true';
  const registry = env.REGISTRY || (inActions ? 'ghcr.io' : '');
  if (registry === '') problems.push('REGISTRY is not set: the host of the registry, such as ghcr.io');
  else if (!HOST.test(registry))
    problems.push(`REGISTRY is "${registry}", expected HOST.DOMAIN or HOST:PORT without a path`);
  const repository = env.REPOSITORY || (inActions ? (env.GITHUB_REPOSITORY_OWNER ?? '').toLowerCase() : '');
  if (repository === '') problems.push('REPOSITORY is not set: the path below the registry, such as your account');
  else if (!PATH.test(repository)) {
    problems.push(`REPOSITORY is "${repository}", expected lower case letters, digits and . _ - between slashes`);
  }
  const { source, notes, problem } = readSource(env, inActions, origin);
  if (problem !== undefined) problems.push(problem);
  const baseImage = env.BASE_IMAGE || undefined;
  if (baseImage !== undefined && !BY_DIGEST.test(baseImage)) {
    problems.push(`BASE_IMAGE is "${baseImage}", expected a digest at its end: NAME@sha256:…`);
  }
  const signing = readSigning(env, push);
  if (typeof signing === 'string') problems.push(signing);
  const target: Target = {
    registry,
    repository,
    source,
    baseImage,
    signing: typeof signing === 'string' ? { kind: 'none' } : signing,
  };
  return { target, problems, notes };
}

function readSource(
  env: Environment,
  inActions: boolean,
  origin: string | undefined,
): { readonly source: string; readonly notes: readonly string[]; readonly problem?: string } {
  const given = env.SOURCE || (inActions ? `${env.GITHUB_SERVER_URL}/${env.GITHUB_REPOSITORY}` : '');
  if (given !== '') {
    const source = cleanUrl(given);
    if (source !== undefined) return { source, notes: [] };
    // A password in it must not get into a log.
    const shown = given.includes('@') ? '' : ` ("${given}")`;
    const problem = `SOURCE${shown} is not the https URL of the repository, without a user name or a password`;
    return { source: '', notes: [], problem };
  }
  const source = origin === undefined ? undefined : cleanUrl(origin);
  if (source !== undefined) return { source, notes: [`SOURCE is not set: using ${source}, the remote origin`] };
  const note = `SOURCE is not set: the release names ${PLACEHOLDER.source} as its repository, and its files cannot be downloaded`;
  return { source: PLACEHOLDER.source, notes: [note] };
}

/** The path of a repository: nothing that would need an escape in a label, in YAML or in a shell. */
const REPOSITORY_PATH = /^(?:\/[\w.~-]+)+$/;

/** Returns an https URL without slash and .git at its end; undefined if it is another URL, has credentials, or is only a host. */
function cleanUrl(url: string): string | undefined {
  if (!URL.canParse(url)) return undefined;
  const { protocol, origin, pathname, username, password, search, hash } = new URL(url);
  const path = pathname.replace(/\/+$/, '').replace(/\.git$/, '');
  if (protocol !== 'https:' || `${username}${password}${search}${hash}` !== '' || !REPOSITORY_PATH.test(path)) {
    return undefined;
  }
  return `${origin}${path}`;
}

function readSigning(env: Environment, push: boolean): Signing | string {
  if (!push) return { kind: 'none' };
  if (env.COSIGN_KEY) return { kind: 'key', key: env.COSIGN_KEY };
  if (env.ACTIONS_ID_TOKEN_REQUEST_URL) return { kind: 'keyless' };
  return env.GITHUB_ACTIONS === 'true'
    ? 'the job has no identity to sign with: give it the permission "id-token: write" (or set COSIGN_KEY)'
    : 'COSIGN_KEY is not set: the path of a private key of cosign. Signing without a key works only in GitHub Actions; --no-push signs nothing';
}
