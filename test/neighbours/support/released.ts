import type { Registry } from '../../../hack/cluster/registry.ts';
import type { Names } from '../../../hack/release/names.ts';
import { multiPlatform } from '../../../testimg/build.ts';
import { pushFixtures } from '../../../testimg/push.ts';
import { needsBinaries } from '../../e2e/support/programs.ts';
import { type Attestation, PROVENANCE, SIGNATURE } from './keyless.ts';

const BUILT_BY = 'hack/cluster/build.sh and hack/cluster/build-image-policies.sh';

export const needsImagePolicies = (context: Mocha.Context): void =>
  needsBinaries(context, BUILT_BY, ['helm', 'kyverno', 'policy-controller', 'keyless']);

export const needsReleaseTools = (context: Mocha.Context): void =>
  needsBinaries(context, BUILT_BY, ['release/cosign', 'keyless']);

const SOURCE = 'https://source.invalid/archaware-controller';
const WORKFLOW = '.github/workflows/release.yml@refs/tags/v0.2.0';
const ACTIONS = 'https://token.actions.githubusercontent.com';
const RELEASED: Signed = { identity: `${SOURCE}/${WORKFLOW}`, issuer: ACTIONS };

/** Of the size of a real provenance, for which Kyverno's cache has no room. */
const LONG = { buildDefinition: { externalParameters: { workflow: 'x'.repeat(2000) } } };

type Signed = { readonly identity: string; readonly issuer: string };

/** An image, and what is attached to it. */
export type Candidate = {
  readonly tag: string;
  readonly what: string;
  readonly signed?: Partial<Signed>;
  /** Default: signature and provenance. */
  readonly types?: readonly string[];
  /** Its attestations speak of the image with this tag. */
  readonly of?: string;
  /** Attached to its index; the pod names the image of one platform. */
  readonly platform?: boolean;
  readonly admitted?: boolean;
};

const from = (path: string): Partial<Signed> => ({ identity: `https://source.invalid/${path}` });

export const CANDIDATES: readonly Candidate[] = [
  { tag: '0.2.0', what: 'that the release workflow has signed', admitted: true },
  {
    ...{ tag: '0.2.1', what: 'of a later release', admitted: true },
    signed: from('archaware-controller/.github/workflows/release.yml@refs/tags/v0.2.1'),
  },
  { tag: 'nothing', what: 'to which nothing is attached', types: [] },
  { tag: 'unsigned', what: 'with provenance and no signature', types: [PROVENANCE] },
  { tag: 'unproven', what: 'with a signature and no provenance', types: [SIGNATURE] },
  { tag: 'replayed', what: 'to which the signature and provenance of another are attached', of: '0.2.0' },
  { tag: 'fork', what: 'that a fork has signed', signed: from(`somebody/archaware-controller/${WORKFLOW}`) },
  {
    ...{ tag: 'longer', what: 'that a repository with a longer name has signed' },
    signed: from(`archaware-controller-2/${WORKFLOW}`),
  },
  {
    ...{ tag: 'branch', what: 'that the release workflow of a branch has signed' },
    signed: from('archaware-controller/.github/workflows/release.yml@refs/heads/main'),
  },
  {
    ...{ tag: 'rc', what: 'that was signed on a tag of another form' },
    signed: from('archaware-controller/.github/workflows/release.yml@refs/tags/v0.3.0-rc.1'),
  },
  {
    ...{ tag: 'other-workflow', what: 'that another workflow has signed' },
    signed: from('archaware-controller/.github/workflows/ci.yml@refs/tags/v0.2.0'),
  },
  { tag: 'issuer', what: 'for which another issuer vouches', signed: { issuer: 'https://accounts.google.com' } },
  { tag: 'platform', what: 'of one platform, where the index is signed', platform: true },
];

/** Where the images are, in the place of the placeholders. */
export const namesOf = ({ host }: Registry): Names => ({
  ...{ tag: 'v0.2.0', registry: host, repository: 'owner' },
  ...{ source: SOURCE, downloads: `${SOURCE}/releases/download` },
});

/** Pushes the candidates; returns by tag what a pod names, and the attestations to attach. */
export async function pushCandidates(registry: Registry) {
  const repository = 'owner/archaware-controller';
  const platforms = ['amd64', 'arm64'].map((architecture) => ({ os: 'linux', architecture }));
  const images = new Map(CANDIDATES.map(({ tag }) => [tag, multiPlatform(platforms, { note: tag })]));
  const fixtures = [...images].map(([tag, image]) => ({ tag, build: () => image }));
  await pushFixtures({ registry: registry.host, repository, insecure: true, fixtures });
  const digest = (tag: string) => String(images.get(tag)?.root.digest);
  const references = new Map<string, string>();
  const attestations: Attestation[] = [];
  for (const { tag, signed, types = [SIGNATURE, PROVENANCE], of, platform } of CANDIDATES) {
    const one = images.get(tag)?.manifests[0]?.digest;
    references.set(tag, `${registry.host}/${repository}:${tag}@${platform ? one : digest(tag)}`);
    for (const predicateType of types) {
      const image = `${registry.host}/${repository}@${digest(tag)}`;
      const subject = of === undefined ? {} : { subject: digest(of) };
      attestations.push({ ...RELEASED, ...signed, image, ...subject, predicateType, predicate: LONG });
    }
  }
  const reference = (tag: string): string => {
    const found = references.get(tag);
    if (found === undefined) throw new Error(`no candidate ${tag}`);
    return found;
  };
  return { reference, attestations };
}
