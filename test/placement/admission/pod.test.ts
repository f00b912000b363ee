import { expect } from 'chai';
import { type JsonObject, objectAt } from '../../../src/kit/json.ts';
import { admitPod, readAdmitted } from '../../../src/placement/admission/pod.ts';
import type { Settings } from '../../../src/placement/settings.ts';
import { admissionOf, admit, applied, type Circumstances, GATE, placement, pod, review } from '../admissions.ts';
import { requires } from '../affinities.ts';
import { failed, known, pending, toleration } from '../objects.ts';

const ARM = known('linux/arm64');
const AMD = known('linux/amd64');
const ownedBy = (kind: string, apiVersion = 'apps/v1') => ({
  ownerReferences: [{ apiVersion, kind, name: 'o', uid: 'u', controller: true }],
});
const BOTH_TOLERATED = 'tolerates amd64,arm64';
const NOTED = 'notes archaware.dev/managed';
const GATED = `gated: gates ${GATE}`;
const TOLERATED = `patched: ${BOTH_TOLERATED}; ${NOTED}`;
const SELECTED = `patched: affinity arch In amd64,arm64; ${NOTED}`;
const PLACED = `patched: ${BOTH_TOLERATED}; affinity arch In amd64,arm64; ${NOTED}`;
const SYSTEM = { namespace: { name: 'kube-system' } };

type Row = readonly [given: string, object: JsonObject, circumstances: Circumstances, expected: string];

/** `expected`: the decision, and the changed pod. */
function check(rows: readonly Row[]): void {
  for (const [given, object, circumstances, expected] of rows) {
    it(`${given}: ${expected}`, () => {
      const before = structuredClone(object);
      const { kind, after } = review(object, circumstances);
      expect(kind === 'unchanged' || kind === 'rejected' ? kind : `${kind}: ${placement(after)}`).to.equal(expected);
      expect(object, 'what was given').to.deep.equal(before);
    });
  }
}

const by = (mode: Settings['mode'], more: Partial<Settings> = {}) => ({ settings: { mode, ...more } });
const affinity = (more: Partial<Settings> = {}) => by('affinity', more);
const cold = { answers: { a: pending } };
const COLD = { ...affinity(), ...cold };
const REJECT = { noCommonArchitecture: 'reject' } as const;
const apart = { answers: { a: ARM, b: AMD } };

describe('a new pod whose owner had pods refused for a part of what archaware adds', () => {
  const without = (...withdrawn: NonNullable<Circumstances['withdrawn']>) => ({ ...by('both'), withdrawn });
  check([
    ['tolerations', pod(), without('tolerations'), SELECTED],
    ['affinity', pod(), without('affinity'), TOLERATED],
    ['both', pod(), without('affinity', 'tolerations'), 'unchanged'],
    ['the gate, which it does not need', pod(), without('gate'), PLACED],
    ['the gate, with an unknown image', pod(), { ...without('gate'), ...cold }, 'unchanged'],
    ['tolerations, with an unknown image', pod(), { ...without('tolerations'), ...cold }, GATED],
    ['the gate, with nothing in common', pod({}, {}, ['a', 'b']), { ...without('gate'), ...apart }, 'unchanged'],
  ]);
});

describe('a new pod whose images are known', () => {
  check([
    ['by taints', pod(), by('taints'), TOLERATED],
    ['by affinity', pod(), affinity(), SELECTED],
  ]);
});

describe('a new pod with tolerations or affinity of its own', () => {
  const arm = toleration('supported-arch=arm64:NoSchedule');
  check([
    ['it tolerates one of two', pod({ tolerations: [arm] }), by('taints'), `patched: tolerates arm64,amd64; ${NOTED}`],
    ['a node', pod({ nodeName: 'n1' }), by('both'), 'unchanged'],
    ['a node, and its images are not known', pod({ nodeName: 'n1' }), { ...by('both'), ...cold }, 'unchanged'],
    ['an empty name of a node', pod({ nodeName: '' }), COLD, GATED],
  ]);
});

describe('a new pod that is skipped', () => {
  const given = { ...by('both'), ...cold };
  const ignored = { 'archaware.dev/ignore': 'true' };
  check([
    ['by its label', pod({}, { labels: ignored }), given, 'unchanged'],
    ['by the label of its namespace', pod(), { ...given, namespace: { labels: ignored } }, 'unchanged'],
  ]);
});

describe('a new pod whose images are not known', () => {
  const longAgo = { answers: { a: failed(300) } };
  const role = (name: string) => pod({ nodeSelector: { [`node-role.kubernetes.io/${name}`]: '' } });
  check([
    ['is gated by affinity', pod(), COLD, GATED],
    ['passes without a leader', pod(), { ...COLD, mayGate: false }, 'unchanged'],
    ["is gated beside others' gates", pod({ schedulingGates: [{ name: 'q' }] }), COLD, `gated: gates q,${GATE}`],
    ['passes where a DaemonSet makes it', pod({}, ownedBy('DaemonSet')), COLD, 'unchanged'],
    ['passes in a system namespace', pod(), { ...COLD, ...SYSTEM }, 'unchanged'],
    ['passes in our own namespace', pod(), { ...COLD, namespace: { name: 'archaware' } }, 'unchanged'],
    ['passes where it selects the control plane', role('control-plane'), COLD, 'unchanged'],
    ['passes where it selects it by its old name', role('master'), COLD, 'unchanged'],
    ['is open where it failed for long: taints', pod(), { ...by('taints'), ...longAgo }, TOLERATED],
  ]);
});

describe('a daemon pod', () => {
  check([
    [
      'is given tolerations, and no affinity',
      pod(
        { affinity: requires({ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['n1'] }] }) },
        ownedBy('DaemonSet'),
      ),
      by('both', { preferred: { arm64: 75 } }),
      `patched: ${BOTH_TOLERATED}; affinity metadata.name In n1; ${NOTED}`,
    ],
    ['is given nothing by affinity', pod({}, ownedBy('DaemonSet')), affinity(), 'unchanged'],
  ]);
});

describe('a new pod that asks for an architecture which its index lacks', () => {
  const asks = pod({ nodeSelector: { 'kubernetes.io/arch': 's390x' } });
  const index = { answers: { a: { ...known('linux/amd64,linux/arm64'), isIndex: true } } };
  check([
    ['is held by affinity', asks, { ...affinity(), ...index }, GATED],
    ['is rejected', asks, { ...affinity(REJECT), ...index }, 'rejected'],
    ['is let go where it cannot be held', asks, { ...by('both'), ...index, ...SYSTEM }, TOLERATED],
    ['is placed as ever by taints', asks, { ...by('taints', REJECT), ...index }, TOLERATED],
  ]);
});

describe('a new pod whose images have nothing in common', () => {
  const two = pod({}, {}, ['a', 'b']);
  check([
    ['hold, by taints: nothing is added', two, { ...by('taints'), ...apart }, 'unchanged'],
    ['hold, by affinity: the gate holds it', two, { ...affinity(), ...apart }, GATED],
    ['hold, without a leader', two, { ...affinity(), ...apart, mayGate: false }, 'unchanged'],
    ['hold, in a system namespace', two, { ...affinity(), ...apart, ...SYSTEM }, 'unchanged'],
    ['reject, by taints', two, { ...by('taints', REJECT), ...apart }, 'rejected'],
    ['reject, in a system namespace', two, { ...affinity(REJECT), ...apart, ...SYSTEM }, 'unchanged'],
    ['reject, where all is not known', two, { ...affinity(REJECT), answers: { a: ARM, b: pending } }, GATED],
  ]);

  it('is rejected with each image and its platforms', () => {
    const message = 'no architecture for linux is common to all images: a (linux/arm64); b (linux/amd64)';
    expect(admit(two, { ...affinity(REJECT), ...apart })).to.deep.equal({ kind: 'rejected', message });
  });
});

describe('the label with the verdict, where it is on', () => {
  const labelled = (object: JsonObject, given: Circumstances) => {
    const all = { ...admissionOf(object, given), isLabelled: true };
    return applied(object, admitPod(readAdmitted(all), all));
  };
  const OURS = 'archaware.dev/verdict';
  const unheld = { mayGate: false };
  const rows: readonly (readonly [given: string, object: JsonObject, circumstances: Circumstances, labels: object])[] =
    [
      ['placed', pod(), by('taints'), { [OURS]: 'placed' }],
      ['placed, beside others', pod({}, { labels: { app: 'web' } }), by('both'), { app: 'web', [OURS]: 'placed' }],
      ['one of its author', pod({}, { labels: { [OURS]: 'mine' } }), by('both'), { [OURS]: 'placed' }],
      ['waiting', pod(), COLD, { [OURS]: 'waiting' }],
      [
        'waiting for tolerations, without a leader',
        pod(),
        { ...by('taints'), ...cold, ...unheld },
        { [OURS]: 'waiting' },
      ],
      ['open: nothing keeps it', pod(), { ...COLD, ...unheld }, { [OURS]: 'open' }],
      ['open: an image is not known', pod(), { ...by('taints'), answers: { a: failed(300) } }, { [OURS]: 'open' }],
      ['held', pod({}, {}, ['a', 'b']), { ...by('taints'), ...apart }, { [OURS]: 'held' }],
    ];
  for (const [given, object, circumstances, labels] of rows)
    it(given, () => {
      const after = labelled(object, circumstances);
      expect(objectAt(objectAt(after, 'metadata'), 'labels')).to.deep.equal(labels);
      expect(labelled(after, circumstances), 'reviewed again').to.deep.equal(after);
    });
});
