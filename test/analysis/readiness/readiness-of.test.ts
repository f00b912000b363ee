import { expect } from 'chai';
import { IGNORE_LABEL } from '../../../src/names.ts';
import { requires, term } from '../../placement/affinities.ts';
import { policyOf, taint } from '../../placement/objects.ts';
import { node, object, owned, report, texts, verdict, type World } from './world.ts';

const ASKS_ARM = { nodeSelector: { 'kubernetes.io/arch': 'arm64' } };
const ASKS_AMD = { nodeSelector: { 'kubernetes.io/arch': 'amd64' } };
const ASKS_SSD = { nodeSelector: { disk: 'ssd' } };
const SSD = { labels: { disk: 'ssd' } };
const OLD = 'old-amd64 (c-old-amd64) is only for linux/amd64';
const GONE = 'gone (c-gone) could not be looked up (unavailable): connection refused';
const ASKED = 'its nodeSelector asks for kubernetes.io/arch=amd64';
const stating = (architectures: string) => ({ annotations: { 'archaware.dev/architectures': architectures } });
/** A node of arm64 with these taints. */
const tainted = (...texts: string[]) => node('arm64', { taints: texts.map((text) => taint(text)) });
const LEGACY = policyOf('legacy', { schedulable: ['amd64'] }, { namespaces: ['shop'] });
const ONLY = ['blocked', 'b-amd64 (c-b-amd64) is only for linux/amd64'];
const FALLBACK = { settings: { unresolvable: 'fallback', fallback: ['arm64'] } } as const;
const RELEASE = { settings: { noCommonArchitecture: 'release' } } as const;
const ONLY_AMD = { settings: { schedulable: ['amd64'] } };
const overridden = (pattern: string, ...architectures: string[]) => ({
  settings: { overrides: [{ pattern, architectures }] },
});
const NEVER = { containers: [{ name: 'a', image: 'old-amd64', imagePullPolicy: 'Never' }] };
const TWICE = ['a', 'b'].map((name) => ({ name, image: 'x-amd64' }));
const MORE = node('arm64', { name: 'arm64-2', ...SSD });
const ALONE = 'archaware leaves it alone: ';
const EXCLUDED = { settings: { excludeNamespaces: ['shop'] } };
const podAffinity = { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: 'zone' }] };
const OURS = tainted('supported-arch=arm64:NoSchedule');

describe('verdicts of the report', () => {
  const rows: readonly (readonly [
    title: string,
    given: Parameters<typeof verdict>[0],
    expected: readonly string[],
    world?: Partial<World>,
  ])[] = [
    ['ready', {}, ['ready']],
    ['blocked by the image of a container', { images: ['web', 'old-amd64'] }, ['blocked', OLD]],
    ['containers of one image', { pod: { containers: TWICE } }, ['blocked', 'x-amd64 (a, b) is only for linux/amd64']],
    ['blocked and pinned shows both', { images: ['old-amd64'], pod: ASKS_AMD }, ['blocked', OLD, ASKED]],
    ['a DaemonSet is missing', { kind: 'DaemonSet', images: ['old-amd64'] }, ['missing', OLD]],
    ['a DaemonSet for others', { kind: 'DaemonSet', images: ['old-amd64'], pod: ASKS_AMD }, ['pinned', OLD, ASKED]],
    ['a known image blocks, whatever an unknown one says', { images: ['gone', 'old-amd64'] }, ['blocked', OLD, GONE]],
    ['unknown stays unknown with the policy fallback', { images: ['gone'] }, ['unknown', GONE], FALLBACK],
    ['images without a common architecture block', { images: ['a-arm64', 'b-amd64'] }, ONLY],
    ['released pods stay blocked', { images: ['a-arm64', 'b-amd64'] }, ONLY, RELEASE],
    ['WebAssembly', { images: ['wasm'] }, ['blocked', 'wasm (c-wasm) is WebAssembly and needs a RuntimeClass']],
    ['WebAssembly with a RuntimeClass is ready', { images: ['wasm'], pod: { runtimeClassName: 'wasm' } }, ['ready']],
    ['an image that is never pulled does not narrow', { pod: NEVER }, ['ready']],
    ['images.overrides answers', { images: ['old-amd64'] }, ['ready'], overridden('docker.io/library/old-*', 'arm64')],
    [
      'images.overrides blocks',
      { images: ['web'] },
      ['blocked', 'web (c-web) is only for linux/amd64, by images.overrides'],
      overridden('*', 'amd64'),
    ],
    ['a statement that lists the target', { images: ['gone'], ...stating('arm64') }, ['ready']],
    ['one that does not', stating('amd64'), ['pinned', 'its annotation archaware.dev/architectures says amd64']],
    ['an invalid statement does not count', stating('x86'), ['ready']],
    ['it is not schedulable', {}, ['pinned', 'architectures.schedulable allows only amd64'], ONLY_AMD],
    ['a nodeSelector for the target', { pod: ASKS_ARM }, ['ready']],
    ['a nodeSelector for another architecture', { pod: ASKS_AMD }, ['pinned', ASKED]],
    ['a nodeSelector that none of them has', { pod: ASKS_SSD }, ['pinned', 'its nodeSelector asks for disk=ssd']],
    ['a nodeSelector that one of them has', { pod: ASKS_SSD }, ['ready'], { nodes: [node('arm64'), MORE] }],
    [
      'a required node affinity',
      { pod: { affinity: requires(term('arch In amd64')) } },
      ['pinned', 'its node affinity asks for kubernetes.io/arch In (amd64)'],
    ],
    ['podAffinity does not pin', { pod: { affinity: { podAffinity } } }, ['ready']],
    ['a nodeName in a template', { pod: { nodeName: 'amd64-1' } }, ['pinned', 'it names the node amd64-1']],
    [
      'the nodeName that the scheduler chose does not pin',
      { kind: 'Pod', metadata: { uid: 'u' }, pod: { nodeName: 'amd64-1' } },
      ['ready'],
    ],
    [
      'a nodeName in a manifest of a pod does',
      { kind: 'Pod', pod: { nodeName: 'amd64-1' } },
      ['pinned', 'it names the node amd64-1'],
    ],
    [
      "others' taint",
      {},
      ['pinned', 'it does not tolerate the taint team=ml:NoSchedule of arm64 nodes'],
      { nodes: [node('amd64'), tainted('team=ml:NoSchedule')] },
    ],
    ["archaware's own taint", {}, ['ready'], { nodes: [OURS] }],
    [
      "archaware's own taint in a mode without tolerations",
      {},
      ['pinned', 'it does not tolerate the taint supported-arch=arm64:NoSchedule of arm64 nodes'],
      { settings: { mode: 'affinity' }, nodes: [OURS] },
    ],
    [
      'a taint that passes',
      {},
      ['ready'],
      { nodes: [tainted('node.kubernetes.io/not-ready:NoSchedule', 'node.kubernetes.io/unschedulable:NoSchedule')] },
    ],
    [
      'pods.matchNodeLabels asks for a label that no node of the target has',
      { labels: { team: 'a' } },
      ['pinned', 'pods.matchNodeLabels asks for team=a'],
      { settings: { mode: 'affinity', matchNodeLabels: ['team'] } },
    ],
    ['without one, copies of the others stand in', { pod: ASKS_SSD }, ['ready'], { nodes: [node('amd64', SSD)] }],
    [
      'a copy has no instance type',
      { pod: { nodeSelector: { 'node.kubernetes.io/instance-type': 'm5.large' } } },
      ['pinned', 'its nodeSelector asks for node.kubernetes.io/instance-type=m5.large'],
      { nodes: [node('amd64', { labels: { 'node.kubernetes.io/instance-type': 'm5.large' } })] },
    ],
    ['without nodes, other labels are not judged', { pod: ASKS_SSD }, ['ready'], { nodes: [] }],
    ['without nodes, one is', { pod: ASKS_AMD }, ['pinned', 'its nodeSelector asks for amd64'], { nodes: [] }],
    ['ignored', { labels: { [IGNORE_LABEL]: 'true' } }, ['unknown', `${ALONE}it is labelled ${IGNORE_LABEL}=true`]],
    ['an excluded namespace', {}, ['unknown', `${ALONE}pods.excludeNamespaces names its namespace`], EXCLUDED],
    [
      "a policy's architectures",
      {},
      ['pinned', 'architectures.schedulable of the policy legacy allows only amd64'],
      { settings: { policies: [LEGACY] } },
    ],
  ];
  for (const [title, given, expected, world] of rows)
    it(title, () => expect(verdict(given, world)).to.deep.equal(expected));

  it('joins the parts of an owner that was not read to the worst', () => {
    const metadata = owned('SparkApplication', 'nightly', 'u1');
    const { workloads } = report({
      objects: [
        object({ kind: 'Pod', name: 'driver', images: ['web'], metadata }),
        object({ kind: 'Pod', name: 'exec-1', images: ['old-amd64'], metadata }),
        object({ kind: 'Pod', name: 'exec-2', images: ['old-amd64'], metadata }),
      ],
    });
    expect(workloads.map(({ kind, name, replicas, cpu }) => [kind, name, replicas, cpu])).to.deep.equal([
      ['SparkApplication', 'nightly', 3, 3],
    ]);
    expect(texts(workloads[0]?.verdicts.arm64)).to.deep.equal(['blocked', OLD]);
  });
});
