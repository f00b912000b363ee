/** What must be true before anything is built. All problems are listed together. */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { attempt, findProgram, isExecutable, lastLines, messageOf, run, tool, toolsFolder } from '../programs.ts';
import type { Signing } from './options.ts';
import { type Tagged, tagged } from './push.ts';
import { publicKeyOf, workflowIdentity } from './sign.ts';
import type { Release } from './types.ts';

/** What was found in the repository. */
export type Facts = {
  /** Lines of `git status --porcelain`: changed and untracked files. */
  readonly uncommitted: readonly string[];
  readonly tag: string;
  /** The commit of the tag; undefined without such a tag. */
  readonly tagged: string | undefined;
  readonly head: string;
};

/** How many files are named before the rest is counted. */
const NAMED = 5;

/** What is wrong with the repository. */
export function repositoryProblems({ uncommitted, tag, tagged: commit, head }: Facts): string[] {
  const problems: string[] = [];
  if (uncommitted.length > 0) {
    const names = namesOf(uncommitted.map((line) => line.slice(3)));
    problems.push(`the working tree is not clean: ${names}; commit, stash or remove what "git status" shows`);
  }
  if (commit === undefined) problems.push(`there is no tag ${tag}: git tag -a ${tag} -m ${tag}`);
  else if (commit !== head) {
    problems.push(
      `the tag ${tag} is at ${commit.slice(0, 12)}, but HEAD is at ${head.slice(0, 12)}: git checkout ${tag}`,
    );
  }
  return problems;
}

/** Reads the facts of the repository in the folder. Throws outside of a repository. */
export async function repositoryFacts(root: string, tag: string): Promise<Facts> {
  const git = (...args: readonly string[]) => attempt('git', ['-C', root, ...args]);
  const [status, head, commit] = await Promise.all([
    git('status', '--porcelain', '--untracked-files=all'),
    git('rev-parse', 'HEAD'),
    git('rev-parse', '--verify', '--quiet', `refs/tags/${tag}^{commit}`),
  ]);
  if (status.code !== 0 || head.code !== 0) throw new Error(`${root}: ${(status.stderr || head.stderr).trim()}`);
  return {
    uncommitted: status.stdout.split('\n').filter((line) => line !== ''),
    tag,
    tagged: commit.code === 0 ? commit.stdout.trim() : undefined,
    head: head.stdout.trim(),
  };
}

/** Returns the time of a commit. */
export async function commitTime(root: string, commit: string): Promise<Date> {
  // With log.showSignature git would print what it thinks of the signature, too.
  const seconds = await run('git', ['-C', root, 'log', '-1', '--no-show-signature', '--format=%ct', commit]);
  return new Date(Number(seconds) * 1000);
}

const lockfile = z.object({
  packages: z.record(z.string(), z.object({ version: z.string().optional(), optional: z.boolean().optional() })),
});

/**
 * What is wrong with node_modules, which a release itself is run with: its YAML and JSON become part of what is signed. `installed` is
 * node_modules/.package-lock.json, which npm writes.
 */
export function packageProblems(locked: unknown, installed: unknown): string[] {
  const wanted = lockfile.parse(locked).packages;
  const found = lockfile.safeParse(installed).data?.packages;
  if (found === undefined) return ['node_modules was not installed to the end: npm ci'];
  const paths = [...new Set([...Object.keys(wanted), ...Object.keys(found)])].filter((path) => path !== '');
  const other = paths.filter((path) => {
    const [one, two] = [wanted[path], found[path]];
    return two === undefined ? one?.optional !== true : two.version !== one?.version;
  });
  if (other.length === 0) return [];
  return [`node_modules does not have what package-lock.json says (${namesOf(other)}): npm ci`];
}

/** The same for the folder. */
export async function installedProblems(root: string): Promise<string[]> {
  const read = async (path: string): Promise<unknown> => JSON.parse(await readFile(join(root, path), 'utf8'));
  return packageProblems(
    await read('package-lock.json'),
    await read('node_modules/.package-lock.json').catch(() => undefined),
  );
}

/** The first ones, and how many more there are. */
function namesOf(names: readonly string[]): string {
  const more = names.length > NAMED ? ` and ${names.length - NAMED} more` : '';
  return `${names.slice(0, NAMED).join(', ')}${more}`;
}

/** Which programs are missing, and where they come from. */
export async function toolProblems(): Promise<string[]> {
  const missing = async (name: string, from: string) =>
    (await findProgram(name)) === undefined ? [`${name} was not found on the PATH: ${from}`] : [];
  const built = await Promise.all([isExecutable(tool('cosign')), isExecutable(tool('crane'))]);
  return [
    ...(await missing('npm', 'it comes with Node.js')),
    ...(await missing('tar', 'install it with the package manager of the system')),
    ...(await builderProblems()),
    ...(built.includes(false)
      ? [`cosign and crane were not found in ${toolsFolder()}: run hack/release/build-tools.sh`]
      : []),
  ];
}

async function builderProblems(): Promise<string[]> {
  if ((await findProgram('buildah')) !== undefined) return [];
  const docker = (await findProgram('docker')) !== undefined;
  if (docker && (await attempt('docker', ['buildx', 'inspect'])).code === 0) return [];
  return ['neither buildah nor docker buildx was found: install one (apt-get install buildah)'];
}

/** What is wrong with the key. */
export async function keyProblems(signing: Signing): Promise<string[]> {
  if (signing.kind !== 'key' || !(await isExecutable(tool('cosign')))) return [];
  return publicKeyOf(signing.key).then(
    () => [],
    (error: unknown) => [
      `COSIGN_KEY (${signing.key}) cannot be used; is COSIGN_PASSWORD right? ${lastLines(messageOf(error), 1)}`,
    ],
  );
}

/** What is wrong with the identity that signs: documents and policies name the workflow release.yml at the tag, and nothing else. */
export function identityProblems(
  signing: Signing,
  env: Readonly<Record<string, string | undefined>>,
  release: Pick<Release, 'source' | 'tag'>,
): string[] {
  if (signing.kind !== 'keyless') return [];
  const own = `${env.GITHUB_SERVER_URL}/${env.GITHUB_WORKFLOW_REF}`;
  const expected = workflowIdentity(release);
  if (own === expected) return [];
  return [`this job signs as ${own}, but users verify ${expected}: push the tag, and let release.yml start by itself`];
}

/** What the registry said about a name. */
export type Answer = { readonly name: string; readonly found: Tagged };

/** Asks the registry for these tags; whether they may be written is known only after the build. */
export async function registryAnswers(names: readonly string[], tag: string): Promise<Answer[]> {
  if (!(await isExecutable(tool('crane')))) return [];
  return Promise.all(names.map(async (name) => ({ name, found: await tagged(name, tag) })));
}

/** Problems, and notes on what only a push will show. */
export function registryProblems(answers: readonly Answer[]): {
  readonly problems: string[];
  readonly notes: string[];
} {
  const problems: string[] = [];
  const notes: string[] = [];
  for (const { name, found } of answers) {
    switch (found.kind) {
      case 'absent':
      case 'present':
        break;
      case 'denied':
        notes.push(
          `${name} may not be read, which is normal before its first push; if not, "docker login" or "crane auth login": ${found.reason}`,
        );
        break;
      case 'unknown':
        problems.push(
          `${name} cannot be read: ${found.reason}. Is REGISTRY right? If an authority of your own signs its certificate: SSL_CERT_FILE`,
        );
        break;
      default:
        found satisfies never;
    }
  }
  return { problems, notes };
}
