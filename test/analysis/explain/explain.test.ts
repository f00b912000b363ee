import { expect } from 'chai';
import { explainPlacement, imagesToAsk } from '../../../src/analysis/explain/explain.ts';
import type { Explanation } from '../../../src/analysis/explain/explanation.ts';
import type { JsonObject } from '../../../src/kit/json.ts';
import { requires, term } from '../../placement/affinities.ts';
import { digest, policyOf, taint } from '../../placement/objects.ts';

import { BOTH, explained, type Given, IGNORED, inputOf, node, tolerating } from './explained.ts';

const OF_AGENT = { ownerReferences: [{ kind: 'DaemonSet', name: 'agent', controller: true }] };
const REFUSED = { reason: 'WriteRefused', note: 'no' } as const;
const REFUSED_PODS = 'Event RefusedByPolicy: pods cannot be created';
const BY_POLICY = { reason: 'RefusedByPolicy', note: 'pods cannot be created' } as const;
const GOING = { deletionTimestamp: '2026-01-01T00:00:00Z' };
const UNTAINTED = node('n', 'amd64', { taints: [] });
const ASKS_SSD = { nodeSelector: { disk: 'ssd' } };
const schedulable = (...names: string[]) => ({ settings: { schedulable: names } });
const overriding = (architecture: string) => ({ overrides: [{ pattern: 'a', architectures: [architecture] }] });
const NAMES_NODE = [{ manager: 'kubectl', fieldsV1: { 'f:spec': { 'f:nodeName': {} } } }];
const ON_AMD = { containers: [{ name: 'app', image: 'a' }], nodeName: 'amd-1' };
/** A pod on the node of amd64 whose image has these platforms by its tag, and had those when it was pulled. */
const pulled = (now: string, then: string) => ({ images: { a: now, [`a@${digest('x')}`]: then }, spec: ON_AMD });
const LEFT_ALONE = { metadata: IGNORED };
const FILE = { kind: 'Deployment' } as const;
const WAIT = { settings: { unresolvable: 'wait' } } as const;
const SYSTEM = { namespace: { name: 'kube-system', labels: {} } };
const NEVER = { spec: { containers: [{ image: 'a', imagePullPolicy: 'Never' }] } };
const APART = { images: 'amd64 arm64' };
const AFFINITY = { mode: 'affinity' } as const;
const OTHER_OS = 'or change the operating system that the pod asks for';
const TOLERATES_ALL = { tolerations: [{ operator: 'Exists' }] };
const ASKS_ARM = { nodeSelector: { 'kubernetes.io/arch': 'arm64' } };
const stating = (architectures: string) => ({
  metadata: { annotations: { 'archaware.dev/architectures': architectures } },
});
/** A Deployment in a file. */
const deployed = (
  images: NonNullable<Given['images']>,
  spec: JsonObject,
  nodes: NonNullable<Given['nodes']>,
): Given => ({ kind: 'Deployment', images, spec, nodes });

type Row = readonly [given: string, what: Given, expected: readonly string[]];

/** `told`: what an explanation says of one thing, as lines. */
function check(told: (explanation: Explanation) => readonly string[], rows: readonly Row[]): void {
  for (const [given, what, expected] of rows)
    it(`${given}: ${expected.join('; ') || 'nothing'}`, () => expect(told(explained(what))).to.deep.equal(expected));
}

describe('an explanation of the decision', () => {
  const UNRESOLVED = 'could not be resolved';
  const OPEN = 'images.unresolvable: open';
  const rows: [given: string, what: Given, expected: string][] = [
    ['its images', { images: 'amd64,arm64 arm64' }, 'place: its images run on arm64'],
    ['a failed image', { images: '!not-found' }, `wait: image a ${UNRESOLVED} (not-found) at registry.example.com: no`],
    ['its statement', stating('arm64'), 'place: its annotation archaware.dev/architectures says arm64'],
    ['images that nobody asks for', NEVER, 'place: its images set no limit; the cluster has amd64, arm64'],
    ['an ignored pod', LEFT_ALONE, 'skip: it is labelled archaware.dev/ignore=true'],
    ['a finished pod', { status: { phase: 'Failed' } }, 'skip: it has finished'],
    ['a system pod', { images: '!timeout', ...SYSTEM }, `place: tolerates amd64, arm64: not resolved: a (${OPEN})`],
  ];
  for (const [given, what, expected] of rows) {
    it(`${given}: ${expected}`, () => {
      const { decision } = explained(what);
      expect(`${decision.kind}: ${decision.reason}`).to.equal(expected);
    });
  }

  it('names the decision after the wait, unless the wait never ends', () => {
    const images = { a: '!not-found', b: BOTH };
    expect(explained({ images }).decision.afterwards).to.deep.include({ kind: 'place', basis: 'open' });
    expect(explained({ images, settings: { unresolvable: 'wait' } }).decision).not.to.have.property('afterwards');
    const fallback = explained({ images, settings: { unresolvable: 'fallback', fallback: ['amd64'] } });
    expect(fallback.decision.afterwards).to.deep.include({ basis: 'fallback', architectures: ['amd64'] });
  });
});

describe('an explanation of images', () => {
  it('names only the images that need a registry', () => {
    const images = { a: BOTH, b: BOTH };
    const asked = (more: Given) => imagesToAsk(inputOf({ images, ...more })).map(({ image }) => image);
    expect(asked({})).to.deep.equal(['a', 'b']);
    expect(asked({ settings: { overrides: [{ pattern: '*/a', architectures: ['amd64'] }] } })).to.deep.equal(['b']);
    expect(asked(stating('all'))).to.deep.equal([]);
    expect(asked(LEFT_ALONE)).to.deep.equal([]);
  });

  const rows: [given: string, what: Given, expected: string | undefined][] = [
    ['that are asked', { images: BOTH }, undefined],
    ['that are never pulled', NEVER, 'never-pulled'],
    ['of an override', { images: '!denied', settings: overriding('amd64') }, 'override'],
    ['of a pod that states its architectures', { images: '!denied', ...stating('all') }, 'statement'],
    ['of a statement that cannot be read', { images: BOTH, ...stating('?') }, undefined],
    ['of a pod that is left alone', { images: '!denied', ...LEFT_ALONE }, 'left-alone'],
  ];
  for (const [given, what, expected] of rows)
    it(`${given}: ${expected ?? 'asked'}`, () => expect(explained(what).images[0]?.notAsked).to.equal(expected));
});

describe('an explanation of how the architectures are narrowed', () => {
  const ONLY_ARM = 'architectures.schedulable: arm64 -> arm64';
  const told = ({ intersection }: Explanation) =>
    intersection.map(({ by, architectures, common }) => `${by}: ${architectures} -> ${common}`);
  check(told, [
    [
      'image by image',
      { images: 'amd64,arm64,s390x amd64,arm64 arm64' },
      ['a: amd64,arm64,s390x -> amd64,arm64,s390x', 'b: amd64,arm64 -> amd64,arm64', 'c: arm64 -> arm64'],
    ],
    ['with other architectures that the nodes run', { images: '386' }, ['a: 386,amd64 -> 386,amd64']],
    ['of what is schedulable', { images: BOTH, ...schedulable('arm64') }, [`a: ${BOTH} -> ${BOTH}`, ONLY_ARM]],
    ['without failed images', { images: '!denied amd64,arm64' }, ['b: amd64,arm64 -> amd64,arm64']],
    ['of a statement', stating('arm64'), ['archaware.dev/architectures: arm64 -> arm64']],
    ['of a pod that is left alone', { status: { phase: 'Failed' }, ...schedulable('arm64') }, []],
  ]);
});

describe('an explanation of settings', () => {
  const always = ['taints.key', 'taints.effect'];
  const unresolved = ['images.unresolvable', 'images.fallbackAfter'];
  const released = { noCommonArchitecture: 'release' } as const;
  const excluded = { excludeNamespaces: ['sh*'] };
  const told = (explanation: Explanation) => explanation.settings.map(({ key }) => key);
  check(told, [
    ['an ordinary pod', { images: BOTH }, always],
    ['an override', { images: { a: '' }, settings: overriding('arm64') }, [...always, 'images.overrides']],
    ['an image that more nodes run', { images: '386' }, [...always, 'architectures.compatible']],
    ['schedulable architectures', { images: BOTH, ...schedulable('arm64') }, [...always, 'architectures.schedulable']],
    ['a failed image', { images: '!denied' }, [...always, ...unresolved]],
    ['a failed image, for ever', { images: '!denied', ...WAIT }, [...always, 'images.unresolvable']],
    [
      'a failed image and a fallback',
      { images: '!denied', settings: { unresolvable: 'fallback', fallback: ['amd64'] } },
      [...always, ...unresolved, 'architectures.fallback'],
    ],
    ['a system pod', { images: '!denied', ...SYSTEM }, [...always, ...unresolved, 'systemNamespaces']],
    ['nothing in common', { images: 'amd64 arm64' }, [...always, 'placement.noCommonArchitecture']],
    ['released', { ...APART, settings: released }, [...always, 'placement.noCommonArchitecture']],
    ['an excluded namespace', { images: BOTH, settings: excluded }, ['pods.excludeNamespaces', ...always]],
  ]);
});

describe('an explanation of tolerations', () => {
  const told = ({ tolerations }: Explanation) =>
    tolerations.map(({ value, present, stale }) => `${value} ${stale ? 'stale' : present ? 'present' : 'missing'}`);
  check(told, [
    ['one of two', { images: BOTH, spec: tolerating('arm64') }, ['amd64 missing', 'arm64 present']],
    ['of everything', { images: 'arm64', spec: TOLERATES_ALL }, ['arm64 present']],
    ['one too many', { images: 'arm64', spec: tolerating('amd64', 'arm64') }, ['arm64 present', 'amd64 stale']],
    ['one too many in a template', { ...FILE, images: 'arm64', spec: tolerating('amd64') }, ['arm64 missing']],
    ['of a guess', { images: '!denied', spec: tolerating('amd64') }, []],
  ]);
});

describe('an explanation of nodes', () => {
  const told = ({ nodes }: Explanation) =>
    nodes.map(({ architecture, names, runs, fits, placed }) => {
      const known = runs === undefined ? 'unknown' : runs ? 'runs' : 'runs not';
      return `${architecture} ${names.join('+')}, ${known}, ${fits ? 'fits' : placed.fits ? 'will fit' : 'fits not'}`;
    });
  const labelled = [node('x', 'arm64', {}, { disk: 'ssd' }), node('y', 'arm64')];
  const NOT_AMD = 'amd64 amd-1, runs not, fits not';
  const ARM = 'arm64 arm-1+arm-2';
  const SSD_ONLY = { images: BOTH, spec: ASKS_SSD, nodes: labelled };
  check(told, [
    ['by the set', { images: 'arm64' }, [NOT_AMD, `${ARM}, runs, will fit`]],
    ['without our taint', { images: 'arm64', nodes: [UNTAINTED] }, ['amd64 n, runs not, fits']],
    ['of a held pod', APART, [NOT_AMD, `${ARM}, runs not, fits not`]],
    ['of an unknown image beside a known one', { images: '!denied arm64' }, [NOT_AMD, `${ARM}, unknown, fits not`]],
    ['by what the pod asks for', SSD_ONLY, ['arm64 x, runs, will fit', 'arm64 y, runs, fits not']],
    ['of a pod that is left alone', { ...LEFT_ALONE, nodes: [node('n', 'amd64')] }, ['amd64 n, unknown, fits not']],
  ]);
});

describe('an explanation names the state of the pod', () => {
  const SCHEDULED = { conditions: [{ type: 'PodScheduled', status: 'False', message: '0/3' }] };
  const rows: [given: string, what: Given, expected: JsonObject][] = [
    ['in a file', { kind: 'Deployment' }, { state: 'not-applied' }],
    ['waiting, with what the scheduler says', { status: SCHEDULED }, { state: 'pending', scheduler: '0/3' }],
    ['gated', { spec: { schedulingGates: [{ name: 'g' }] } }, { state: 'gated', gates: ['g'] }],
    ['bound', { spec: { nodeName: 'n1' } }, { state: 'bound', node: 'n1' }],
    ['finished', { spec: { nodeName: 'n1' }, status: { phase: 'Succeeded' } }, { state: 'finished' }],
    ['going', { metadata: GOING }, { state: 'deleting' }],
    ['of another system', { ...FILE, spec: { os: { name: 'windows' } } }, { os: 'windows' }],
  ];
  for (const [given, what, expected] of rows)
    it(`${given}: ${JSON.stringify(expected)}`, () => expect(explained(what).pod).to.deep.include(expected));
});

describe('an explanation by a policy', () => {
  it('names the policy and the source of its values', () => {
    const policies = [policyOf('arm', { schedulable: ['arm64'] })];
    const told = explained({ images: BOTH, settings: { policies } });
    expect(told).to.have.property('policy', 'arm');
    expect(told.decision.architectures).to.deep.equal(['arm64']);
    expect(told.settings).to.deep.include({
      key: 'architectures.schedulable',
      value: 'architectures.schedulable',
      source: 'arm',
    });
  });
});

/** The status of a container that died of the format; `name`: its image is known by that digest. */
const died = (name: string, message = 'exec /app: exec format error'): JsonObject => ({
  containerStatuses: [
    { name: 'app', imageID: `docker.io/x/y@${digest(name)}`, state: { terminated: { exitCode: 255, message } } },
  ],
});
const CORDONED = node('amd-1', 'amd64', { unschedulable: true });

const LABELLED = ['amd64', 'arm64'].map((name) =>
  node(`${name}-1`, name, {}, { 'kubernetes.io/arch': name, 'kubernetes.io/hostname': `${name}-1` }),
);

describe('the advice', () => {
  const arm = node('arm-1', 'arm64');
  const BUILDS = ['push a linux/amd64 build of b', 'or push a linux/arm64 build of a'];
  const not = (state: string) =>
    node('arm-1', 'arm64', { taints: [taint(`node.kubernetes.io/not-${state}:NoSchedule`)] });
  const CORDON = { unschedulable: true };
  const SELECTOR = 'or remove the architecture from its nodeSelector';
  const obstructed = [node('x', 'arm64', CORDON, { disk: 'ssd' }), node('y', 'arm64', CORDON)];
  const cordoned = [node('arm-1', 'arm64', CORDON), node('amd-1', 'amd64')];
  const building = (architecture: string) => `or push a linux/${architecture} build of a`;
  const template: Given = { kind: 'DaemonSet', isTemplate: true, images: BOTH };
  const rows: [given: string, what: Given, expected: readonly (string | RegExp)[]][] = [
    ['a pod in a file that fits', { ...FILE, images: BOTH }, []],
    ['a pod that is being deleted, whatever its images', { ...APART, metadata: GOING, spec: ASKS_SSD }, []],
    ['a pod that has ended, whatever its images', { images: '!not-found', status: { phase: 'Failed' } }, []],
    ['a pod that lacks its tolerations', { images: BOTH }, [/^archaware adds the missing tolerations/]],
    [
      'a gated pod whose release is refused',
      {
        images: BOTH,
        spec: { schedulingGates: [{ name: 'archaware.dev/architecture' }] },
        refusal: { reason: 'WriteRefused', note: '500 pod tolerations conflict with its namespace whitelist' },
      },
      [
        /^allow the controller's write in the policy or webhook that refuses it .*; Event WriteRefused: 500 pod tolerations conflict/,
      ],
    ],
    [
      'a pod that was created without its affinity, because a policy refuses it',
      {
        images: BOTH,
        nodes: [node('amd64-1', 'amd64', { taints: [] }, { 'kubernetes.io/arch': 'amd64' })],
        settings: AFFINITY,
        refusal: BY_POLICY,
      },
      [REFUSED_PODS],
    ],
    ['a template whose pods are', { ...FILE, isTemplate: true, images: BOTH, refusal: BY_POLICY }, [REFUSED_PODS]],
    ['a pod that has what it needs by now', { images: BOTH, spec: TOLERATES_ALL, refusal: REFUSED }, []],
    ['a DaemonSet that lacks that', { ...template, refusal: REFUSED }, [/^allow the controller's write .*: no/]],
    ['a DaemonSet that has it by now', { ...template, spec: TOLERATES_ALL, refusal: REFUSED }, []],
    ['images that two builds bring together', APART, BUILDS],
    ['that one build brings together', { images: `${BOTH} amd64 arm64 arm64` }, ['push a linux/arm64 build of b']],
    [
      'an override that is narrower than need be',
      { images: { a: '', b: 'linux/amd64' }, settings: overriding('arm64') },
      ['add amd64 for a to images.overrides', 'or push a linux/arm64 build of b'],
    ],
    [
      'images that meet where they may not',
      { images: 's390x', ...schedulable('arm64') },
      ['add s390x, on which all images run, to architectures.schedulable', 'or push a linux/arm64 build of a'],
    ],
    ['such a statement', { ...stating('arm64'), ...schedulable('amd64') }, [/^add an architecture of archi/]],
    [
      'a statement with a mistake',
      { ...stating('amd46'), images: '!not-found' },
      [
        /^correct the annotation archaware.dev\/architectures: got "amd46", expected .* did you mean amd64\?$/,
        /^push a/,
        /^or state/,
      ],
    ],
    [
      'a set without a node',
      { ...FILE, images: 's390x' },
      ['add a node of s390x', ...['amd64', 'arm64'].map(building)],
    ],
    [
      'an image that is not found',
      { images: '!not-found' },
      [
        /^push a, or correct its name/,
        /in images\.overrides, or in the annotation archaware.dev\/architectures .* on the pod$/,
      ],
    ],
    [
      'an image without a login',
      { ...FILE, images: '!denied' },
      [/imagePullSecret for registry.example.com .* service account shop\/default/, /on the template$/],
    ],
    [
      'an image whose login was refused',
      { images: { a: '!denied pull secret "old"' } },
      ['renew the login of pull secret "old": registry.example.com refused it, or it may not read a', /^or state/],
    ],
    [
      'a secret that is of no use',
      { images: '!denied', secrets: [{ name: 's', problem: 'it does not exist' }, { name: 't' }] },
      ['fix the pull secret shop/s: it does not exist', /^give a a login/, /^or state/],
    ],
    ['a registry that says not now', { images: '!rate-limited' }, [/registries\.mirrors/, /^or state/]],
    ['a registry that is away', { images: '!timeout' }, [/^check that registry.example.com can be/, /^or state/]],
    ['one that may not be asked', { images: '!forbidden-address' }, [/registries\.addresses\.allow/, /^or state/]],
    ['an image that is none', { images: '!malformed' }, [/^correct the name of a/, /^or state/]],
    ['nodes that are cordoned', deployed('arm64', {}, cordoned), ['kubectl uncordon arm-1']],
    [
      'nodes with a taint of others',
      deployed('arm64', {}, [node('arm-1', 'arm64', { taints: [taint('gpu=yes:NoSchedule')] })]),
      ['add a toleration for gpu=yes:NoSchedule to the pod, or remove that taint from arm-1'],
    ],
    ['nodes that are not ready', deployed('arm64', {}, [not('ready')]), ['see why arm-1 is not-ready']],
    [
      'nodes without a label',
      deployed(BOTH, ASKS_SSD, [arm]),
      ['label arm-1 as the pod requires (disk=ssd), or change what the pod requires'],
    ],
    ['the nodes with the fewest obstacles', deployed(BOTH, ASKS_SSD, obstructed), ['kubectl uncordon x']],
    ['a nodeName in a file', deployed(BOTH, { nodeName: 'gone' }, [arm]), ['remove nodeName (gone) from the pod']],
    [
      'a pod that runs on a node which its images no longer have',
      { images: 'arm64', spec: ON_AMD },
      [/^bound to node amd-1 \(amd64\), but its images now run on arm64: its next start there would fail; create/],
    ],
    [
      'the same, which tolerates every taint and so could come back',
      { images: 'arm64', spec: { ...ON_AMD, tolerations: [{ operator: 'Exists' }] } },
      [/would fail; a new pod may come to this node again: give the pod the nodeSelector kubernetes\.io\/arch: arm64$/],
    ],
    [
      'a pod that fails on the wrong node',
      { ...pulled('arm64', 'arm64'), status: died('x', '') },
      [/^container app fails on node amd-1 \(amd64\), for which its image has no platform; create the pod again; /],
    ],
    [
      'a pod that fails on the wrong node, which its author named',
      { ...pulled('arm64', 'arm64'), metadata: { managedFields: NAMES_NODE }, status: died('x', '') },
      [/has no platform; remove nodeName \(amd-1\) from the pod, or push a linux\/amd64 build of a; pulled /],
    ],
    [
      'a pod that died of the format, whose image says that it runs there',
      { ...pulled('amd64', 'amd64'), status: died('x') },
      [
        /^container app died .*; its image a@\S+ claims to run on amd64, but it does not .*: rebuild it, or state the architectures of "a" in images.overrides; .*a \(linux\/amd64\)$/,
      ],
    ],
    [
      'a bound pod with a toleration too many',
      { images: 'arm64', spec: { nodeName: 'arm-1', ...tolerating('amd64', 'arm64') } },
      [/a toleration cannot be removed from a pod$/],
    ],
    [
      'a bound pod of a DaemonSet',
      { spec: { nodeName: 'arm-1' }, metadata: OF_AGENT },
      ['explain its DaemonSet: kubectl -n shop get daemonset agent -o yaml | archaware explain -f -'],
    ],
    [
      "a template of OpenKruise's DaemonSet",
      { kind: 'DaemonSet', apiVersion: 'apps.kruise.io/v1alpha1', images: 'arm64' },
      [/^DaemonSet[.]apps[.]kruise[.]io shop\/p creates pods only on nodes/],
    ],
    [
      'a pod that is held by a gate',
      { images: BOTH, spec: { schedulingGates: [{ name: 'g.example.com/x' }] } },
      [/^the pod waits until the gate g.example.com\/x is removed/, /^archaware adds/],
    ],
    [
      'an ignored pod',
      { ...LEFT_ALONE, nodes: [arm] },
      [
        /^remove the label archaware.dev\/ignore, or give it tolerations of its own/,
        /^add a toleration for supported-arch=arm64:NoSchedule to the pod if its images run on arm64$/,
      ],
    ],
    ['a finished pod', { images: '!denied', status: { phase: 'Succeeded' } }, []],
    [
      'an image and a selector that contradict each other',
      deployed({ 'shop/legacy:1.9': 'linux/amd64' }, ASKS_ARM, LABELLED),
      ['the pod asks for arm64, its image is amd64 only: push a linux/arm64 build of shop/legacy:1.9', SELECTOR],
    ],
    [
      'such images without any node of what it asks for',
      deployed('amd64,arm64 amd64', { nodeSelector: { 'kubernetes.io/arch': 's390x' } }, LABELLED),
      ['the pod asks for s390x, its images run on amd64 only: push a linux/s390x build of a, b', SELECTOR],
    ],
    [
      'such a pod that runs, and would come back to the same node',
      { images: 'amd64', spec: { nodeName: 'arm64-1', affinity: requires(term('arch NotIn amd64')) }, nodes: LABELLED },
      [
        'bound to node arm64-1 (arm64), but its images now run on amd64: its next start there would fail; ' +
          'the pod asks for another architecture, its image is amd64 only: push a linux/arm64 build of a, ' +
          'or remove the architecture from its node affinity',
      ],
    ],
    [
      'an architecture that is asked for and not schedulable',
      { ...FILE, images: BOTH, spec: ASKS_ARM, ...schedulable('amd64'), nodes: LABELLED },
      [
        'the pod asks for arm64, architectures.schedulable leaves amd64 only: add arm64 to architectures.schedulable',
        SELECTOR,
      ],
    ],
    [
      'a statement and a selector that contradict each other',
      { ...FILE, ...stating('amd64'), spec: ASKS_ARM, nodes: LABELLED },
      [
        'the pod asks for arm64, its annotation archaware.dev/architectures says amd64: change the annotation, if its images run there',
        SELECTOR,
      ],
    ],
    ...['topology.kubernetes.io/zone', 'kubernetes.io/hostname', 'node.kubernetes.io/instance-type'].map(
      (label): (typeof rows)[number] => [
        `nodes without ${label}, which nobody may set`,
        {
          kind: 'Deployment',
          images: BOTH,
          spec: { containers: [{ image: 'a' }], nodeSelector: { [label]: 'x' } },
          nodes: [node('arm-1', 'arm64', {}, { [label]: 'y' })],
        },
        [`change what the pod requires (${label}=x, and arm-1 has ${label}=y), or add a node that has it`],
      ],
    ),
    [
      'a pod for another system than the nodes have',
      deployed('windows/amd64', { nodeSelector: { 'kubernetes.io/os': 'windows' } }, [
        node('n', 'amd64', {}, { 'kubernetes.io/os': 'linux' }),
      ]),
      ['no node runs windows: add a node with windows on amd64', OTHER_OS],
    ],
    [
      'no build of an image for Windows if no node runs Windows',
      { ...FILE, images: 'windows/amd64 windows/arm64', spec: { os: { name: 'windows' } } },
      ['no node runs windows: add a node with windows', OTHER_OS],
    ],
    [
      'a node of the wrong architecture that is asked for by its name',
      deployed('amd64', { nodeSelector: { 'kubernetes.io/hostname': 'arm64-1' } }, LABELLED),
      [
        'change what the pod requires (kubernetes.io/hostname=arm64-1, and amd64-1 has kubernetes.io/hostname=amd64-1), or add a node that has it',
        'or push a linux/arm64 build of a',
      ],
    ],
    // explain gives the same reason as run.
    ['a healthy pod on one of the nodes that it fits', { images: BOTH, spec: ON_AMD }, []],
    ['one that architectures.schedulable leaves out', { images: BOTH, spec: ON_AMD, ...schedulable('arm64') }, []],
    ['one that fails there', { ...pulled(BOTH, BOTH), ...schedulable('arm64'), status: died('x', '') }, []],
    [
      'a pod of a DaemonSet on a wrong node',
      { ...pulled('arm64', 'arm64'), metadata: OF_AGENT, status: died('x') },
      [
        /^container app died with an exec format error on node amd-1 \(amd64\); explain its DaemonSet: .*; pulled a@\S+ \(linux\/arm64\); a \(linux\/arm64\)$/,
      ],
    ],
  ];
  for (const [given, what, expected] of rows) {
    it(`for ${given}: ${expected.join('; ') || 'none'}`, () => {
      const { advice } = explained(what);
      expect(advice, advice.join('\n')).to.have.length(expected.length);
      for (const [index, line] of expected.entries()) {
        if (typeof line === 'string') expect(advice[index]).to.equal(line);
        else expect(advice[index]).to.match(line);
      }
      expect(advice.join('\n')).to.not.contain('(none)');
      expect(advice.join('\n')).to.not.match(/^label .*(?:kubernetes\.io\/(?:arch|os|hostname)|topology)/m);
    });
  }
});

describe('a placed pod that fits no node', () => {
  const ASKED = 'the pod asks for arm64';
  const rows: [given: string, what: Given, expected: string | undefined][] = [
    ['none of it', deployed(BOTH, {}, LABELLED), undefined],
    ['its selector against its image', { ...FILE, images: 'amd64', spec: ASKS_ARM }, `${ASKED}: no node fits`],
    ['a pod that runs', { images: 'amd64', spec: { ...ASKS_ARM, nodeName: 'arm-1' } }, `${ASKED}: no node fits`],
    ['another label', { ...FILE, images: BOTH, spec: ASKS_SSD }, 'no node fits'],
    ['a node that its images do not run on, which would take it', deployed('arm64', {}, [UNTAINTED]), 'no node fits'],
    ['no cluster', deployed(BOTH, ASKS_SSD, []), undefined],
    ['a pod that runs, and is cordoned', { images: BOTH, spec: ON_AMD, nodes: [CORDONED] }, undefined],
    ['a pod that waits for its images', { images: '!denied', spec: ASKS_SSD }, undefined],
  ];
  for (const [given, what, expected] of rows)
    it(`because of ${given}: ${expected ?? 'not said'}`, () =>
      expect(explained(what).decision.blocked).to.equal(expected));
});

describe('a bound pod', () => {
  const told = (what: Given) =>
    explained(what).nodes.map(({ names, fits, placed, reasons }) => [names.join(), fits, placed.fits, ...reasons]);

  it('would return to the node that its template names', () => {
    const given = {
      images: BOTH,
      spec: { ...ON_AMD, ...tolerating('amd64', 'arm64') },
      metadata: { managedFields: NAMES_NODE },
    };
    expect(told(given)).to.deep.equal([
      ['amd-1', true, true],
      ['arm-1,arm-2', false, false, "node(s) didn't match the requested node name"],
    ]);
  });
});

describe('an image that was not looked up', () => {
  it('counts as not known, not as an image that runs nowhere', () => {
    const given: Given = { images: 'amd64', spec: ON_AMD, status: died('x') };
    const { decision, advice } = explainPlacement(inputOf(given), {
      lookupOf: () => undefined,
      pullSecrets: [],
      sourceOf: (key) => ({ value: key, source: 'default' }),
    });
    expect(decision.kind).to.equal('wait');
    expect(advice.join()).to.not.contain('(none)');
  });
});

describe('explain in a mode with affinity', () => {
  const BOTH = { mode: 'both', preferred: { arm64: 75, s390x: 5 } } as const;
  const GATES = { schedulingGates: [{ name: 'archaware.dev/architecture' }] };
  const images = { a: 'linux/amd64,linux/arm64', b: 'linux/arm64' };
  const LABELLED = ['amd64', 'arm64'].map((name) =>
    node(`${name}-1`, name, { taints: [] }, { 'kubernetes.io/arch': name }),
  );

  it('names what a new pod will get, and which nodes it then fits', () => {
    const { affinity, nodes, settings: told } = explained({ ...FILE, images, settings: BOTH });
    expect(affinity).to.deep.equal({
      required: [{ key: 'kubernetes.io/arch', operator: 'In', values: ['arm64'], present: false }],
      preferred: [{ architecture: 'arm64', weight: 75, present: false }],
    });
    const then = explained({ ...FILE, images, settings: BOTH, nodes: LABELLED }).nodes;
    expect(then.map(({ architecture, placed }) => [architecture, placed.fits])).to.deep.equal([
      ['amd64', false],
      ['arm64', true],
    ]);
    expect(nodes).to.have.lengthOf(2);
    expect(told.map(({ key }) => key)).to.include.members(['placement.mode', 'taints.key', 'architectures.preferred']);
  });

  it('says where new pods also go while no replica leads: nobody adds the affinity', () => {
    const controller = { kind: 'no-leader', lease: 'a/l', deployment: 'a/d', wanted: 0 } as const;
    const { verdict, advice } = explained({ ...FILE, images, settings: AFFINITY, nodes: LABELLED, controller });
    expect(verdict.text).to.match(
      /can run on arm64 nodes; no replica of archaware leads, so new pods also go to amd64 nodes$/,
    );
    expect(advice[0]).to.match(/^no replica leads \(Lease a\/l\).* --replicas=2/);
  });

  it("does not change the pod's own affinity", () => {
    const spec = { affinity: requires(term('arch NotIn s390x')) };
    const { affinity } = explained({ images, applied: false, settings: BOTH, spec });
    expect(affinity?.required.map(({ present }) => present)).to.deep.equal([true]);
  });

  it('says who will release a gated pod, and that somebody else must remove a foreign gate', () => {
    const ours = explained({ images, settings: AFFINITY, spec: GATES, nodes: LABELLED });
    expect([ours.pod.state, ours.affinity?.required.length]).to.deep.equal(['gated', 1]);
    expect(ours.advice).to.deep.equal([
      'archaware removes its gate: check that the controller runs (kubectl -n archaware logs deployment/archaware-controller)',
    ]);
    const observed = explained({ images, settings: { mode: 'observe' }, spec: GATES, nodes: LABELLED });
    expect([observed.tolerations, observed.affinity, observed.advice]).to.deep.equal([
      [],
      undefined,
      ['placement.mode observe removes no gate: run archaware clean'],
    ]);
    const both = { schedulingGates: [...GATES.schedulingGates, { name: 'example.com/quota' }] };
    const { advice } = explained({ images, settings: AFFINITY, spec: both });
    expect(advice[0]).to.equal('the pod waits until the gate example.com/quota is removed by its owner');
  });

  it('says that it is too late for a pending pod without affinity', () => {
    const { affinity, advice } = explained({ images, settings: AFFINITY, nodes: LABELLED });
    expect(affinity).to.equal(undefined);
    expect(advice).to.deep.equal([
      'admission did not change it, and affinity cannot be added later: create the pod again',
    ]);
  });

  it('does not say so of a pod that was placed on a guess: new ones get no affinity either', () => {
    const managedFields = [{ manager: 'archaware-controller', fieldsV1: { 'f:spec': { 'f:tolerations': {} } } }];
    const guessed = { metadata: { managedFields }, spec: tolerating('amd64', 'arm64'), settings: BOTH };
    expect(explained({ ...guessed, images: '!not-found' }).advice.join()).not.to.contain('admission');
    expect(explained({ ...guessed, images: 'amd64,arm64' }).advice.join()).to.contain('create the pod again');
  });

  it('adds no affinity to a DaemonSet', () => {
    const owner = { kind: 'DaemonSet', name: 'agent', uid: 'u', controller: true };
    const { affinity, advice } = explained({ images, settings: BOTH, metadata: { ownerReferences: [owner] } });
    expect(affinity).to.equal(undefined);
    expect(advice.join()).to.not.contain('too late');
  });
});
