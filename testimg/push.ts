/** Pushes fixtures by the OCI distribution API; no container engine is involved. */
import type { Content, ImageFixture } from './build.ts';
import { FIXTURES, type Fixture } from './fixtures.ts';
import { type Answer, openSession, type Session, type Target } from './session.ts';

export type PushOptions = Target & {
  /** Default: all of them. */
  readonly fixtures?: readonly Pick<Fixture, 'tag' | 'build' | 'refusable'>[];
  /** Called as each tag is done. */
  readonly onTag?: (outcome: TagOutcome) => void;
};

export type TagOutcome = {
  readonly tag: string /** Why it was skipped; absent when it was pushed. */;
  readonly reason?: string;
};

export type PushResult = {
  readonly pushed: string[];
  readonly skipped: { readonly tag: string; readonly reason: string }[];
};

/**
 * Pushes blobs, then manifests, children before parents, and the root under its tag. A fixture that says that it may be
 * refused and is answered with a 4xx is skipped; any other refusal, and an unreachable registry, throws.
 */
export async function pushFixtures(options: PushOptions): Promise<PushResult> {
  const session = openSession(options);
  const result: PushResult = { pushed: [], skipped: [] };
  const stored = new Set<string>();
  try {
    for (const { tag, build, refusable } of options.fixtures ?? FIXTURES) {
      const refusal = await pushOne(session, build(), tag, stored);
      if (refusal === undefined) {
        result.pushed.push(tag);
        options.onTag?.({ tag });
      } else if (refusable !== undefined) {
        const reason = `${refusal} (${refusable})`;
        result.skipped.push({ tag, reason });
        options.onTag?.({ tag, reason });
      } else {
        throw new Error(`${options.registry}/${options.repository}:${tag}: ${refusal}`);
      }
    }
    return result;
  } finally {
    await session.close();
  }
}

/** Returns why the registry refused a manifest, undefined when all is stored. Throws for any other failure. */
async function pushOne(session: Session, fixture: ImageFixture, tag: string, stored: Set<string>) {
  for (const blob of fixture.blobs) {
    if (!stored.has(blob.digest)) await pushBlob(session, blob);
    stored.add(blob.digest);
  }
  for (const manifest of fixture.manifests) {
    const reference = manifest.digest === fixture.root.digest ? tag : manifest.digest;
    if (stored.has(reference)) continue;
    const answer = await session.send('PUT', `manifests/${reference}`, manifest);
    if (!isSuccess(answer)) return refusalOf(answer, `manifest ${reference}`);
    stored.add(reference);
  }
  return undefined;
}

async function pushBlob(session: Session, blob: Content): Promise<void> {
  const head = await session.send('HEAD', `blobs/${blob.digest}`);
  // A redirect to where the blob is stored means as well that it is there.
  if (head.status >= 200 && head.status < 400) return;
  const start = await session.send('POST', 'blobs/uploads/');
  if (start.status !== 202 || start.location === undefined) throw new Error(describe(start, 'upload of a blob'));
  const separator = start.location.includes('?') ? '&' : '?';
  const put = await session.send('PUT', `${start.location}${separator}digest=${encodeURIComponent(blob.digest)}`, {
    bytes: blob.bytes,
    mediaType: 'application/octet-stream',
  });
  if (!isSuccess(put)) throw new Error(describe(put, `blob ${blob.digest}`));
}

function isSuccess(answer: Answer): boolean {
  return answer.status >= 200 && answer.status < 300;
}

/** A registry refuses content with one of these; anything else (not allowed, too many, broken) is a failure. */
function refusalOf(answer: Answer, what: string): string {
  if ([400, 404, 405, 406, 415, 422].includes(answer.status)) return describe(answer, what);
  throw new Error(describe(answer, what));
}

function describe(answer: Answer, what: string): string {
  const code = /"code"\s*:\s*"([A-Z_]+)"/.exec(answer.text)?.[1];
  return `${what} was refused with ${answer.status}${code === undefined ? '' : ` ${code}`}`;
}
