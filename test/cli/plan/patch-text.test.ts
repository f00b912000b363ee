import { expect } from 'chai';
import { describePatch } from '../../../src/cli/plan/text.ts';
import type { JsonObject } from '../../../src/kit/json.ts';
import type { Operation } from '../../../src/kit/json-patch.ts';
import { readDaemonSet } from '../../../src/placement/objects/daemonset.ts';
import { readPod } from '../../../src/placement/objects/pod.ts';
import { daemonSetPatch, nodePatch, podPatch, releasePatch } from '../../../src/placement/patch/patch.ts';
import { node, taint, toleration } from '../../placement/objects.ts';

const [AMD, ARM] = ['amd64', 'arm64'].map((name) => toleration(`supported-arch=${name}:NoSchedule`));
const OWN = { key: 'gpu', operator: 'Exists' };
const list = (...entries: (JsonObject | undefined)[]): JsonObject[] => entries.filter((entry) => entry !== undefined);
const daemonSet = (tolerations: JsonObject[], recorded?: string) =>
  readDaemonSet({
    metadata: {
      uid: 'u',
      ...(recorded === undefined ? {} : { annotations: { 'archaware.dev/tolerations': recorded } }),
    },
    spec: { template: { spec: { tolerations } } },
  });
/** The patch of a template to these tolerations, and to this record. */
const rolling = (before: ReturnType<typeof daemonSet>, tolerations: JsonObject[], recorded?: string, rolls = true) =>
  daemonSetPatch(before, { kind: 'set', tolerations, affinity: undefined, recorded, rolls });
const pod = readPod({ metadata: { uid: 'u', generation: 1 }, spec: { tolerations: [OWN] } });
const GATES = [{ name: 'archaware.dev/architecture' }];
const OURS = taint('supported-arch=arm64:NoSchedule');
const THEIRS = taint('node-role.kubernetes.io/control-plane:NoSchedule');
const none = { kind: 'set', addedLabels: [], removedLabels: [] } as const;
const tainted = node({ taints: [THEIRS, OURS], managed: ['supported-arch=arm64:NoSchedule'] });

describe('the text for a patch', () => {
  const rows: readonly (readonly [what: string, patch: readonly Operation[], kind: string, text: string])[] = [
    [
      'a pod gets tolerations',
      podPatch(
        pod,
        [AMD, ARM].flatMap((entry) => entry ?? []),
      ),
      'Pod',
      'supported-arch=amd64:NoSchedule supported-arch=arm64:NoSchedule',
    ],
    [
      'a gated pod is released',
      releasePatch(pod, { gates: GATES, affinity: undefined, nodeSelector: undefined, ours: [] }, undefined),
      'Pod',
      '-archaware.dev/architecture',
    ],
    [
      "a template gets one toleration beside its author's",
      rolling(daemonSet([OWN]), list(OWN, ARM), '[]'),
      'DaemonSet',
      'supported-arch=arm64:NoSchedule',
    ],
    [
      'a template loses one toleration, and gets another',
      rolling(daemonSet(list(OWN, AMD), '[1]'), list(OWN, ARM), '[]'),
      'DaemonSet',
      'supported-arch=arm64:NoSchedule -supported-arch=amd64:NoSchedule',
    ],
    [
      'a template loses its only toleration',
      rolling(daemonSet(list(AMD), '[1]'), []),
      'DaemonSet',
      '-supported-arch=amd64:NoSchedule',
    ],
    [
      'only the record of a template changes',
      rolling(daemonSet(list(AMD), '[1]'), list(AMD), '[2]', false),
      'DaemonSet',
      "updates archaware's record, no rollout",
    ],
    [
      'only the record of a template goes',
      rolling(daemonSet([], '[1]'), [], undefined, false),
      'DaemonSet',
      "removes archaware's record, no rollout",
    ],
    [
      'a node gets a taint beside those of others',
      nodePatch(node({ taints: [THEIRS] }), { taints: [THEIRS, OURS], managed: '{}', ...none }),
      'Node',
      'supported-arch=arm64:NoSchedule',
    ],
    [
      'a node loses the taint, and keeps those of others',
      nodePatch(tainted, { taints: [THEIRS], managed: undefined, ...none }),
      'Node',
      '-supported-arch=arm64:NoSchedule',
    ],
    [
      'a node loses its only taint',
      nodePatch(node({ taints: [OURS] }), { taints: [], managed: undefined, ...none }),
      'Node',
      '-supported-arch=arm64:NoSchedule',
    ],
    [
      'only the record of a node changes',
      nodePatch(tainted, { taints: [THEIRS, OURS], managed: '{}', ...none }),
      'Node',
      "updates archaware's record",
    ],
    [
      'a node gets one label and loses another',
      nodePatch(node({ labels: { 'example.com/old': 'true' } }), {
        ...none,
        ...{ taints: [], managed: '{}', addedLabels: ['example.com/gpu'], removedLabels: ['example.com/old'] },
      }),
      'Node',
      'example.com/gpu=true -example.com/old',
    ],
  ];
  for (const [what, patch, kind, text] of rows)
    it(`${what}: ${text}`, () => expect(describePatch(patch, kind)).to.equal(text));
});
