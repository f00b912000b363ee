import { expect } from 'chai';
import type { Facts, LeaseFact, Read, Replica } from '../../../src/cli/status/facts.ts';
import type { ReplicaMetrics } from '../../../src/cli/status/metrics-text.ts';
import { problemsOf } from '../../../src/cli/status/problems.ts';
import { statusText } from '../../../src/cli/status/text.ts';

const read = <T>(value: T): Read<T> => ({ kind: 'read', value });
const FORBIDDEN = { kind: 'unread', why: 'needs the right to do it' } as const;

const metrics = (more: Partial<ReplicaMetrics> = {}): ReplicaMetrics => ({
  ...{ version: '1.2.3', leads: true, pods: { placed: 4, held: 1 }, configurationInUse: true },
  ...{ wrongNodePods: 0, contestedObjects: 0, unresolvableImages: 0, certificateExpirySeconds: undefined },
  keepsDaemonSets: undefined,
  ...{
    wrongNodePods: 0,
    contestedObjects: 0,
    taintsHeldBack: 0,
    rolloutStopped: 0,
    unresolvableImages: 0,
    certificateExpirySeconds: undefined,
  },
  ...more,
});
const replica = (more: Partial<ReplicaMetrics> = {}): Replica => ({
  name: 'archaware-controller-6d4cf-x1',
  ready: true,
  trouble: '',
  metrics: read(metrics(more)),
});
const lease = (more: Partial<LeaseFact> = {}): Facts['lease'] =>
  read({
    holder: 'archaware-controller-6d4cf-x1-0b2fb9a4-94d4-4aa3-9d1a-7f8d4c1a2b3c',
    ageMs: 2_000,
    durationMs: 15_000,
    ...more,
  });
const waits = (ageMs: number, gated = false): Facts['waiting'] =>
  read({
    count: 7,
    oldest: [{ namespace: 'shop', name: 'web-1', ageMs, gated, reason: 'ImageUnresolvable: not-found' }],
  });

const nodes = (more: object): Facts['nodes'] => read({ counts: [], lacking: [], unmanaged: [], ...more });

const facts = (more: Partial<Facts> = {}): Facts => ({
  commandVersion: '1.2.3',
  mode: 'taints',
  taint: 'supported-arch:NoSchedule',
  origin: 'cluster',
  elects: true,
  leaseName: 'archaware/archaware-controller',
  installation: 'archaware/archaware-controller',
  deployment: read({ namespace: 'archaware', name: 'archaware-controller', wanted: 2, ready: 2 }),
  replicas: read([replica(), replica({ leads: false })]),
  lease: lease(),
  nodes: read({
    counts: [{ architecture: 'amd64', total: 3, tainted: 2, untainted: 1, foreign: 0 }],
    lacking: [],
    unmanaged: [],
  }),
  waiting: read({ count: 0, oldest: [] }),
  troubles: read([]),
  pools: read([]),
  webhook: { state: 'off', why: '' },
  webhookConfiguration: read(true),
  guard: read({ kind: 'holds' }),
  ...more,
});
const BROKEN = read({ kind: 'broken', example: 'shop/agent' } as const);
const nothing = {
  deployment: read(undefined),
  replicas: read([]),
  lease: read(undefined),
} as const;

const noEvents = { troubles: { kind: 'unread', why: 'needs the right to list events.events.k8s.io' } } as const;
const unread = {
  ...{ deployment: FORBIDDEN, replicas: FORBIDDEN, lease: FORBIDDEN },
  ...{ nodes: FORBIDDEN, waiting: FORBIDDEN, pools: FORBIDDEN, guard: FORBIDDEN },
} as const;

describe('the advice for nodes without the taint', () => {
  const trouble = (reason: 'WriteContested' | 'WriteRefused') =>
    ({ kind: 'Node', namespace: '', name: 'n1', reason, note: 'the note' }) as const;
  for (const [what, troubles, expected] of [
    [
      'another writer reverts it',
      [trouble('WriteContested')],
      /^another writer takes the taint off n1 again: set supported-arch:NoSchedule/,
    ],
    [
      'the write is refused',
      [trouble('WriteRefused')],
      /^allow the write .*; Event WriteRefused of node n1: the note$/,
    ],
    ['nothing is known', [], /^after an installation, wait for bootstrap.timeout;/],
  ] as const) {
    it(`names the reason: ${what}`, () => {
      const given = facts({ nodes: read({ counts: [], lacking: ['n1'], unmanaged: [] }), troubles: read(troubles) });
      const [problem, ...others] = problemsOf(given);
      expect(problem?.do).to.match(expected);
      expect(others).to.deep.equal([]);
    });
  }
});

describe('the lines of status', () => {
  const lines: readonly (readonly [what: string, given: Partial<Facts>, expected: RegExp])[] = [
    ['version', {}, /^version +1\.2\.3; 2 of 2 replicas ready \(Deployment archaware\/archaware-controller\)$/m],
    [
      'no problem, without the right to read Events',
      noEvents,
      /^problems +none found; Events could not be read: needs the right to list events.events.k8s.io$/m,
    ],
    ['another version than the command', { commandVersion: '2.0.0' }, /; this command is 2\.0\.0$/m],
    ['nothing installed', nothing, /^version +not installed; this command is 1\.2\.3$/m],
    [
      'mode',
      { origin: 'unreadable' },
      /^mode +unknown: taints, by the defaults, because the controller's configuration could not be read; give its configuration with --config$/m,
    ],
    [
      'leader without its id',
      {},
      /^leader +archaware-controller-6d4cf-x1, renewed 2 s ago \(Lease archaware\/archaware-controller\)$/m,
    ],
    [
      'a leader that is gone',
      { lease: lease({ ageMs: 90_000 }), replicas: FORBIDDEN },
      /^leader +none; the last one was \S+, renewed 1 min ago/m,
    ],
    ['no Lease', { lease: read(undefined) }, /^leader +none: there is no Lease archaware\/archaware-controller$/m],
    ['no leader election', { elects: false }, /^leader +leader election is off$/m],
    ['nodes', {}, /^nodes +amd64 3 \(2 tainted, 1 untainted\)$/m],
    ['pods', {}, /^pods +4 placed, 0 waiting for a lookup, 1 held, 0 open, 0 ignored$/m],
    [
      'a missing right',
      { replicas: FORBIDDEN, nodes: FORBIDDEN },
      /^nodes +unknown: needs the right to do it\npods +unknown: needs the right to do it$/m,
    ],
    [
      'pods that wait for a node',
      { waiting: waits(200_000) },
      /^pending +shop\/web-1 \(3 min\): ImageUnresolvable: not-found\n +and 6 more$/m,
    ],
    [
      'a refused file',
      { replicas: read([replica(), replica({ configurationInUse: false })]) },
      /^reload +refused on 1 of 2 replicas$/m,
    ],
    ['the webhook', { webhook: { state: 'not-reached', why: 'why' } }, /^webhook +not reached: why$/m],
    ['a guard that holds', {}, /^guard +updates that drop archaware's tolerations from DaemonSets are corrected$/m],
    [
      'a guard that does not hold',
      { guard: BROKEN },
      /^guard +broken: an update of shop\/agent that drops archaware's tolerations came back without them \(dry run\)$/m,
    ],
    [
      'nothing to guard',
      { guard: read({ kind: 'nothing' }) },
      /^guard +nothing to guard: no DaemonSet has tolerations/m,
    ],
    [
      'a guard that could not be tried',
      { guard: read({ kind: 'unknown', why: 'needs the right to do it' }) },
      /^guard +unknown: needs the right to do it\n(.*\n)*problems +none found; 1 line could not be read$/m,
    ],
    [
      'a guard that only the leader may try',
      { guard: FORBIDDEN, replicas: read([replica({ keepsDaemonSets: true })]) },
      /^guard +updates that drop .* are corrected, as the leader has found out\n(.*\n)*problems +none$/m,
    ],
    [
      'a guard that only the leader may try, and that does not hold',
      { guard: FORBIDDEN, replicas: read([replica({ keepsDaemonSets: false })]) },
      /^guard +broken: updates that drop .* are not corrected, as the leader has found out$/m,
    ],
    ['no problems', {}, /^problems +none$/m],
    [
      'no problems where three lines could not be read',
      { replicas: FORBIDDEN },
      /^problems +none found; 3 lines could not be read$/m,
    ],
    [
      'no problems where nothing could be read',
      { ...unread, origin: 'unreadable' },
      /^webhook +unknown: .*\nguard +unknown: needs the right to do it\npools +unknown: needs the right to do it\nproblems +none found; 10 lines could not be read$/m,
    ],
    [
      'a webhook whose configuration may not be read',
      { webhook: { state: 'unknown', why: 'not tested' }, webhookConfiguration: FORBIDDEN },
      /^webhook +unknown: needs the right to do it\nguard .*\npools .*\nproblems +none found; 1 line could not be read$/m,
    ],
    ['a webhook that was not tested', { webhook: { state: 'unknown', why: 'not tested' } }, /^problems +none$/m],
    [
      'a controller outside of the cluster, whose configuration is not known',
      { ...nothing, lease: lease(), origin: 'defaults' },
      /^mode +unknown: taints, by the defaults, because the controller runs outside of the cluster; give its configuration with --config$/m,
    ],
  ];
  for (const [what, given, expected] of lines) {
    it(`show ${what}`, () => {
      const all = facts(given);
      expect(statusText(all, problemsOf(all))).to.match(expected);
    });
  }

  it('fit 80 columns', () => {
    const all = facts({ waiting: waits(1), webhook: { state: 'unknown', why: 'word '.repeat(40) } });
    for (const line of statusText(all, problemsOf(all), 80).split('\n')) expect(line.length, line).to.be.at.most(80);
  });
});

describe('the problems of status', () => {
  const rows: readonly (readonly [what: string, given: Partial<Facts>, expected: readonly RegExp[]])[] = [
    ['nothing is wrong', {}, []],
    ['nothing could be read', unread, []],
    ['nothing is installed', { ...nothing, nodes: nodes({}) }, [/^archaware is not installed: /]],
    [
      'it was removed without clean',
      nothing,
      [/is not installed/, /^2 nodes still have the taint supported-arch:NoSchedule/],
    ],
    ['it runs outside of the cluster', { ...nothing, lease: lease() }, []],
    [
      'it is scaled to 0',
      { deployment: read({ namespace: 'a', name: 'b', wanted: 0, ready: 0 }) },
      [/^Deployment a\/b is scaled to 0$/],
    ],
    [
      'a replica is not ready',
      {
        deployment: read({ namespace: 'a', name: 'b', wanted: 2, ready: 1 }),
        replicas: read([replica(), { ...replica(), ready: false, trouble: 'ImagePullBackOff' }]),
      },
      [/^1 of 2 replicas of Deployment a\/b are ready: ImagePullBackOff$/],
    ],
    [
      'the Lease is old',
      { replicas: FORBIDDEN, lease: lease({ ageMs: 60_000 }) },
      [/^no replica leads: \S+ has not renewed the Lease \S+ for 60 s$/],
    ],
    ['the Lease is old only by this clock', { lease: lease({ ageMs: 60_000 }) }, []],
    [
      'nobody holds the Lease',
      { replicas: FORBIDDEN, lease: lease({ holder: '' }) },
      [/^no replica leads: nobody holds the Lease/],
    ],
    [
      'a file was refused',
      { replicas: read([replica({ configurationInUse: false })]) },
      [/refused the changed configuration file/],
    ],
    [
      'versions differ',
      { replicas: read([replica(), replica({ version: '2', leads: false })]) },
      [/different versions: 1\.2\.3, 2$/],
    ],
    [
      'nodes lack the taint',
      { nodes: nodes({ lacking: ['n1'] }) },
      [/^1 node without the taint supported-arch:NoSchedule: n1$/],
    ],
    [
      'writes to a DaemonSet are refused',
      {
        troubles: read([
          { kind: 'DaemonSet', namespace: 'kube-system', name: 'cni', reason: 'WriteRefused', note: 'no' },
        ]),
      },
      [/^DaemonSet kube-system\/cni: WriteRefused: no$/],
    ],
    [
      'the Events name the DaemonSets that the metrics count',
      {
        replicas: read([replica({ rolloutStopped: 1, taintsHeldBack: 2 })]),
        troubles: read(
          (['RolloutStopped', 'TaintHeldBack'] as const).map((reason) => ({
            ...{ kind: 'DaemonSet', namespace: 'kube-system', name: 'cni', reason, note: 'why' },
          })),
        ),
      },
      [/^DaemonSet kube-system\/cni: RolloutStopped: why$/, /^DaemonSet kube-system\/cni: TaintHeldBack: why$/],
    ],
    [
      "nodes lack the taint of a configuration that is not the controller's",
      { ...nothing, lease: lease(), origin: 'defaults', nodes: nodes({ lacking: ['n1'], unmanaged: ['n1'] }) },
      [],
    ],
    [
      'taints are stranded',
      { nodes: nodes({ unmanaged: ['n1', 'n2'] }) },
      [/^2 nodes with a taint of archaware that this configuration/],
    ],
    [
      'the guard of DaemonSets does not hold',
      { guard: BROKEN },
      [
        /^an update that drops archaware's tolerations from a DaemonSet is not corrected, by a dry run with shop\/agent: /,
      ],
    ],
    [
      'only the leader may try the guard, and it does not hold',
      { guard: FORBIDDEN, replicas: read([replica({ keepsDaemonSets: false })]) },
      [/is not corrected, by a dry run of the leader: /],
    ],
    [
      'the guard holds now, but not when the leader tried it',
      { replicas: read([replica({ keepsDaemonSets: false })]) },
      [],
    ],
    ['a pod waits, not for long', { waiting: waits(9 * 60_000) }, []],
    ['a pod waits for long', { waiting: waits(11 * 60_000) }, [/^pod shop\/web-1 has waited for 11 minutes$/]],
    ['a gate is there for long', { waiting: waits(6 * 60_000, true) }, [/^pod shop\/web-1 has waited for 6 minutes$/]],
    [
      'pods are on wrong nodes',
      { replicas: read([replica({ wrongNodePods: 2 })]) },
      [/^2 pods do not run on their nodes$/],
    ],
    [
      'writes are undone',
      { replicas: read([replica({ contestedObjects: 1 })]) },
      [/^another writer keeps undoing the writes to 1 object$/],
    ],
    [
      'a rollout is stopped',
      { replicas: read([replica({ rolloutStopped: 1 })]) },
      [/^1 DaemonSet is not back after archaware changed the template; others wait$/],
    ],
    [
      'taints are held back',
      { replicas: read([replica({ taintsHeldBack: 2 })]) },
      [/^2 nodes stay untainted: a DaemonSet that runs there cannot be given its tolerations$/],
    ],
    ['the webhook is not reached', { webhook: { state: 'not-reached', why: 'why' } }, [/^why$/]],
    [
      'the certificate expires',
      { replicas: read([replica({ certificateExpirySeconds: 7_200 })]) },
      [/expires in 2 hours$/],
    ],
    [
      'a pool lacks the taint',
      {
        pools: read([{ kind: 'NodePool', name: 'p', problem: 'taint-missing', severity: 'warning', note: 'lacks it' }]),
      },
      [/^NodePool p lacks it$/],
    ],
  ];
  for (const [what, given, expected] of rows) {
    it(what, () => {
      const problems = problemsOf(facts(given));
      expect(problems.map(({ problem }) => problem)).to.have.lengthOf(expected.length);
      for (const [index, pattern] of expected.entries()) expect(problems[index]?.problem).to.match(pattern);
      for (const { do: advice } of problems) expect(advice).not.to.equal('');
    });
  }
});
