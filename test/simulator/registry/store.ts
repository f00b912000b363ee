/** What a test registry holds, in memory. */
import { type Content, type ImageFixture, MEDIA_TYPES } from '../../../testimg/build.ts';

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
/** What is only sent to a client that accepts it. */
const ON_REQUEST: readonly string[] = [MEDIA_TYPES.ociIndex, MEDIA_TYPES.ociManifest, MEDIA_TYPES.dockerList];

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
    /** Stores an image as it is. Returns its digest. */
    load(name: string, tag: string, fixture: ImageFixture): string {
      const repository = open(name);
      for (const blob of fixture.blobs) repository.blobs.set(blob.digest, blob.bytes);
      for (const manifest of fixture.manifests) repository.manifests.set(manifest.digest, manifest);
      repository.tags.set(tag, fixture.root.digest);
      return fixture.root.digest;
    },

    tags(name: string): string[] | undefined {
      const repository = repositories.get(name);
      return repository && [...repository.tags.keys()].sort();
    },

    blob(name: string, digest: string): Buffer | undefined {
      return repositories.get(name)?.blobs.get(digest);
    },

    /** The manifest that the reference names, if the client accepts it. */
    negotiate(name: string, reference: string, accept: string): Content | Refusal {
      const found = find(name, reference);
      const accepted = accept.split(',').map((type) => type.split(';')[0]?.trim());
      const isRefused = found && ON_REQUEST.includes(found.mediaType) && !accepted.includes(found.mediaType);
      return found === undefined || isRefused ? MANIFEST_UNKNOWN : found;
    },
  };
}
