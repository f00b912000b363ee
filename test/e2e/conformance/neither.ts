import { type Behaviour, better, type Shown } from './behaviour.ts';

const here = (title: string): Shown => ['e2e/conformance-registries.e2e.ts', title];
const affinity = (title: string): Shown => ['e2e/admission-affinity.e2e.ts', title];
const ours = (behaviour: string, why: string, ...tests: readonly Shown[]): Behaviour =>
  better(behaviour, 'neither', why, ...tests);

/** What the tests of neither describe. */
export const NEITHER: readonly Behaviour[] = [
  ours(
    'index entry without a platform',
    'its config answers for it',
    here('an index with an entry without a platform, which its config answers'),
  ),
  ours(
    'variants',
    'they are reported and do not decide, as nodes do not tell theirs',
    here('an index with variants, which do not decide'),
  ),
  ours(
    'schema 1',
    'named as such, signed or not; its pods go when the limit is over',
    here('an image of schema 1 is told of by name, and its pods go when images.fallbackAfter is over'),
    ['oci/imperfect.test.ts', 'is named as such by its tag, sent as application/json'],
    ['oci/imperfect.test.ts', 'is named as such by its digest, sent as application/json'],
  ),
  ours(
    'a bad entry in an index',
    'it is left out while another has a platform, as by containerd; one that fails for the moment is asked again',
    ['oci/imperfect.test.ts', 'because of an entry whose config is not JSON runs on what its other entries say'],
    ['oci/imperfect.test.ts', 'because of an entry that is refused runs on what its other entries say'],
    ['oci/imperfect.test.ts', 'because of an entry that is answered with 503 is asked again: that is not a verdict'],
  ),
  ours(
    'registry that redirects to another one, both with tokens',
    'both are answered, the second one anonymously, as by containerd and go-containerregistry',
    ['oci/stranger-challenges.test.ts', 'answers both, one after the other, and keeps the token of the first'],
    [
      'oci/stranger-challenges.test.ts',
      'asks for the scope of the other as well, where that knows the repository by another name',
    ],
  ),
  ours(
    'redirect to a blob store with plain http or a certificate of its own',
    'asked where registries.insecure names it; else the message names the key',
    ['oci/led-to.test.ts', 'over plain http is asked where registries.insecure names it'],
    ['oci/led-to.test.ts', 'over plain http is refused where nothing names it, with the key that opens it'],
  ),
  ours('registry with plain http that is not named', 'an Event names the key that allows it', [
    'e2e/registries.e2e.ts',
    'names the key for a registry that speaks plain http',
  ]),
  ours(
    'pull secret that is broken beside a good one, for the same host',
    'the next one is tried, whatever the token service answers to the first',
    ['oci/logins.test.ts', 'are all tried where the token service answers a page for logging in to the first'],
  ),
  ours('kept connection that the registry has just closed', 'one more try, as by the client of Go', [
    'oci/http/kept.test.ts',
    'and closed is tried once more, not for ever',
  ]),
  ours(
    'required terms of matchFields alone',
    'they are narrowed like any other',
    affinity('narrows what a pod asks for: a node by its name alone'),
  ),
  ours(
    'an empty required term',
    'it matches no node, and stays so: narrowed, it would match some',
    affinity('narrows what a pod asks for: an empty term alone'),
    affinity('narrows what a pod asks for: an empty term beside another'),
  ),
  ours(
    'image volumes',
    'an index narrows, as the kubelet refuses one without its platform; a single manifest is mounted anywhere',
    here('the image of a volume narrows where it is an index'),
    here('the image of a volume does not narrow where it is a single manifest'),
  ),
  ours(
    '429 and back-off',
    'the registry is left alone for as long as it says, for all of its images',
    here('a registry that answers 429 is left alone for as long as it says, and its pods stay gated meanwhile'),
    ['oci/resolver.test.ts', 'as long as the registry asks, and leaves the registry alone for other images too'],
  ),
  ours('one inspection for N replicas', 'one GET for 30 replicas', [
    'e2e/admission-workloads.e2e.ts',
    'asks once for the image of many replicas',
  ]),
  ours(
    'leader failover with gated pods',
    'who leads next releases them; while nobody leads no pod is gated',
    [
      'e2e/admission-leaders.e2e.ts',
      'is answered by a follower; when the leader is killed the follower releases what is gated',
    ],
    ['e2e/admission-leaders.e2e.ts', 'adds no gate while nobody leads, and again when somebody does'],
  ),
  ours(
    'a registry that never answers',
    'it holds up its own pods alone, until the limit is over',
    here('a registry that never answers holds up its own pods alone, and those not for ever'),
  ),
  ours(
    're-invocation after another webhook',
    'its first answer is known again, never gated twice, and narrowed for the sidecar',
    here('a sidecar that another webhook injects after us narrows what we have given'),
  ),
];
