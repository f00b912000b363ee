import { expect } from 'chai';
import type { Decision } from '../../src/placement/decide.ts';
import {
  mayBeWrong,
  type Origin,
  readOrigin,
  whatIsKnown,
  whyNotEvicted,
  wrongNodeNote,
  wrongPlace,
} from '../../src/placement/eviction.ts';
import type { ImageAnswer } from '../../src/placement/images.ts';
import type { JsonObject } from '../../src/placement/json.ts';
import { readPod } from '../../src/placement/pod.ts';
import type { Settings } from '../../src/placement/settings.ts';
import { failed, known, node, pending, settings, taint, toleration } from './objects.ts';

type Given = {
  images?: Readonly<Record<string, ImageAnswer>>;
  stale?: readonly string[];
  spec?: JsonObject;
  metadata?: JsonObject;
  startError?: string;
  settings?: Partial<Settings>;
};

const AMD: Readonly<Record<string, ImageAnswer>> = { app: known('linux/amd64') };

function podOf({ images = AMD, spec = {}, metadata = {}, startError }: Given) {
  const containers = Object.keys(images).map((image) => ({ image }));
  return { ...readPod({ metadata, spec: { containers, nodeName: 'n1', ...spec } }), startError };
}

/** What is known of a pod on a node of arm64, and whether that is the wrong place. */
function find(given: Given) {
  const { images = AMD, stale = [] } = given;
  const pod = podOf(given);
  const what = whatIsKnown(
    pod,
    settings(given.settings),
    (image) => [image],
    ({ image }) => images[image] ?? pending,
    ({ image }) => stale.includes(image),
  );
  return { pod, what, place: wrongPlace(pod, 'arm64', what) };
}

describe('a pod on a node of arm64', () => {
  const rows: [given: string, what: Given, expected: string][] = [
    ['whose image runs there', { images: { app: known('linux/amd64,linux/arm64') } }, 'right'],
    ['whose image does not', {}, 'platforms'],
    [
      'one of whose images does not',
      { images: { app: known('linux/arm64'), side: known('linux/amd64') } },
      'platforms',
    ],
    [
      'whose images have nothing in common',
      { images: { a: known('linux/amd64'), b: known('linux/s390x') } },
      'platforms',
    ],
    [
      'whose image is for arm, which its nodes run',
      { images: { app: known('linux/arm') }, settings: { compatible: { arm64: ['arm'] } } },
      'right',
    ],
    ['whose image is for arm, which its nodes do not run', { images: { app: known('linux/arm') } }, 'platforms'],
    ['whose image is for another OS there', { images: { app: known('linux/amd64,windows/arm64') } }, 'platforms'],
    ['whose image has no platform at all', { images: { app: known('') } }, 'platforms'],
    ['one of whose images is being asked about', { images: { ...AMD, side: pending } }, 'right'],
    ['one of whose images failed', { images: { ...AMD, side: failed(60) } }, 'right'],
    ['whose image was known once', { stale: ['app'] }, 'right'],
    [
      'whose image an override answers',
      {
        settings: { overrides: [{ pattern: 'app', architectures: ['amd64'] }] },
        images: { app: pending },
        stale: ['app'],
      },
      'platforms',
    ],
    ['whose image is never pulled', { spec: { containers: [{ image: 'app', imagePullPolicy: 'Never' }] } }, 'right'],
    ['whose author stated amd64', { metadata: { annotations: { 'archaware.dev/architectures': 'amd64' } } }, 'right'],
    [
      'a container of which died of it',
      { startError: 'c', images: { app: known('linux/arm64') } },
      'exec-format-error',
    ],
    ['a container of which died of it, as it must', { startError: 'c' }, 'exec-format-error outside'],
    [
      'a container of which died, and nothing is known',
      { startError: 'c', images: { app: failed(60) } },
      'exec-format-error',
    ],
  ];
  for (const [given, what, expected] of rows) {
    it(`${given}: ${expected}`, () => {
      const { place } = find(what);
      const outside = place?.reason === 'exec-format-error' && place.isOutside ? ' outside' : '';
      expect(`${place?.reason ?? 'right'}${outside}`).to.equal(expected);
    });
  }

  it('tells what is on its way from what has failed', () => {
    const { what } = find({
      images: { a: pending, b: failed(1), c: known('linux/arm64'), d: known('') },
      stale: ['c'],
    });
    expect([what.pending, what.unknown, what.images.map(({ image }) => image)]).to.deep.equal([
      ['a'],
      ['b', 'c'],
      ['d'],
    ]);
  });

  it('asks for no image of a pod whose author stated its architectures', () => {
    const annotations = { 'archaware.dev/architectures': 'all' };
    const ask = () => expect.fail('asked');
    const what = whatIsKnown(podOf({ metadata: { annotations } }), settings(), () => [], ask, ask);
    expect(what.images).to.deep.equal([]);
  });
});

describe('what was decided for a bound pod', () => {
  const place = (
    basis: 'images' | 'open' | 'statement' | 'released',
    ...architectures: readonly string[]
  ): Decision => ({
    kind: 'place',
    architectures,
    basis,
    followsCluster: false,
    os: undefined,
    failed: [],
    unknown: [],
    images: [],
  });
  const hold: Decision = { kind: 'hold', reason: 'no-common-architecture', images: [] };
  const wait: Decision = { kind: 'wait', images: [], failed: [], againInMs: undefined };
  const rows: [given: string, decision: Parameters<typeof mayBeWrong>[1], expected: boolean, pod?: Given][] = [
    ['its node among what its images run on', place('images', 'arm64'), false],
    ['its node not among it', place('images', 'amd64'), true],
    ['a guess', place('open', 'amd64'), false],
    ["its author's word", place('statement', 'amd64'), false],
    ['anywhere, on purpose', place('released', 'amd64'), false],
    ['nowhere', hold, true],
    [
      "nowhere, by its author's word",
      hold,
      false,
      { metadata: { annotations: { 'archaware.dev/architectures': 'x' } } },
    ],
    ['nothing yet', wait, false],
    ['nothing at all', undefined, false],
    ['to leave it alone', { kind: 'skip', reason: 'ignored' }, false],
    ['something, and a container died', place('images', 'arm64'), true, { startError: 'c' }],
  ];
  for (const [given, decision, expected, pod = {}] of rows) {
    it(`${given}: ${expected ? 'is looked at' : 'is not'}`, () =>
      expect(mayBeWrong(podOf(pod), decision, 'arm64')).to.equal(expected));
  }

  it('is nothing to go by on a node whose architecture is not known', () =>
    expect(mayBeWrong(podOf({}), place('images', 'amd64'), undefined)).to.equal(false));
});

describe('the eviction of a pod from a wrong node', () => {
  const owned = (kind: string): JsonObject => ({ ownerReferences: [{ kind, name: 'o', uid: 'o', controller: true }] });
  const by = (...tolerations: readonly JsonObject[]): Given => ({ spec: { tolerations } });
  const OURS = toleration('supported-arch=arm64:NoSchedule');
  const off = (more: Partial<Settings['taints']>) => ({ taints: { ...settings().taints, ...more } });
  type Row = Given & { taints?: readonly JsonObject[]; cluster?: readonly string[]; origin?: Origin };
  const author: Origin = { namesNode: false, toleratesByUs: false };

  const rows: [given: string, what: Row, expected: RegExp | undefined][] = [
    ['of a ReplicaSet', {}, undefined],
    ['of a StatefulSet', { metadata: owned('StatefulSet') }, undefined],
    ['of a ReplicationController', { metadata: owned('ReplicationController') }, undefined],
    ['of a DaemonSet', { metadata: owned('DaemonSet') }, /its DaemonSet would make another one here/],
    ['of a Job', { metadata: owned('Job') }, /its Job would count it as failed/],
    ['of something else', { metadata: owned('Workflow') }, /owned by a Workflow/],
    ['that is bare', { metadata: {} }, /bare pod/],
    ['with pods.onWrongNode: warn', { settings: { onWrongNode: 'warn' } }, /pods.onWrongNode is warn/],
    [
      'that died where its images say they run',
      { startError: 'c', images: { a: known('linux/arm64') } },
      /say that they run on arm64/,
    ],
    ['that died, of which nothing is known', { startError: 'c', images: { a: failed(1) } }, /not known for certain/],
    [
      'that died, all of whose images are never pulled',
      { startError: 'c', spec: { containers: [{ image: 'a', imagePullPolicy: 'Never' }] } },
      /not known for certain/,
    ],
    ['that died as it must', { startError: 'c' }, undefined],
    ['that could run nowhere', { images: { a: known('linux/s390x') } }, /no node of the cluster/],
    ['that may run nowhere else', { settings: { schedulable: ['arm64'] } }, /no node of the cluster/],
    [
      'where nodes are not tainted by us',
      { settings: off({ manage: false }) },
      /has no taint supported-arch=arm64:NoSchedule/,
    ],
    ['whose node has no taint yet', { taints: [] }, /node n1 has no taint/],
    [
      "whose node has another architecture's taint",
      { taints: [taint('supported-arch=amd64:NoSchedule')] },
      /has no taint/,
    ],
    [
      'whose node only prefers others',
      { settings: off({ effect: 'PreferNoSchedule' }), taints: [taint('supported-arch=arm64:PreferNoSchedule')] },
      /has no taint/,
    ],
    ['that tolerates what we gave it', by(OURS), undefined],
    ['that tolerates everything', by({ operator: 'Exists' }), /onto nodes of arm64/],
    ['that tolerates every value of our key', by({ key: 'supported-arch', operator: 'Exists' }), /onto nodes of arm64/],
    ['that tolerates it in a form of its own', by({ key: 'supported-arch', value: 'arm64' }), /onto nodes of arm64/],
    [
      'that tolerates another wrong architecture in a form of its own',
      { ...by({ key: 'supported-arch', value: 's390x' }), cluster: ['amd64', 'arm64', 's390x'] },
      /onto nodes of s390x/,
    ],
    ['that tolerates what is not here in a form of its own', by({ key: 'supported-arch', value: 's390x' }), undefined],
    ['that tolerates the right one in a form of its own', by({ key: 'supported-arch', value: 'amd64' }), undefined],
    ['that tolerates something else', by({ key: 'other', operator: 'Exists' }), undefined],
    ["whose tolerations of our form are its author's", { ...by(OURS), origin: author }, /onto nodes of arm64/],
    ['whose tolerations of our form are ours', { ...by(OURS), origin: { ...author, toleratesByUs: true } }, undefined],
    ['whose author named the node', { origin: { ...author, namesNode: true } }, /its template names the node/],
  ];
  for (const [given, what, expected] of rows) {
    it(`${given}: ${expected === undefined ? 'may be' : expected.source}`, () => {
      const evicting = { onWrongNode: 'evict', ...what.settings } as const;
      const { pod, place } = find({ metadata: owned('ReplicaSet'), ...what, settings: evicting });
      if (place === undefined) throw new Error('it is in the right place');
      const { taints = [taint('supported-arch=arm64:NoSchedule')], cluster = ['amd64', 'arm64'], origin } = what;
      const where = { ...node({ taints }), architecture: 'arm64' };
      const why = whyNotEvicted(pod, place, where, cluster, settings(evicting), origin);
      if (expected === undefined) expect(why).to.equal(undefined);
      else expect(why).to.match(expected);
    });
  }
});

describe('where a pod comes from', () => {
  const wrote = (manager: string, fields: JsonObject) => ({ manager, fieldsV1: { 'f:spec': fields } });
  const rows: [given: string, managedFields: unknown, expected: Origin][] = [
    [
      'a template',
      [wrote('kube-controller-manager', { 'f:containers': {} })],
      { namesNode: false, toleratesByUs: false },
    ],
    [
      'a template that names its node',
      [wrote('kube-controller-manager', { 'f:nodeName': {} })],
      { namesNode: true, toleratesByUs: false },
    ],
    [
      'a template, and us',
      [wrote('kube-controller-manager', {}), wrote('archaware-controller', { 'f:tolerations': {} })],
      { namesNode: false, toleratesByUs: true },
    ],
    [
      'a template with tolerations',
      [wrote('kube-controller-manager', { 'f:tolerations': {} })],
      { namesNode: false, toleratesByUs: false },
    ],
    ['nobody knows', 'no list', { namesNode: false, toleratesByUs: false }],
  ];
  for (const [given, managedFields, expected] of rows) {
    it(given, () => expect(readOrigin({ metadata: { managedFields } })).to.deep.equal(expected));
  }
});

describe('what is told of a pod on a wrong node', () => {
  const where = { name: 'n1', architecture: 'arm64' };
  const note = (given: Given) => {
    const { place } = find(given);
    return place && wrongNodeNote(place, given.startError, where, 'evicted');
  };

  it('names the node, what became of the pod, and each image with its platforms', () => {
    expect(note({ images: { a: known('linux/amd64'), b: known('linux/amd64,linux/arm64') } })).to.equal(
      'bound to node n1 (arm64), which does not run all of its images; evicted; a (linux/amd64); b (linux/amd64, linux/arm64)',
    );
  });

  it('names the container that died, and the images of which nothing is known', () => {
    expect(note({ startError: 'main', images: { a: known('linux/amd64'), b: failed(1) } })).to.equal(
      'container main died with an exec format error on node n1 (arm64); evicted; a (linux/amd64); not known: b',
    );
    expect(note({ startError: 'main', metadata: { annotations: { 'archaware.dev/architectures': 'all' } } })).to.equal(
      'container main died with an exec format error on node n1 (arm64); evicted',
    );
  });
});
