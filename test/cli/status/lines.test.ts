import { expect } from 'chai';
import { createPaint } from '../../../src/cli/paint.ts';
import type { Facts, LeaderWord, LeaseFact, Read, Replica } from '../../../src/cli/status/facts.ts';
import { problemsOf } from '../../../src/cli/status/problems.ts';
import { statusOf } from '../../../src/cli/status/status.ts';
import { statusText } from '../../../src/cli/status/text.ts';

const read = <T>(value: T): Read<T> => ({ kind: 'read', value });
const PLAIN = createPaint({ columns: undefined, colors: false });
const FORBIDDEN = { kind: 'unread', why: 'needs the right to do it' } as const;

const NOW = Date.parse('2026-01-02T00:00:00.000Z');
const LEADER = 'archaware-controller-6d4cf-x1-0b2fb9a4-94d4-4aa3-9d1a-7f8d4c1a2b3c';
const word = (more: Partial<LeaderWord> = {}): Facts['word'] =>
  read({
    ...{ writer: LEADER, version: '1.2.3', ageMs: 40_000, pods: { placed: 4, held: 1 }, tooLarge: 0 },
    ...{ waiting: { count: 0, oldest: [] }, keepsDaemonSets: undefined, problems: [] },
    ...more,
  });
const PROBLEM = { problem: 'DaemonSet kube-system/cni: WriteRefused: no', do: 'allow the write' };
const replica = (): Replica => ({ name: 'archaware-controller-6d4cf-x1', ready: true, trouble: '' });
const lease = (more: Partial<LeaseFact> = {}): Facts['lease'] =>
  read({ holder: LEADER, ageMs: 2_000, durationMs: 15_000, ...more });
const GONE = { lease: lease({ ageMs: 90_000 }) };
/** The leader alone may try the guard, and it does not hold. */
const TRIED = { guard: FORBIDDEN, word: word({ keepsDaemonSets: false }) };
const NO_LEASE = { lease: read(undefined) };
const NOBODY = { lease: lease({ holder: '' }) };
const deployment = (wanted: number, ready: number) => ({
  deployment: read({ namespace: 'a', name: 'b', wanted, ready }),
});
const waits = (ageMs: number, more: Partial<LeaderWord> & { gated?: boolean } = {}): Facts['word'] => {
  const { gated = false, ...others } = more;
  const since = new Date(NOW - ageMs).toISOString();
  const pod = { namespace: 'shop', name: 'web-1', since, gated, reason: 'ImageUnresolvable: not-found' };
  return word({ waiting: { count: 7, oldest: [{ ...pod, outlook: 'the pod starts by itself at 00:02' }] }, ...others });
};

const nodes = (more: object): Facts['nodes'] => read({ counts: [], lacking: [], unmanaged: [], ...more });

const facts = (more: Partial<Facts> = {}): Facts => ({
  commandVersion: '1.2.3',
  now: NOW,
  mode: 'taints',
  taint: 'supported-arch:NoSchedule',
  origin: 'cluster',
  elects: true,
  leaseName: 'archaware/archaware-controller',
  installation: 'archaware/archaware-controller',
  deployment: read({ namespace: 'archaware', name: 'archaware-controller', wanted: 2, ready: 2 }),
  replicas: read([replica(), replica()]),
  lease: lease(),
  nodes: nodes({ counts: [{ architecture: 'amd64', total: 3, tainted: 2, untainted: 1, foreign: 0 }] }),
  word: word(),
  wordName: 'archaware/archaware-controller-status',
  pools: read([]),
  webhook: { state: 'off', why: '' },
  webhookConfiguration: read(true),
  guard: read({ kind: 'holds' }),
  publication: undefined,
  placesByLeftovers: false,
  ...more,
});
const BROKEN = { guard: read({ kind: 'broken', example: 'shop/agent' } as const) };
const LATE = { word: waits(200_000) };
const WRONG = { word: word({ problems: [PROBLEM] }) };
const none = { deployment: read(undefined), replicas: read([]), lease: read(undefined) } as const;
const nothing = { ...none, word: read(undefined) } as const;

const unread = {
  ...{ deployment: FORBIDDEN, replicas: FORBIDDEN, lease: FORBIDDEN },
  ...{ nodes: FORBIDDEN, word: FORBIDDEN, pools: FORBIDDEN, guard: FORBIDDEN },
} as const;

describe('the lines of status', () => {
  const lines: readonly (readonly [what: string, given: Partial<Facts>, expected: RegExp])[] = [
    ['version', {}, /^version +1\.2\.3; 2 of 2 replicas ready \(Deployment archaware\/archaware-controller\)$/m],
    ['another version than the command', { commandVersion: '2.0.0' }, /; this command is 2\.0\.0$/m],
    ['no version without the rights', unread, /^version +unknown: needs the right to do it; this command is 1\.2\.3$/m],
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
    ['a leader that is gone', GONE, /^leader +none; the last one was \S+, renewed 1 min ago/m],
    ['no Lease', { lease: read(undefined) }, /^leader +none: there is no Lease archaware\/archaware-controller$/m],
    ['no leader election', { elects: false }, /^leader +leader election is off$/m],
    ['nodes', {}, /^nodes +amd64 3 \(2 tainted, 1 untainted\)$/m],
    ['pods', {}, /^pods +4 placed, 0 waiting for a lookup, 1 held, 0 open, 0 ignored$/m],
    [
      'a missing right',
      { word: FORBIDDEN, nodes: FORBIDDEN },
      /^nodes +unknown: needs the right to do it\nwritten +unknown: needs the right to do it\npods +unknown\npending +unknown$/m,
    ],
    [
      'pods that wait for a node',
      LATE,
      /^pending +shop\/web-1 \(3 min\): ImageUnresolvable: not-found; the pod starts by itself at 00:02\n +and 6 more$/m,
    ],
    ...[GONE, { lease: FORBIDDEN }].map(
      (leads) =>
        [
          'no promise',
          { ...LATE, ...leads },
          /^pending +shop\/web-1 \(3 min\): ImageUnresolvable: not-found\n/m,
        ] as const,
    ),
    ['objects that are too large', { word: word({ tooLarge: 3 }) }, /^pods .* 0 ignored; 3 too large to be served$/m],
    [
      'who wrote it, and when',
      {},
      /^written +40 s ago by archaware-controller-6d4cf-x1 \(ConfigMap archaware\/archaware-controller-status\)$/m,
    ],
    [
      'the word of a leader of the past',
      { word: word({ writer: 'another', ageMs: 7_200_000 }) },
      /^written +2 h ago by another \(.*\), which does not lead now: pods and pending may be out of date$/m,
    ],
    [
      'that its writer does not lead, because nobody does',
      NOBODY,
      /^leader +none: .*\n(.*\n)*written +40 s ago by \S+ \(.*\), which does not lead now/m,
    ],
    ['no word yet', { word: read(undefined) }, /^written +unknown: no leader has written anything yet \(ConfigMap /m],
    ['no version of a leader of the past', { word: word({ writer: 'x' }) }, /^version +unknown; 2 of 2 replicas/m],
    ['the webhook', { webhook: { state: 'not-reached', why: 'why' } }, /^webhook +not reached: why$/m],
    ['a guard that holds', {}, /^guard +updates that drop archaware's tolerations from DaemonSets are corrected$/m],
    [
      'a guard that does not hold',
      BROKEN,
      /^guard +broken: an update of shop\/agent that drops archaware's tolerations came back without them \(dry run\)$/m,
    ],
    ['nothing to guard', { guard: read({ kind: 'nothing' }) }, /^guard +nothing to guard: no DaemonSet has tol/m],
    [
      'a guard that could not be tried',
      { guard: read({ kind: 'unknown', why: 'needs the right to do it' }) },
      /^problems +none found; 1 line could not be read\n(.*\n)*guard +unknown: needs the right to do it$/m,
    ],
    [
      'a guard that only the leader may try',
      { guard: FORBIDDEN, word: word({ keepsDaemonSets: true }) },
      /^problems +none\n(.*\n)*guard +updates that drop .* are corrected, as the leader has found out$/m,
    ],
    [
      'a guard that only the leader may try, and that does not hold',
      TRIED,
      /^guard +broken: updates that drop .* are not corrected, as the leader has found out$/m,
    ],
    ['no problems', {}, /^problems +none$/m],
    ['no problems in part', { word: FORBIDDEN }, /^problems +none found; 4 lines could not be read$/m],
    [
      'no problems where nothing could be read',
      { ...unread, origin: 'unreadable' },
      /^problems +none found; 10 lines could not be read\n(.*\n)*webhook +unknown: .*\nguard +unknown: needs the right to do it\npools +unknown: needs the right to do it$/m,
    ],
    [
      'a webhook whose configuration may not be read',
      { webhook: { state: 'unknown', why: 'not tested' }, webhookConfiguration: FORBIDDEN },
      /^problems +none found; 1 line could not be read\n(.*\n)*webhook +unknown: needs the right to do it\nguard .*\npools /m,
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
      expect(statusText(all, problemsOf(all), PLAIN)).to.match(expected);
    });
  }

  const verdicts: readonly (readonly [what: string, given: Partial<Facts>, line: string])[] = [
    ['no problems', {}, '32mproblems  ✓\u001b[39m  none'],
    ['what could not be read', { pools: FORBIDDEN }, '33mproblems  !\u001b[39m  none found; 1 line could not be read'],
    ['a problem', WRONG, '31mproblems  ✗\u001b[39m  DaemonSet kube-system/cni: '],
  ];
  for (const [what, given, line] of verdicts) {
    it(`begin with the verdict, in color at a terminal: ${what}`, () => {
      const all = facts(given);
      const [first] = statusText(all, problemsOf(all), createPaint({ columns: 200, colors: true }), 200).split('\n');
      expect(first?.startsWith(`\u001b[${line}`), first).to.equal(true);
    });
  }

  it('fit 80 columns', () => {
    const all = facts({ word: waits(1), webhook: { state: 'unknown', why: 'word '.repeat(40) } });
    for (const line of statusText(all, problemsOf(all), PLAIN, 80).split('\n'))
      expect(line.length, line).to.be.at.most(80);
  });
});

describe('the problems of status', () => {
  const POOL = {
    kind: 'NodePool',
    name: 'p',
    problem: 'taint-missing',
    severity: 'warning',
    note: 'lacks it',
  } as const;
  const FOREIGN = { ...nothing, lease: lease(), origin: 'defaults' } as const;
  const lacking = { nodes: nodes({ lacking: ['n1'] }) };
  const stranded = { nodes: nodes({ unmanaged: ['n1', 'n2'] }) };
  const late = (minutes: number, more = {}) => ({ word: waits(minutes * 60_000, more) });
  const rows: readonly (readonly [what: string, given: Partial<Facts>, expected: readonly RegExp[]])[] = [
    ['nothing is wrong', {}, []],
    ['nothing could be read', unread, []],
    ['nothing is installed', { ...nothing, nodes: nodes({}) }, [/^archaware is not installed: /]],
    ['it was removed without clean', nothing, [/is not installed/, /^2 nodes still have the taint supported-arch:No/]],
    ['it runs outside of the cluster', { ...nothing, lease: lease() }, []],
    ['it is scaled to 0', deployment(0, 0), [/^Deployment a\/b is scaled to 0$/]],
    ['so nobody leads', { ...deployment(0, 0), ...NO_LEASE }, [/^no replica leads: Deployment a\/b is scaled to 0$/]],
    [
      'a replica is not ready',
      { ...deployment(2, 1), replicas: read([replica(), { ...replica(), ready: false, trouble: 'ImagePullBackOff' }]) },
      [/^1 of 2 replicas of Deployment a\/b are ready: ImagePullBackOff$/],
    ],
    ['the Lease is old', GONE, [/^no replica leads: \S+ has not renewed the Lease \S+ for 90 s$/]],
    ['nobody holds the Lease', NOBODY, [/^no replica leads: nobody holds the Lease/]],
    ['nodes lack the taint', lacking, [/^1 node without the taint supported-arch:NoSchedule: n1$/]],
    ['the leader has written problems', WRONG, [/^DaemonSet kube-system\/cni: WriteRefused/]],
    ['a leader of the past wrote problems', { word: word({ problems: [PROBLEM], writer: 'another' }) }, []],
    ['the last leader wrote problems', { ...WRONG, ...NOBODY }, [/^no replica leads/]],
    ['it wrote them without an election', { ...WRONG, elects: false }, [/^DaemonSet kube-system\/cni/]],
    ["nodes lack another configuration's taint", { ...FOREIGN, ...lacking }, []],
    ['they have a stranded one of another configuration', { ...FOREIGN, ...stranded }, []],
    ['taints are stranded', stranded, [/^2 nodes with a taint of archaware that this configuration/]],
    [
      'the guard of DaemonSets does not hold',
      BROKEN,
      [
        /^an update that drops archaware's tolerations from a DaemonSet is not corrected, by a dry run with shop\/agent: /,
      ],
    ],
    ['only the leader may try the guard', TRIED, [/is not corrected, by a dry run of the leader: /]],
    ['the guard holds now, but not when the leader tried it', { word: word({ keepsDaemonSets: false }) }, []],
    ['a pod waits, not for long', late(9), []],
    ['a pod waits for long', late(11), [/^pod shop\/web-1 has waited for 11 minutes$/]],
    ['a pod waited for long when another replica led', late(11, { writer: 'another' }), []],
    ['a gate is there for long', late(6, { gated: true }), [/^pod shop\/web-1 has waited for 6 minutes$/]],
    [
      'the policy places pods, and nothing should be published any more',
      { placesByLeftovers: true },
      [/^placement.publish is false, and archaware-place still places new pods, by what was published before: /],
    ],
    ['the same of a configuration that is not known', { placesByLeftovers: true, origin: 'unreadable' }, []],
    ['the webhook is not reached', { webhook: { state: 'not-reached', why: 'why' } }, [/^why$/]],
    ['a pool lacks the taint', { pools: read([POOL]) }, [/^NodePool p lacks it$/]],
  ];
  for (const [what, given, expected] of rows) {
    it(what, () => {
      const problems = problemsOf(facts(given));
      expect(problems.map(({ problem }) => problem)).to.have.lengthOf(expected.length);
      for (const [index, pattern] of expected.entries()) expect(problems[index]?.problem).to.match(pattern);
      for (const { do: advice } of problems) expect(advice).not.to.equal('');
    });
  }

  it('advises clean for stranded taints in the mode observe, which has no loop for nodes', () => {
    const [problem] = problemsOf(facts({ ...stranded, mode: 'observe' }));
    expect(problem?.do).to.match(/^remove them with clean --stop, and apply the manifest again/);
  });
});

describe('the status for programs', () => {
  const rows: readonly (readonly [what: string, given: Partial<Facts>, expected: object])[] = [
    [
      'the word of the leader',
      { word: waits(60_000, { tooLarge: 2 }) },
      {
        written: { by: LEADER, secondsAgo: 40, leads: true },
        pods: { placed: 4, held: 1 },
        tooLarge: 2,
        waiting: {
          count: 7,
          oldest: [
            { namespace: 'shop', name: 'web-1', gated: false, reason: 'ImageUnresolvable: not-found', ageSeconds: 60 },
          ],
        },
      },
    ],
    [
      'the word of another',
      { word: word({ writer: 'another' }) },
      { written: { by: 'another', secondsAgo: 40, leads: false }, pods: { placed: 4, held: 1 } },
    ],
    ['no word', { word: read(undefined) }, { written: null, pods: null, tooLarge: null, waiting: null }],
  ];
  for (const [what, given, expected] of rows)
    it(`has ${what}`, () => expect(statusOf(facts(given), [])).to.deep.include(expected));
});
