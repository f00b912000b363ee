/**
 * Signatures and attestations by cosign. With a key nothing leaves this machine but what goes to the registry; without one, the identity
 * is that of the workflow in GitHub Actions, and the public transparency log gets an entry for each signature.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { attempt, run, tool } from '../programs.ts';
import type { Release } from './types.ts';

/** Who signs. */
export type Signer =
  /** `key` is a path or a URI that cosign knows; `publicKey` is a path. */
  | { readonly kind: 'key'; readonly key: string; readonly publicKey: string; readonly offline: OfflineFiles }
  | { readonly kind: 'keyless'; readonly identity: string };

/** Paths of files that name no public service. Without them cosign would ask for those of sigstore.dev. */
type OfflineFiles = { readonly signingConfig: string; readonly trustedRoot: string };

/** What is attached to the image, by the names that cosign has for it. */
export type PredicateType = 'cyclonedx' | 'slsaprovenance1';

/** The type of the statement that `cosign sign` makes. */
const SIGNATURE = 'https://sigstore.dev/cosign/sign/v1';

/** The issuer of the identities of GitHub Actions. */
export const ISSUER = 'https://token.actions.githubusercontent.com';

/** The identity in the certificate of a release that .github/workflows/release.yml signs. */
export function workflowIdentity({ source, tag }: Pick<Release, 'source' | 'tag'>): string {
  return `${source}/.github/workflows/release.yml@refs/tags/${tag}`;
}

/** Makes what signing with a key needs, in the folder. Throws if the key cannot be read or its password is wrong. */
export async function keySigner(key: string, folder: string): Promise<Signer> {
  const publicKey = join(folder, 'cosign.pub');
  await writeFile(publicKey, await publicKeyOf(key));
  const offline = {
    signingConfig: join(folder, 'signing-config.json'),
    trustedRoot: join(folder, 'trusted-root.json'),
  };
  await run(tool('cosign'), ['signing-config', 'create', '--out', offline.signingConfig]);
  await writeFile(offline.trustedRoot, '{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1"}');
  return { kind: 'key', key, publicKey, offline };
}

/** Returns the public key (PEM) of a private key. Throws if the key cannot be read or its password is wrong. */
export function publicKeyOf(key: string): Promise<string> {
  return cosign(['public-key', '--key', key]);
}

/** The flags with which cosign signs. */
export function signingFlags(signer: Signer): string[] {
  switch (signer.kind) {
    case 'key': {
      const { signingConfig, trustedRoot } = signer.offline;
      return ['--yes', '--key', signer.key, '--signing-config', signingConfig, '--trusted-root', trustedRoot];
    }
    case 'keyless':
      return ['--yes'];
    default:
      return signer satisfies never;
  }
}

/** The flags with which everybody verifies. */
export function verifyingFlags(signer: Signer): string[] {
  switch (signer.kind) {
    case 'key':
      return ['--key', signer.publicKey, '--insecure-ignore-tlog'];
    case 'keyless':
      return ['--certificate-identity', signer.identity, '--certificate-oidc-issuer', ISSUER];
    default:
      return signer satisfies never;
  }
}

/** Signs what stands in a registry (NAME@DIGEST), unless it has this signature, and verifies it as a user does. */
export async function sign(reference: string, signer: Signer): Promise<void> {
  // `cosign verify` also takes an attestation by the same signer for a signature.
  const exact = ['verify-attestation', '--type', SIGNATURE, ...verifyingFlags(signer), reference];
  if ((await attemptCosign(exact)).code !== 0) {
    await cosign(['sign', ...signingFlags(signer), reference]);
    await cosign(exact);
  }
  await cosign(['verify', ...verifyingFlags(signer), reference]);
}

/** Attaches a predicate to what stands in a registry, unless it has the same one, and verifies it as a user does. */
export async function attest(reference: string, type: PredicateType, file: string, signer: Signer): Promise<void> {
  const expected: unknown = JSON.parse(await readFile(file, 'utf8'));
  const verify = ['verify-attestation', '--type', type, ...verifyingFlags(signer), reference];
  const attached = async () => {
    const { code, stdout } = await attemptCosign(verify);
    return code === 0 && predicatesOf(stdout).some((predicate) => isDeepStrictEqual(predicate, expected));
  };
  if (await attached()) return;
  await cosign(['attest', ...signingFlags(signer), '--type', type, '--predicate', file, reference]);
  if (!(await attached())) {
    const { stderr } = await attemptCosign(verify);
    throw new Error(
      `${reference}: the ${type} attestation that was just attached could not be verified:\n${stderr.trim()}`,
    );
  }
}

/** Signs a file; the signature goes into `bundle`. */
export async function signFile(file: string, bundle: string, signer: Signer): Promise<void> {
  await cosign(['sign-blob', ...signingFlags(signer), '--bundle', bundle, file]);
  await cosign(['verify-blob', ...verifyingFlags(signer), '--bundle', bundle, file]);
}

/** Reads the predicates that `cosign verify-attestation` prints: envelopes (DSSE), one on each line. */
export function predicatesOf(stdout: string): unknown[] {
  return stdout
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => {
      const payload = memberOf(JSON.parse(line), 'payload');
      if (typeof payload !== 'string') return undefined;
      return memberOf(JSON.parse(Buffer.from(payload, 'base64').toString()), 'predicate');
    });
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null
    ? Object.entries(value).find(([key]) => key === name)?.[1]
    : undefined;
}

// Without a password cosign would ask for one on the terminal. In another repository no user would find the signatures.
const environment = { COSIGN_PASSWORD: process.env.COSIGN_PASSWORD ?? '', COSIGN_REPOSITORY: '' };
const cosign = (args: readonly string[]) => run(tool('cosign'), args, { env: environment });
const attemptCosign = (args: readonly string[]) => attempt(tool('cosign'), args, { env: environment });
