/** What a test registry holds, and what it refuses to take: in memory, by the rules of distribution v3. */
import { type Content, content, digestOf, type ImageFixture, MEDIA_TYPES } from '../../../testimg/build.ts';

/** A refusal in the form of the distribution specification ("Error Codes"). */
export type Refusal = { readonly status: number; readonly code: string; readonly message: string };

type Repository = {
  readonly blobs: Map<string, Buffer>;
  readonly manifests: Map<string, Content>;
  readonly tags: Map<string, string>;
};

export type Store = ReturnType<typeof createStore>;

const DIGEST = /^sha256:[0-9a-f]{64}$/;
const MANIFEST_UNKNOWN: Refusal = { status: 404, code: 'MANIFEST_UNKNOWN', message: 'manifest unknown' };
/** The types of manifest that can be pushed; schema 1 is none of them since distribution v3. */
const PUSHABLE: readonly string[] = [
  MEDIA_TYPES.ociIndex,
  MEDIA_TYPES.ociManifest,
  MEDIA_TYPES.dockerList,
  MEDIA_TYPES.dockerManifest,
];

/** An empty store. */
export function createStore() {
  const repositories = new Map<string, Repository>();

  function open(name: string): Repository {
    const known = repositories.get(name);
    if (known) return known;
    const made: Repository = { blobs: new Map(), manifests: new Map(), tags: new Map() };
    repositories.set(name, made);
    return made;
  }

  function find(name: string, reference: string): Content | undefined {
    const repository = repositories.get(name);
    const digest = DIGEST.test(reference) ? reference : repository?.tags.get(reference);
    return digest === undefined ? undefined : repository?.manifests.get(digest);
  }

  return {
    /** Stores an image as it is, whatever a push would say to it. Returns its digest. */
    load(name: string, tag: string, fixture: ImageFixture): string {
      const repository = open(name);
      for (const blob of fixture.blobs) repository.blobs.set(blob.digest, blob.bytes);
      for (const manifest of fixture.manifests) repository.manifests.set(manifest.digest, manifest);
      repository.tags.set(tag, fixture.root.digest);
      return fixture.root.digest;
    },

    /** Forgets a tag; what it named can still be had by digest. */
    untag(name: string, tag: string): void {
      repositories.get(name)?.tags.delete(tag);
    },

    tags(name: string): string[] | undefined {
      const repository = repositories.get(name);
      return repository && [...repository.tags.keys()].sort();
    },

    blob(name: string, digest: string): Buffer | undefined {
      return repositories.get(name)?.blobs.get(digest);
    },

    putBlob(name: string, digest: string, bytes: Buffer): Refusal | undefined {
      if (digestOf(bytes) !== digest) {
        return { status: 400, code: 'DIGEST_INVALID', message: 'provided digest did not match uploaded content' };
      }
      open(name).blobs.set(digest, bytes);
      return undefined;
    },

    /**
     * Which manifest answers: the one that the reference names, or for a client that does not accept Docker lists the
     * amd64 child, or a refusal (distribution v3.1.2, registry/handlers/manifests.go).
     */
    negotiate(name: string, reference: string, accept: string): Content | Refusal {
      const found = find(name, reference);
      if (found === undefined) return MANIFEST_UNKNOWN;
      const accepted = accept.split(',').map((type) => type.split(';')[0]?.trim());
      const isOci = found.mediaType === MEDIA_TYPES.ociIndex || found.mediaType === MEDIA_TYPES.ociManifest;
      if (isOci && !accepted.includes(found.mediaType)) {
        const message = 'OCI content found, but accept header does not support it';
        return { ...MANIFEST_UNKNOWN, message };
      }
      const isTag = !DIGEST.test(reference);
      if (!isTag || found.mediaType !== MEDIA_TYPES.dockerList || accepted.includes(found.mediaType)) return found;
      const child = children(found).find(
        ({ platform }) => isRecord(platform) && platform.os === 'linux' && platform.architecture === 'amd64',
      );
      const rewritten = child && find(name, child.digest);
      if (rewritten === undefined) return MANIFEST_UNKNOWN;
      return accepted.includes(rewritten.mediaType)
        ? rewritten
        : { status: 400, code: 'MANIFEST_INVALID', message: 'Schema 2 manifest not supported by client' };
    },

    /** Stores a pushed manifest if all that it names is there. Returns its digest or a refusal. */
    putManifest(name: string, reference: string, mediaType: string, bytes: Buffer): string | Refusal {
      const manifest = content(mediaType, bytes);
      const body = parse(bytes);
      if (!PUSHABLE.includes(mediaType) || body === undefined || ('manifests' in body && 'layers' in body)) {
        return { status: 400, code: 'MANIFEST_INVALID', message: 'manifest invalid' };
      }
      if (DIGEST.test(reference) && reference !== manifest.digest) {
        return { status: 400, code: 'DIGEST_INVALID', message: 'provided digest did not match uploaded content' };
      }
      const repository = open(name);
      const absent =
        children(manifest).some(({ digest }) => !repository.manifests.has(digest)) ||
        [body.config, ...listOf(body.layers)].some(
          (one) => isRecord(one) && typeof one.digest === 'string' && !repository.blobs.has(one.digest),
        );
      if (absent) return { status: 400, code: 'MANIFEST_BLOB_UNKNOWN', message: 'blob unknown to registry' };
      repository.manifests.set(manifest.digest, manifest);
      if (!DIGEST.test(reference)) repository.tags.set(reference, manifest.digest);
      return manifest.digest;
    },
  };
}

function children(manifest: Content): { digest: string; platform: unknown }[] {
  return listOf(parse(manifest.bytes)?.manifests).flatMap((entry) =>
    isRecord(entry) && typeof entry.digest === 'string' ? [{ digest: entry.digest, platform: entry.platform }] : [],
  );
}

function parse(bytes: Buffer): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'));
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
