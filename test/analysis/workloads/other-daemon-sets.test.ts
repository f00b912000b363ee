import { expect } from 'chai';
import { otherDaemonSetNote, untoleratingDaemonSets } from '../../../src/analysis/workloads/overview.ts';
import { readPod } from '../../../src/placement/objects/pod.ts';
import type { Settings } from '../../../src/placement/settings.ts';
import { place, settings, toleration } from '../../placement/objects.ts';

const KRUISE = 'apps.kruise.io/v1alpha1';
const BOTH = place(['amd64', 'arm64']);
const OURS = [{ manager: 'archaware-controller', fieldsV1: { 'f:spec': { 'f:tolerations': {} } } }];

type Given = {
  readonly kind?: string;
  readonly apiVersion?: string;
  readonly tolerates?: readonly string[];
  readonly isOurs?: boolean;
  readonly mode?: Settings['mode'];
  readonly decision?: Parameters<typeof untoleratingDaemonSets>[0] extends Iterable<
    infer P extends { decision: unknown }
  >
    ? P['decision']
    : never;
};

function named({ kind = 'DaemonSet', apiVersion = KRUISE, tolerates = [], isOurs, mode = 'taints', ...more }: Given) {
  const pod = readPod({
    metadata: {
      ...{ namespace: 'shop', name: 'agent-1', managedFields: isOurs ? OURS : [] },
      ownerReferences: [{ controller: true, apiVersion, kind, name: 'agent', uid: 'u' }],
    },
    spec: {
      containers: [{ image: 'a' }],
      tolerations: tolerates.map((value) => toleration(`supported-arch=${value}:NoSchedule`)),
    },
  });
  const decided = { pod, decision: more.decision ?? BOTH, settings: settings({ mode }) };
  return untoleratingDaemonSets([decided, decided]).map(
    ({ missing, ...name }) => `${name.kind} ${name.namespace}/${name.name} lacks ${missing.join(' and ')}`,
  );
}

describe('a DaemonSet whose template archaware does not write', () => {
  const lacks = (...missing: readonly string[]) => [
    `DaemonSet.apps.kruise.io shop/agent lacks ${missing.join(' and ')}`,
  ];
  const [amd64, arm64] = ['amd64', 'arm64'].map((value) => `supported-arch=${value}:NoSchedule`);
  const rows: readonly (readonly [given: string, what: Given, expected: readonly string[]])[] = [
    ['tolerates nothing', {}, lacks(String(amd64), String(arm64))],
    ['tolerates one of two', { tolerates: ['amd64'] }, lacks(String(arm64))],
    ['tolerates both', { tolerates: ['amd64', 'arm64'] }, []],
    [
      'tolerates both by what archaware gave its pod',
      { tolerates: ['amd64', 'arm64'], isOurs: true },
      lacks(String(amd64), String(arm64)),
    ],
    ['is of Kubernetes, and served', { apiVersion: 'apps/v1' }, []],
    ['is a CloneSet, which does not judge taints', { kind: 'CloneSet' }, []],
    ['needs no toleration in the mode affinity', { mode: 'affinity' }, []],
    ['is not decided yet', { decision: { kind: 'skip', reason: 'ignored' } }, []],
  ];
  for (const [given, what, expected] of rows) {
    it(`${given}: ${expected.join() || 'not named'}`, () => expect(named(what)).to.deep.equal(expected));
  }

  it('is named with what to do', () => {
    const note = otherDaemonSetNote({
      kind: 'DaemonSet.apps.kruise.io',
      namespace: 'shop',
      name: 'agent',
      missing: ['k=v:NoSchedule'],
    });
    expect(note).to.match(
      /^DaemonSet[.]apps[.]kruise[.]io shop\/agent .*add the tolerations k=v:NoSchedule to its template$/,
    );
  });
});
