/** What crane does with a registry. It knows the logins of docker (`docker login`, `crane auth login`). */
import { attempt, lastLines, run, tool } from '../programs.ts';
import type { Artifact } from './types.ts';

/** What a registry says about a tag. */
export type Tagged =
  | { readonly kind: 'absent' }
  | { readonly kind: 'present'; readonly digest: string }
  /** Some registries answer so before the first push, even to those who may push. */
  | { readonly kind: 'denied'; readonly reason: string }
  | { readonly kind: 'unknown'; readonly reason: string };

/** Asks the registry for the digest of NAME:TAG. */
export async function tagged(name: string, tag: string): Promise<Tagged> {
  const { code, stdout, stderr } = await attempt(tool('crane'), ['digest', `${name}:${tag}`]);
  return readTagged(code, stdout, stderr);
}

/** Reads what `crane digest` printed. */
export function readTagged(code: number | null, stdout: string, stderr: string): Tagged {
  const digest = /^sha256:[0-9a-f]{64}$/.exec(stdout.trim())?.[0];
  if (code === 0 && digest !== undefined) return { kind: 'present', digest };
  // Crane first tries HEAD, whose answer has no code. The last line is about the GET after it.
  const reason = lastLines(stderr, 1).replace(/^Error: /, '');
  if (/\b(?:MANIFEST_UNKNOWN|NAME_UNKNOWN)\b|unexpected status code 404/.test(reason)) return { kind: 'absent' };
  const denied = /\b(?:DENIED|UNAUTHORIZED)\b|unexpected status code 40[13]/.test(reason);
  return { kind: denied ? 'denied' : 'unknown', reason };
}

/** Why a tag may not be written, or undefined: it must be absent or have this digest already. What cannot be read may not be written. */
export function refusalOf(name: string, tag: string, found: Tagged, digest: string): string | undefined {
  switch (found.kind) {
    case 'absent':
      return undefined;
    case 'present':
      if (found.digest === digest) return undefined;
      return `${name}:${tag} already exists with another digest, ${found.digest}; this commit gives ${digest}. A released version never changes: release the next one`;
    case 'denied':
    case 'unknown':
      return `${name}:${tag} could not be read: ${found.reason}`;
    default:
      return found satisfies never;
  }
}

/** Pushes everything in an image layout, without a tag. What the registry has already is not sent again. */
export async function pushByDigest(name: string, { layout, digest }: Artifact): Promise<void> {
  await run(tool('crane'), ['push', layout, `${name}@${digest}`]);
}

/** Tags what was pushed, and looks whether the tag has its digest. Throws if it has another one, also one that it got meanwhile. */
export async function tagAs(name: string, digest: string, tag: string): Promise<void> {
  const mayHave = async () => {
    const refusal = refusalOf(name, tag, await tagged(name, tag), digest);
    if (refusal !== undefined) throw new Error(refusal);
  };
  // Signing takes minutes, in which another run may have released another commit.
  await mayHave();
  await run(tool('crane'), ['tag', `${name}@${digest}`, tag]);
  await mayHave();
}
