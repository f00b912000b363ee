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
    here('an index with an entry without a platform, answered by its config'),
  ),
  ours(
    'variants',
    'they are reported and do not decide, because nodes do not report theirs',
    here('an index with variants, which do not decide'),
  ),
  ours(
    'schema 1',
    'reported as schema 1, signed or not; its pods are released when the limit is over',
    here('an image of schema 1 is named in an Event, and its pods are released when images.fallbackAfter is over'),
    ['oci/imperfect.test.ts', 'is named as such by its tag, sent as application/json'],
    ['oci/imperfect.test.ts', 'is named as such by its digest, sent as application/json'],
  ),
  ours(
    'a bad entry in an index',
    'it is left out if another entry has a platform, as in containerd; an entry that fails temporarily is looked up again',
    ['oci/imperfect.test.ts', 'because of an entry whose config is not JSON runs on what its other entries say'],
    ['oci/imperfect.test.ts', 'because of an entry that is refused runs on what its other entries say'],
    ['oci/imperfect.test.ts', 'because of an entry that is answered with 503 is asked again: that is not a verdict'],
  ),
  ours(
    'registry that redirects to another one, both with tokens',
    'both challenges are answered, the second one anonymously, as in containerd and go-containerregistry',
    ['oci/stranger-challenges.test.ts', 'answers both, one after the other, and keeps the token of the first'],
    [
      'oci/stranger-challenges.test.ts',
      'asks for the scope of the other as well, where that knows the repository by another name',
    ],
  ),
  ours(
    'redirect to a blob store with plain http or a self-signed certificate',
    'asked if registries.insecure names it; otherwise the message names the key',
    ['oci/led-to.test.ts', 'over plain http is asked where registries.insecure names it'],
    ['oci/led-to.test.ts', 'over plain http is refused where nothing names it, with the key that opens it'],
  ),
  ours('registry with plain http that is not named', 'an Event names the key that allows it', [
    'e2e/registries.e2e.ts',
    'names the key for a registry that speaks plain http',
  ]),
  ours(
    'a broken and a valid pull secret for the same host',
    'the second is tried, whatever the token service answers to the first',
    ['oci/logins.test.ts', 'are all tried where the token service answers a page for logging in to the first'],
  ),
  ours('kept connection that the registry has just closed', "one more try, as in Go's client", [
    'oci/http/stale-connections.test.ts',
    'and closed is tried once more, not for ever',
  ]),
  ours(
    'required terms with only matchFields',
    'they are narrowed like all others',
    affinity('narrows what a pod asks for: a node by its name alone'),
  ),
  ours(
    'an empty required term',
    'it matches no node and stays unchanged: narrowed, it would match some',
    affinity('narrows what a pod asks for: an empty term alone'),
    affinity('narrows what a pod asks for: an empty term beside another'),
  ),
  ours(
    'image volumes',
    'an index narrows the set, because the kubelet refuses one without the platform of the node; a single manifest is mounted on any node',
    here('the image of a volume narrows the set if it is an index'),
    here('the image of a volume does not narrow the set if it is a single manifest'),
  ),
  ours(
    '429 and back-off',
    'an account is not used for as long as the registry says: at the repository, at its project once two repositories answered 429, and at the projects that met it once two did; other projects are asked',
    here('a registry that answers 429 is not asked for as long as it says, and its pods stay gated'),
    ['oci/resolver.test.ts', 'as long as the registry asks, and leaves the project alone for other images too'],
  ),
  ours('one inspection for N replicas', 'one GET for 30 replicas', [
    'e2e/admission-workloads.e2e.ts',
    'asks once for the image of many replicas',
  ]),
  ours(
    'leader failover with gated pods',
    'the next leader releases them; without a leader no pod is gated',
    [
      'e2e/admission-leaders.e2e.ts',
      'is answered by a follower; when the leader is killed the follower releases what is gated',
    ],
    ['e2e/admission-leaders.e2e.ts', 'adds no gate while nobody leads, and again when somebody does'],
  ),
  ours(
    'a registry that never answers',
    'it delays only its own pods, until the limit is over',
    here('a registry that never answers delays only its own pods, and for a limited time'),
  ),
  ours(
    're-invocation after another webhook',
    'the first answer is recognized: the pod is not gated twice, and its affinity is narrowed for the sidecar',
    here('a sidecar that another webhook injects later narrows the affinity'),
  ),
];
