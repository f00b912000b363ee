/** SLSA provenance v1 (https://slsa.dev/spec/v1.0/provenance): the predicate that cosign signs as an attestation of the image. */
import type { BaseImage } from './image/build.ts';
import type { Release } from './types.ts';

/** What a build depended on, beside the release. */
export type BuildFacts = {
  readonly base: BaseImage;
  /** SHA-256 of package-lock.json, hexadecimal. */
  readonly lockfile: string;
  /** The program that built the image and its version, and the Node.js that ran this. */
  readonly tools: Readonly<Record<string, string>>;
  readonly builder: Builder;
};

/** Who built. */
export type Builder =
  /** `workflow` is GITHUB_WORKFLOW_REF: OWNER/NAME/PATH@REF. */
  | { readonly kind: 'workflow'; readonly server: string; readonly workflow: string; readonly run: string | undefined }
  | { readonly kind: 'local' };

type Environment = Readonly<Record<string, string | undefined>>;

/** Reads who builds from the variables of GitHub Actions. */
export function readBuilder(env: Environment): Builder {
  const {
    GITHUB_SERVER_URL: server,
    GITHUB_WORKFLOW_REF: workflow,
    GITHUB_REPOSITORY: repository,
    GITHUB_RUN_ID: run,
  } = env;
  if (env.GITHUB_ACTIONS !== 'true' || !server || !workflow) return { kind: 'local' };
  const page = repository && run ? `${server}/${repository}/actions/runs/${run}` : undefined;
  return { kind: 'workflow', server, workflow, run: page };
}

/**
 * Makes the predicate. It has no times and no number of an attempt, so that a run which is repeated makes the same one, and finds it
 * attached.
 */
export function provenance(release: Release, { base, lockfile, tools, builder }: BuildFacts): object {
  const { source, tag, commit, version, registry, repository } = release;
  return {
    buildDefinition: {
      // The page says what the parameters mean, as the specification asks.
      buildType: `${source}/blob/${tag}/docs/decisions/073-how-an-image-is-released.md`,
      externalParameters: { source, ref: `refs/tags/${tag}`, version, registry, repository, baseImage: base.name },
      internalParameters: { tools },
      resolvedDependencies: [
        { uri: `git+${source}@refs/tags/${tag}`, digest: { gitCommit: commit } },
        { uri: `oci://${base.name}`, digest: { sha256: base.digest.replace('sha256:', '') } },
        { uri: `git+${source}@refs/tags/${tag}#package-lock.json`, digest: { sha256: lockfile } },
      ],
    },
    runDetails: runDetails(release, builder),
  };
}

function runDetails({ source, tag }: Release, builder: Builder): object {
  switch (builder.kind) {
    case 'workflow':
      return {
        builder: { id: `${builder.server}/${builder.workflow}` },
        ...(builder.run === undefined ? {} : { metadata: { invocationId: builder.run } }),
      };
    case 'local':
      // Whoever has the key vouches for the machine.
      return { builder: { id: `${source}/blob/${tag}/hack/release.sh#on-a-local-machine` } };
    default:
      return builder satisfies never;
  }
}
