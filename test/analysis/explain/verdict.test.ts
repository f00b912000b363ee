import { expect } from 'chai';
import type { JsonObject } from '../../../src/kit/json.ts';
import { BOTH, explained, type Given, IGNORED, node, tolerating } from './explained.ts';

const START = Date.parse('2026-03-01T06:13:20Z');
const WAITS = 'waits: it waits for a (not-found); it';
const RUNS = 'runs: it runs on arm-1 (arm64)';
const NEXT = `${RUNS}; at its next start`;
const NOWHERE = 'fits-nowhere: it fits no node:';
const IGNORES = 'alone: it is labelled archaware.dev/ignore=true;';
const BY_TIME = 'starts by itself at 06:13:20 UTC at the latest, on';
const UNKNOWN = { images: '!not-found' } as const;

/** What an Event said of its start at 06:13:20, so many milliseconds after that time. */
const said = (agoMs: number) => ({ patience: { startsAtLatestMs: START, nowMs: START + agoMs } });
const bound = (more: JsonObject = {}, status: JsonObject = { phase: 'Running' }): Pick<Given, 'spec' | 'status'> => ({
  spec: { nodeName: 'arm-1', ...more },
  status,
});
const ASKS = { nodeSelector: { 'kubernetes.io/arch': 'arm64' } };
const ASTRAY = {
  kind: 'Deployment',
  images: 'arm64',
  nodes: [
    node('arm-1', 'arm64', {}, { 'kubernetes.io/arch': 'arm64' }),
    node('n', 'amd64', { taints: [] }, { 'kubernetes.io/arch': 'amd64' }),
  ],
} as const;
const LABELLED = [node('amd-1', 'amd64', {}, { 'kubernetes.io/arch': 'amd64' })];
const TOLERATES = { spec: tolerating('amd64', 'arm64') };
const APART = { images: 'amd64 arm64' };
const WINDOWS = { images: 'windows/amd64', spec: { os: { name: 'windows' } } } as const;
const GATED = { schedulingGates: [{ name: 'x/y' }] };
const FILE = { kind: 'Deployment', images: 'arm64' } as const;
const REJECTING = { settings: { mode: 'both', noCommonArchitecture: 'reject' } } as const;
const REFUSED = 'refused when it is created (placement.noCommonArchitecture: reject)';
const NEW = 'a new pod of Deployment shop/p';
const DAEMON = 'a new pod of DaemonSet shop/p';
const PART = 'its images have no architecture in common';
const BY_ARCHAWARE = {
  managedFields: [
    { manager: 'archaware-controller', operation: 'Update', fieldsV1: { 'f:spec': { 'f:tolerations': {} } } },
  ],
};

const PLACED = { metadata: BY_ARCHAWARE, ...bound(tolerating('amd64', 'arm64')) };

describe('the verdict of an explanation', () => {
  const rows: readonly (readonly [what: string, given: Given, expected: string])[] = [
    ['it runs', { images: BOTH, ...bound() }, RUNS],
    ['it does not run yet', { images: BOTH, ...bound({}, { phase: 'Pending' }) }, 'runs: it is bound to arm-1 (arm64)'],
    ['it runs, and would not run again', { ...APART, ...bound() }, `${NEXT} it would be held, because ${PART}`],
    [
      'it runs, and asks for what its image does not have',
      { images: 'amd64', ...bound(ASKS) },
      `${NEXT} no node would take it: the pod asks for arm64, its image is amd64 only`,
    ],
    ['it can run', { images: BOTH, ...TOLERATES }, 'can-run: it can run on amd64, arm64 nodes'],
    [
      'it is Pending, and not because of archaware',
      {
        images: BOTH,
        spec: tolerating('amd64', 'arm64'),
        status: { conditions: [{ type: 'PodScheduled', status: 'False', message: '0/3 nodes: Insufficient cpu.' }] },
      },
      'can-run: it can run on amd64, arm64 nodes; archaware does not hold it, the scheduler says: 0/3 nodes: Insufficient cpu.',
    ],
    [
      'it waits for a lookup, and no cluster is known',
      { images: '!not-found', nodes: [], kind: 'Deployment' },
      "waits: a new pod of Deployment shop/p waits for a (not-found); it starts by itself within images.fallbackAfter of the controller's first failed lookup",
    ],
    [
      'it waits for its tolerations',
      { images: 'arm64' },
      'waits: it waits until archaware writes its tolerations; then it can run on arm64 nodes',
    ],
    [
      'it waits for a lookup, and no Event says how long',
      UNKNOWN,
      `${WAITS} starts by itself within images.fallbackAfter of the controller's first failed lookup (its Event ImageUnresolvable says when), on amd64, arm64`,
    ],
    ['it waits for a lookup, until a time', { ...UNKNOWN, ...said(-60_000) }, `${WAITS} ${BY_TIME} amd64, arm64`],
    [
      'that time is over',
      { ...UNKNOWN, ...said(60_000) },
      'waits: it waits for a (not-found); the controller should have let it start at 06:13:20 UTC: check that it runs',
    ],
    [
      'it waits as long as no lookup succeeds',
      { ...UNKNOWN, settings: { unresolvable: 'wait' } },
      `${WAITS} waits until a lookup succeeds (images.unresolvable: wait)`,
    ],
    [
      'it waits for a fallback',
      { ...UNKNOWN, ...said(0), settings: { unresolvable: 'fallback', fallback: ['amd64'] } },
      `${WAITS} ${BY_TIME} amd64`,
    ],
    ['it was placed before without an answer', { ...UNKNOWN, ...PLACED }, RUNS],
    ['it is held', APART, `held: it is held, because ${PART}`],
    ['was created before', { ...APART, ...REJECTING }, `held: it is held, because ${PART}`],
    ['refused', { ...APART, ...REJECTING, kind: 'Deployment' }, `held: ${NEW} is ${REFUSED}, because ${PART}`],
    ['a daemon', { ...APART, ...REJECTING, kind: 'DaemonSet' }, `held: ${DAEMON} is held, because ${PART}`],
    ['runs, and refused', { ...APART, ...REJECTING, ...bound() }, `${NEXT} it would be ${REFUSED}, because ${PART}`],
    [
      'it is held by a setting',
      { images: BOTH, settings: { schedulable: ['s390x'] } },
      `held: it is held, because ${PART} within architectures.schedulable (s390x)`,
    ],
    ['observes', { ...APART, settings: { mode: 'observe' } }, `held: it is not held in the mode observe, but ${PART}`],
    ['asks for another', { images: 'amd64', spec: ASKS }, `${NOWHERE} the pod asks for arm64, its image is amd64 only`],
    [
      'it asks for what no node has, and its image sets no limit',
      { images: {}, spec: { containers: [{ image: 'a', imagePullPolicy: 'Never' }], ...ASKS }, nodes: LABELLED },
      `${NOWHERE} its images set no limit; the cluster has amd64, and those nodes do not take it`,
    ],
    [
      'a node without the taint',
      ASTRAY,
      `can-run: ${NEW} can run on arm64 nodes, and may come to nodes that do not run its images`,
    ],
    ['the same, but affinity', { ...ASTRAY, settings: { mode: 'both' } }, `can-run: ${NEW} can run on arm64 nodes`],
    ['no node has it', { images: 's390x' }, `${NOWHERE} its images run on s390x, and no node has that architecture`],
    ['no node has its operating system', WINDOWS, `${NOWHERE} it needs windows, and no node runs windows`],
    [
      'it is left alone',
      { images: BOTH, metadata: IGNORED },
      `left-alone: it waits without archaware, which leaves it ${IGNORES} no node fits`,
    ],
    ['another gate', { images: BOTH, spec: GATED }, 'waits: it waits until the gate x/y is removed by its owner'],
    [
      'it runs where its images do not run',
      { images: 'amd64', ...bound() },
      `${NEXT} it would go to another node: its images run on amd64 only`,
    ],
    [
      'the same, and archaware gave it the toleration for this node when its image was another',
      { images: 'amd64', metadata: BY_ARCHAWARE, ...bound(tolerating('arm64')) },
      `${NEXT} it would go to another node: its images run on amd64 only`,
    ],
    [
      'it runs where a setting does not let it run',
      { images: BOTH, settings: { schedulable: ['amd64'] }, ...bound() },
      `${NEXT} it would go to another node: its images run on amd64 within architectures.schedulable (amd64) only`,
    ],
    [
      'it runs where its images do not run, and no node runs them',
      { images: 's390x', ...bound() },
      `${NEXT} no node would take it: its images run on s390x only`,
    ],
    [
      'it runs where its images do not run, and tolerates every taint',
      { images: 'amd64', ...bound({ tolerations: [{ operator: 'Exists' }] }) },
      `${NEXT} it could come to such a node again: its images run on amd64 only`,
    ],
    [
      'it runs, is left alone, and no node would take it again',
      { images: BOTH, metadata: IGNORED, ...bound() },
      `${RUNS}; archaware leaves it ${IGNORES} at its next start no node would take it`,
    ],
    ['it has finished', { images: BOTH, status: { phase: 'Succeeded' } }, 'ended: it has finished'],
    ['a Deployment', FILE, 'can-run: a new pod of Deployment shop/p can run on arm64 nodes'],
    [
      'the same without nodes',
      { ...FILE, nodes: [] },
      'can-run: a new pod of Deployment shop/p can run on arm64 nodes; no node is known',
    ],
  ];
  for (const [what, given, expected] of rows) {
    it(`${what}: ${expected}`, () => {
      const { verdict } = explained(given);
      expect(`${verdict.state}: ${verdict.text}`.replace('Pod shop/p', 'it')).to.equal(expected);
    });
  }

  describe("has the controller's Event", () => {
    const event = { note: 'image a was not looked up yet: waits for its turn at r, about 42 s', at: '06:13:20 UTC' };
    const gated = { spec: { schedulingGates: [{ name: 'archaware.dev/architecture' }] } };
    const rows: readonly (readonly [given: string, Given, isShown: boolean])[] = [
      ['of a gated pod whose images are known here', { images: 'amd64', ...gated }, true],
      ['of a pod that waits, and a limit was met here, too', { images: '!rate-limited' }, true],
      ['not of a pod whose image failed here: that is newer', { images: '!not-found' }, false],
      ['not of a pod that has what it needs', { images: 'amd64', spec: tolerating('amd64') }, false],
    ];
    for (const [given, what, isShown] of rows)
      it(given, () => expect(explained({ ...what, said: event }).said).to.deep.equal(isShown ? event : undefined));
  });

  it('has the time also for programs', () => {
    expect(explained({ images: '!denied', ...said(0) }).verdict.startsAtLatest).to.equal('2026-03-01T06:13:20.000Z');
    expect(explained({ images: '!denied' }).verdict).not.to.have.property('startsAtLatest');
  });
});
