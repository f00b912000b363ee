import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import { type CountedPod, createTally, keepReports } from '../../../src/app/replica/namespace-reports.ts';
import { LeaseLostError } from '../../../src/kube/errors.ts';
import { readNamespace } from '../../../src/placement/objects/namespace.ts';
import { createHandClock } from '../../controllers/hand-clock.ts';
import { settings } from '../../placement/objects.ts';

const HOLD = { kind: 'hold', reason: 'no-common-architecture', images: [] } as const;
const IGNORED = { kind: 'skip', reason: 'ignored' } as const;
const counted = (
  name: string,
  decision: NonNullable<CountedPod['record']>['decision'],
  more: Partial<CountedPod> & { policy?: string } = {},
): CountedPod => ({
  ...{ pod: { name, createdAt: 1_000 }, runsOn: undefined, waits: false },
  record: { decision, settings: { ...settings(), ...(more.policy && { policy: more.policy }) } },
  ...more,
});
const reported = (pods: readonly CountedPod[]) => {
  const tally = createTally();
  for (const each of pods) tally.add(each);
  return JSON.parse(tally.report('t')) as Record<string, unknown>;
};
const NONE = { time: 't', policies: [], pods: {}, runsOn: {} };

describe('the report about a namespace', () => {
  const rows: readonly (readonly [what: string, pods: readonly CountedPod[], expected: object])[] = [
    ['nothing', [], {}],
    ['where pods run, also undecided ones', [counted('a', undefined, { runsOn: 'arm64' })], { runsOn: { arm64: 1 } }],
    [
      'how many pods have which outcome, and by which policies',
      [counted('a', HOLD), counted('b', HOLD, { policy: 'batch' }), counted('c', IGNORED)],
      { policies: ['batch', 'default'], pods: { held: 2, ignored: 1 } },
    ],
    [
      'the pod that waits longest, by name where several do',
      [
        counted('z', HOLD, { waits: true }),
        counted('b', HOLD, { waits: true }),
        counted('a', HOLD, { waits: true, pod: { name: 'a', createdAt: 2_000 } }),
      ],
      { policies: ['default'], pods: { held: 3 }, oldestWaiting: { name: 'b', since: '1970-01-01T00:00:01.000Z' } },
    ],
  ];
  for (const [what, pods, expected] of rows)
    it(`has ${what}`, () => expect(reported(pods)).to.deep.equal({ ...NONE, ...expected }));

  it('is bounded: the last policies are left out', () => {
    const tally = createTally();
    for (let index = 100; index < 200; index++) tally.add(counted('a', HOLD, { policy: `${index}${'é'.repeat(60)}` }));
    const text = tally.report('t');
    expect(Buffer.byteLength(text)).to.be.within(1_800, 2_048);
    expect(JSON.parse(text)).to.have.nested.property('policies[0]').that.matches(/^100é/);
  });
});

const RESULT = '/metadata/annotations/archaware.dev~1report-result';

/** Keeps the report of one namespace that asks for it, or not, and records what is written. */
function keeping() {
  const clock = createHandClock();
  const over = new AbortController();
  const state = {
    wants: true,
    report: undefined as string | undefined,
    pods: 1,
    fails: undefined as Error | undefined,
  };
  const [sent, warned]: [unknown[], unknown[]] = [[], []];
  const ended = keepReports(
    {
      clock,
      namespaces: () => {
        const wants = state.wants ? { 'archaware.dev/report': 'true' } : {};
        const result = state.report === undefined ? {} : { 'archaware.dev/report-result': state.report };
        return [readNamespace({ metadata: { name: 'shop', uid: 'u', annotations: { ...wants, ...result } } })];
      },
      gather(wanted) {
        const report = { ...NONE, time: new Date(clock.wall()).toISOString(), pods: { placed: state.pods } };
        return new Map([...wanted].map((name) => [name, JSON.stringify(report)]));
      },
      async write({ kind, name }, patch) {
        if (state.fails !== undefined) throw state.fails;
        const last = patch.at(-1);
        state.report = last?.op === 'add' ? String(last.value) : undefined;
        const operations = patch.slice(1).map(({ op, path }) => `${op} ${path}`);
        sent.push([clock.wall() / 1_000, kind, name, operations.join()]);
        return { kind: 'recorded' };
      },
      log: { warn: (...words: unknown[]) => void warned.push(words) },
    },
    over.signal,
  );
  const pass = async (seconds: number) => {
    for (let passed = 0; passed < seconds; passed += 5) {
      await clock.advance(5_000);
      for (let turns = 0; turns < 5; turns++) await turn();
    }
  };
  return { state, sent, warned, pass, ended, over, clock };
}
const WRITE = ['Namespace', 'shop', `test /metadata/annotations/archaware.dev~1report,add ${RESULT}`];
const REMOVE = ['Namespace', 'shop', `remove ${RESULT}`];

describe('the annotation with the report', () => {
  it('is written where it is asked for, again only after a change and 60 s, and removed once nobody asks', async () => {
    const { state, sent, pass, ended, over, clock } = keeping();
    await pass(120);
    expect(sent).to.deep.equal([[30, ...WRITE]]);
    for (const pods of [2, 3, 4]) {
      state.pods = pods;
      await pass(30);
    }
    expect(sent.slice(1)).to.deep.equal([
      [150, ...WRITE],
      [210, ...WRITE],
    ]);
    state.report = 'of somebody else';
    await pass(60);
    expect(sent.slice(3)).to.deep.equal([[270, ...WRITE]]);
    state.wants = false;
    await pass(120);
    expect(sent.slice(4)).to.deep.equal([[330, ...REMOVE]]);
    over.abort();
    await ended;
    expect(clock.waiting).to.equal(0);
  });

  it('is not written soon after another leader did, and is removed at once where nobody asks', async () => {
    const { state, sent, pass } = keeping();
    state.report = JSON.stringify({ ...NONE, time: '1970-01-01T00:00:25.000Z' });
    await pass(90);
    expect(sent).to.deep.equal([[90, ...WRITE]]);
    const other = keeping();
    Object.assign(other.state, { wants: false, report: 'x'.repeat(3_000) });
    await other.pass(30);
    expect(other.sent).to.deep.equal([[30, ...REMOVE]]);
  });

  it('is tried again after a failure, which is logged once, and none is logged without the Lease', async () => {
    const { state, sent, warned, pass } = keeping();
    state.fails = new LeaseLostError('lost');
    await pass(60);
    state.fails = new Error('refused');
    await pass(180);
    expect([sent.length, warned.length]).to.deep.equal([0, 1]);
    state.fails = undefined;
    await pass(60);
    expect(sent).to.have.lengthOf(1);
  });
});
