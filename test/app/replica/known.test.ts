import { expect } from 'chai';
import { type Counts, isWaiting, knownProblems, taintedNodes, waitingPod } from '../../../src/app/replica/known.ts';
import { rememberSaid, type Said } from '../../../src/app/replica/said.ts';
import { createRecords, type ObjectRecord } from '../../../src/controllers/memory.ts';
import type { JsonObject } from '../../../src/kit/json.ts';
import type { Occurrence } from '../../../src/kube/events.ts';
import type { Decision } from '../../../src/placement/decide.ts';
import { type Pod, readPod } from '../../../src/placement/objects/pod.ts';
import { node, place, settings, taint } from '../../placement/objects.ts';

const pod = (spec: JsonObject = {}, status: JsonObject = {}): Pod =>
  readPod({
    metadata: { namespace: 'shop', name: 'web', uid: 'u', creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: { containers: [{ name: 'c', image: 'app:1' }], ...spec },
    status,
  });
const record = (decision: ObjectRecord['decision'], notes?: ObjectRecord['notes']): ObjectRecord =>
  Object.assign(createRecords().of('shop/web', 'u'), { decision, notes });

const [PLACE, NOWHERE] = [place(['amd64']), place(['s390x'])];
const FAILED = { image: 'app:1', code: 'not-found', message: 'no', registry: 'r.example.com' } as const;
const WAIT: Decision = { kind: 'wait', images: ['app:1'], failed: [], againInMs: undefined, givesUpInMs: undefined };
const HOLD: Decision = { kind: 'hold', reason: 'no-common-architecture', images: [] };
const IGNORED = { kind: 'skip', reason: 'ignored' } as const;
const GATE = { schedulingGates: [{ name: 'archaware.dev/architecture' }] };
const [ON_AMD, ON_ARM] = ['amd64', 'arm64'].map((name) => ({ nodeSelector: { 'kubernetes.io/arch': name } }));
const TOLERATING = { tolerations: [{ key: 'supported-arch', operator: 'Exists' }] };
const tainted = (architecture: string) =>
  node({ architecture, taints: [taint(`supported-arch=${architecture}:NoSchedule`)] });
const TAINTED = taintedNodes([tainted('amd64'), tainted('arm64'), tainted('arm64')], settings());
const HALF = taintedNodes([tainted('amd64'), node({ architecture: 'arm64' })], settings());

describe('a pod waits because of archaware', () => {
  const rows: readonly (readonly [
    what: string,
    expected: boolean,
    given: Pod,
    decision: ObjectRecord['decision'],
    more?: { readonly nodes?: typeof TAINTED; readonly mode?: 'observe' },
  ])[] = [
    ['its images are looked up', true, pod(), WAIT],
    ['its images have nothing in common', true, pod(), HOLD],
    ['it has the gate, and is not decided', true, pod(GATE), undefined],
    ['it asks for what its images lack', true, pod(ON_ARM), PLACE],
    ['no: it is placed', false, pod(), PLACE],
    ['its images run on no node', true, pod(), NOWHERE],
    ['no: its images run on no node, and there are no nodes', false, pod(), NOWHERE, { nodes: [] }],
    ['no: its images set no limit', false, pod(), place(['s390x'], { followsCluster: true })],
    ['no: it is not decided', false, pod(), undefined],
    ['no: it has a node', false, pod({ nodeName: 'n' }), WAIT],
    ['no: it has ended', false, pod({}, { phase: 'Failed' }), WAIT],
    ['no: archaware only observes', false, pod(), WAIT, { mode: 'observe' }],
    ['it is left alone, and every node has the taint', true, pod(), IGNORED],
    ['no: it is left alone, and a node has no taint', false, pod(), IGNORED, { nodes: HALF }],
    ['it is left alone, and the nodes that it asks for have the taint', true, pod(ON_AMD), IGNORED, { nodes: HALF }],
    ['no: it is left alone, and tolerates one', false, pod(TOLERATING), IGNORED],
    ['no: it is left alone, and there are no nodes', false, pod(), IGNORED, { nodes: [] }],
    ['no: a DaemonSet decides for it', false, pod(), { kind: 'skip', reason: 'daemon-pod' }],
  ];
  for (const [what, expected, given, decision, { nodes = TAINTED, mode = 'taints' } = {}] of rows) {
    it(what, () => expect(isWaiting(given, record(decision), settings({ mode }), nodes)).to.equal(expected));
  }

  it('with each pair of architecture and taint once', () => expect(TAINTED).to.have.lengthOf(2));

  it('and says since when and until when', () => {
    const state = record({ ...WAIT, failed: [FAILED] }, { startsAt: Date.parse('2026-01-01T00:02:00Z') });
    expect(waitingPod(pod(GATE), state, settings(), undefined)).to.deep.include({
      gated: true,
      since: '2026-01-01T00:00:00.000Z',
      outlook: 'the pod starts by itself at 00:02:00 UTC at the latest',
      reason: 'ImageUnresolvable: image app:1 could not be resolved (not-found) at r.example.com: no',
    });
  });

  it('while the API server refuses the write, without the promise that cannot be kept', () => {
    const refused = { what: 'pods', since: 0, count: 3 };
    for (const state of [record(undefined, { refused }), record(WAIT, { refused, startsAt: 0 })]) {
      expect(isWaiting(pod(), state, settings(), TAINTED)).to.equal(true);
      const { reason, outlook } = waitingPod(pod(), state, settings(), undefined);
      expect([reason, outlook]).to.deep.equal(['WriteRefused: the API server refuses what archaware writes to it', '']);
    }
  });

  const ALONE = /^it tolerates no taint of archaware, and is left alone: /;
  const CONTRADICTION =
    /^NoCommonArchitecture: requires kubernetes.io\/arch=arm64 .* but its images run on amd64 only$/;
  const reasons: [what: string, given: Pod, state: ObjectRecord, queued: string | undefined, reason: RegExp][] = [
    ['a place in a line', pod(), record(WAIT), 'waits for its turn', /^waits for its turn$/],
    ['a lookup', pod(), record(WAIT), undefined, /^its images are being looked up$/],
    ['the gate', pod(GATE), record(undefined), undefined, /^it has the gate, because an image is not known yet$/],
    ['no other problem', pod(ON_ARM), record({ ...PLACE, failed: [FAILED] }), undefined, CONTRADICTION],
    ['no node', pod(), record(NOWHERE), undefined, /^its images run on s390x, and no node has that architecture$/],
    ['that it is left alone', pod(), record(IGNORED), undefined, ALONE],
  ];
  for (const [what, given, state, queued, reason] of reasons) {
    it(`and says why: ${what}`, () => expect(waitingPod(given, state, settings(), queued).reason).to.match(reason));
  }
});

const NOW = Date.parse('2026-01-01T00:00:00Z');
const counts = (more: Partial<Counts> = {}): Counts => ({
  ...{ contested: 0, heldBack: 0, stopped: 0, onWrongNodes: 0, configurationInUse: true, certificateExpiry: undefined },
  ...more,
});
const said = (kind: string, name: string, reason: Said['reason']): Said => ({
  regarding: { apiVersion: 'v1', kind, name, uid: 'u', ...(kind === 'Node' ? {} : { namespace: 'shop' }) },
  reason,
  note: 'why',
});

const of = (namespace: string, { regarding, ...rest }: Said): Said => ({
  ...rest,
  regarding: { ...regarding, namespace },
});

describe('the problems that a leader knows', () => {
  const rows: readonly (readonly [what: string, counts: Counts, said: readonly Said[], expected: readonly RegExp[]])[] =
    [
      ['nothing', counts(), [], []],
      ['an object', counts(), [said('DaemonSet', 'a', 'WriteRefused')], [/^DaemonSet shop\/a: WriteRefused: why$/]],
      ['a node', counts({ contested: 1 }), [said('Node', 'n1', 'WriteContested')], [/^Node n1: WriteContested: why$/]],
      [
        'a node first, then what makes pods, then a pod',
        counts(),
        ['Pod', 'DaemonSet', 'Node'].map((kind) => said(kind, 'a', 'WriteRefused')),
        [/^Node a/, /^DaemonSet shop\/a/, /^Pod shop\/a/],
      ],
      [
        'one of the system, whatever tenants have',
        counts({ stopped: 1 }),
        [
          ...Array.from({ length: 12 }, (_, index) => said('ReplicaSet', `r${index}`, 'RefusedByPolicy')),
          of('kube-system', said('DaemonSet', 'cni', 'RolloutStopped')),
          of('kube-system', said('Pod', 'dns', 'WrongNode')),
        ],
        [/kube-system\/cni/, /kube-system\/dns/, ...Array.from({ length: 8 }, () => /RefusedByPolicy/), /^4 more/],
      ],
      ['a refused file', counts({ configurationInUse: false }), [], [/^the changed configuration file is refused/]],
      ['a certificate that ends soon', counts({ certificateExpiry: NOW + 7_200_000 }), [], [/at 2026-01-01T02:00:00/]],
      ['a certificate that does not', counts({ certificateExpiry: NOW + 8 * 86_400_000 }), [], []],
      ['a pod on a wrong node', counts({ onWrongNodes: 1 }), [], [/^1 pod does not run on its node$/]],
      [
        'pods on wrong nodes by name, after what harms the cluster',
        counts({ onWrongNodes: 3 }),
        [said('Pod', 'a', 'WrongNode'), said('DaemonSet', 'b', 'WriteRefused'), said('Pod', 'c', 'WrongNode')],
        [
          /^DaemonSet shop\/b: WriteRefused: why$/,
          /^Pod shop\/a: WrongNode: why$/,
          /^Pod shop\/c: WrongNode: why$/,
          /^1 pod does not run on its node$/,
        ],
      ],
      ['writes that are undone', counts({ contested: 2 }), [], [/^another writer keeps undoing .* to 2 objects$/]],
      ['a rollout', counts({ stopped: 1 }), [], [/^1 DaemonSet is not back after .* the template; others wait$/]],
      ['taints', counts({ heldBack: 2 }), [], [/^2 nodes stay untainted: /]],
      [
        'that Events name all that are counted',
        counts({ stopped: 1, heldBack: 2, contested: 1 }),
        [
          said('DaemonSet', 'a', 'RolloutStopped'),
          said('DaemonSet', 'a', 'TaintHeldBack'),
          said('Pod', 'p', 'WriteContested'),
        ],
        [/RolloutStopped/, /TaintHeldBack/, /WriteContested/],
      ],
      [
        'that Events name one of two',
        counts({ stopped: 2 }),
        [said('DaemonSet', 'a', 'RolloutStopped')],
        [/^DaemonSet shop\/a: RolloutStopped/, /^1 DaemonSet is not back/],
      ],
      [
        'ten of many',
        counts(),
        Array.from({ length: 12 }, (_, index) => said('Pod', `p${index}`, 'WriteRefused')),
        [...Array.from({ length: 10 }, () => /^Pod shop\/p\d: WriteRefused/), /^2 more objects with such an Event$/],
      ],
    ];
  for (const [what, given, events, expected] of rows) {
    it(what, () => {
      const problems = knownProblems(given, events, NOW, settings());
      expect(problems.map(({ problem }) => problem)).to.have.lengthOf(expected.length);
      for (const [index, pattern] of expected.entries()) expect(problems[index]?.problem).to.match(pattern);
      for (const { do: advice } of problems) expect(advice).not.to.equal('');
    });
  }

  it('says of a refused write that a right may be missing, too', () => {
    const [problem] = knownProblems(counts(), [said('Pod', 'a', 'WriteRefused')], NOW, settings());
    expect(problem?.do).to.match(/^if a right is missing, apply the manifest of the mode again; otherwise allow/);
  });

  it('claims no refusal where a DaemonSet only waits for another one, or does not get ready', () => {
    const events = (['TaintHeldBack', 'RolloutStopped'] as const).map((reason) => said('DaemonSet', 'a', reason));
    const advice = knownProblems(counts(), events, NOW, settings()).map((problem) => problem.do);
    expect(advice[0]).to.match(
      /^if its write is refused, .*; if it waits for others, or is not back, see to the DaemonSet/,
    );
    expect(advice[1]).to.match(/^if a policy refuses its pods, .*; if its pods do not get ready, correct/);
  });

  it('says how pods that are allowed again come at once: their owner waits for up to a quarter of an hour', () => {
    const [problem] = knownProblems(counts(), [said('DaemonSet', 'a', 'RefusedByPolicy')], NOW, settings());
    expect(problem?.do).to.match(/; then kubectl rollout restart, because/);
  });

  it("says how a taint with another value is put right, if archaware's own policy refuses that", () => {
    const note = 'nodes "n1" is forbidden: ValidatingAdmissionPolicy \'archaware-guard-nodes\' denied request';
    const [problem] = knownProblems(counts(), [{ ...said('Node', 'n1', 'WriteRefused'), note }], NOW, settings());
    expect(problem?.do).to.match(
      /^if somebody gave the taint of archaware another value, kubectl taint node NAME KEY-.* the domain of a label rule, /,
    );
  });

  it('says where the other writer of a node is to be found', () => {
    const [problem] = knownProblems(counts(), [said('Node', 'n1', 'WriteContested')], NOW, settings());
    expect(problem?.do).to.match(/^set the taint where that writer gets its taints from/);
  });
});

describe('what Events said', () => {
  function remembering(accepts = true) {
    const events = rememberSaid({ emit: () => accepts, flush: () => Promise.resolve() });
    const emit = (namespace: string, name: string, reason: Occurrence['reason'], note = 'n') => {
      const regarding = { apiVersion: 'apps/v1', kind: 'DaemonSet', namespace, name, uid: 'u' };
      return events.emit({ regarding, type: 'Warning', reason, action: 'Placing', note });
    };
    const all = () =>
      [...events.said()].map(({ regarding: { namespace, name }, note }) => `${namespace}/${name} ${note}`);
    return { emit, all };
  }

  it('is remembered once for each object and reason, the newest note', () => {
    const { emit, all } = remembering();
    emit('a', 'x', 'WriteRefused', 'old');
    emit('a', 'y', 'WriteRefused');
    emit('a', 'x', 'WriteRefused', 'new');
    emit('a', 'z', 'OpenPlacement');
    expect(all()).to.deep.equal(['a/y n', 'a/x new']);
  });

  it('is not remembered if the Event was dropped', () => {
    const { emit, all } = remembering(false);
    expect(emit('a', 'x', 'WriteRefused')).to.equal(false);
    expect(all()).to.deep.equal([]);
  });

  it('is bounded for each namespace, so that none displaces another, and in all', () => {
    const { emit, all } = remembering();
    emit('system', 'cni', 'RolloutStopped');
    for (let index = 0; index < 500; index++) emit('tenant', `x${index}`, 'WriteRefused', 'y'.repeat(5_000));
    expect(all()).to.have.lengthOf(11);
    expect(all()[0]).to.equal('system/cni n');
    expect(all().at(-1)?.length).to.be.at.most(420);
    for (let index = 0; index < 120; index++) emit(`tenant-${index % 12}`, `x${index}`, 'WriteRefused');
    expect(all()).to.have.lengthOf(100);
    expect(all()[0], 'a tenant of many namespaces').to.equal('system/cni n');
    for (let index = 0; index < 500; index++) emit(`n${index}`, 'x', 'WriteRefused');
    expect(all()).to.have.lengthOf(100);
  });
});
