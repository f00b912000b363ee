import { expect } from 'chai';
import { newestNote, oldestOf, readWaiting } from '../../../src/cli/status/waiting-pods.ts';
import type { JsonObject } from '../../../src/kit/json.ts';

const TAINTS = ['amd64', 'arm64'].map((value) => ({ key: 'supported-arch', value, effect: 'NoSchedule' }));
const pod = (spec: JsonObject = {}, message = '', status: JsonObject = {}, metadata: JsonObject = {}) => ({
  metadata: { name: 'p', namespace: 'shop', creationTimestamp: '2026-01-01T00:00:00Z', ...metadata },
  spec,
  status: { conditions: [{ type: 'PodScheduled', status: 'False', message }], ...status },
});
const GATED = { schedulingGates: [{ name: 'archaware.dev/architecture' }] };
const LACKS = '0/2 nodes are available: 2 node(s) had untolerated taint(s).';
const ASKS = { nodeSelector: { 'kubernetes.io/arch': 'arm64' } };
const FULL = '0/2 nodes are available: 2 Insufficient cpu.';
const tolerating = (value: string) => ({ tolerations: [{ key: 'supported-arch', value, effect: 'NoSchedule' }] });

describe('a pod waits because of archaware', () => {
  const rows: readonly (readonly [what: string, pod: JsonObject, waits: boolean])[] = [
    ['with the gate', pod(GATED), true],
    ['with the gate of others', pod({ schedulingGates: [{ name: 'other' }] }), false],
    ['if it tolerates none of the taints', pod({}, LACKS), true],
    ['not if it tolerates one of them', pod(tolerating('arm64'), LACKS), false],
    [
      'if it asks for an architecture whose taint it does not tolerate',
      pod({ ...tolerating('amd64'), ...ASKS }, LACKS),
      true,
    ],
    [
      'not if it asks for an architecture whose taint it tolerates',
      pod({ ...tolerating('arm64'), ...ASKS }, LACKS),
      false,
    ],
    [
      'not if it asks for an architecture that no node has',
      pod({ nodeSelector: { 'kubernetes.io/arch': 's390x' } }, LACKS),
      false,
    ],
    ['not if the scheduler names another reason', pod({}, FULL), false],
    ['not with a node', pod({ ...GATED, nodeName: 'n' }), false],
    ['not when it is being deleted', pod(GATED, '', {}, { deletionTimestamp: '2026-01-01T00:00:00Z' }), false],
    ['not when it has failed', pod(GATED, '', { phase: 'Failed' }), false],
  ];
  for (const [what, object, waits] of rows) {
    it(what, () => expect(readWaiting(object, TAINTS, 0) !== undefined).to.equal(waits));
  }

  it('not without taints on any node', () => expect(readWaiting(pod({}, LACKS), [], 0)).to.equal(undefined));

  it('for the time since it was created', () => {
    const now = Date.parse('2026-01-01T00:02:00Z');
    expect(readWaiting(pod({}, LACKS), TAINTS, now)).to.deep.include({ ageMs: 120_000, gated: false, reason: LACKS });
  });

  it('and the five oldest are shown', () => {
    const pods = Array.from({ length: 7 }, (_, index) => index).map((ageMs) => {
      return { namespace: 'shop', name: `p${ageMs}`, ageMs, gated: false, reason: '' };
    });
    const { count, oldest } = oldestOf(pods);
    expect([count, oldest.map(({ name }) => name)]).to.deep.equal([7, ['p6', 'p5', 'p4', 'p3', 'p2']]);
  });

  it('and the newest Event says why', () => {
    const events = [
      { reason: 'A', note: 'old', eventTime: '2026-01-01T00:00:00Z' },
      {
        reason: 'B',
        note: 'new',
        eventTime: '2025-01-01T00:00:00Z',
        series: { lastObservedTime: '2026-01-02T00:00:00Z' },
      },
    ];
    expect(newestNote(events)).to.equal('B: new (said at 00:00:00 UTC)');
    expect(newestNote([])).to.equal(undefined);
  });
});
