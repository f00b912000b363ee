import { expect } from 'chai';
import { createKeepWatch, type KeepVerdict, tryKeep } from '../../src/controllers/keep-watch.ts';
import type { ApiClient } from '../../src/kube/api-client.ts';
import { ApiError, ConnectionError } from '../../src/kube/errors.ts';
import type { KeepProbe } from '../../src/placement/patch/keep-probe.ts';
import { toleration } from '../placement/objects.ts';
import { createHandClock } from './hand-clock.ts';

const DROPPED = [toleration('supported-arch=arm64:NoSchedule')];
const KEPT = {
  metadata: { annotations: { 'archaware.dev/tolerations': '[]' } },
  spec: { template: { spec: { tolerations: DROPPED } } },
};
const LOST = { metadata: {}, spec: { template: { spec: {} } } };
const probe = (namespace: string): KeepProbe => ({ namespace, name: 'agent', patch: [], dropped: DROPPED });
const refused = (status: number, message: string, more: object = {}) =>
  new ApiError(status, { message, ...more }, 'patch daemonsets/agent');
const RIGHT = refused(403, 'daemonsets.apps "agent" is forbidden: User "jane" cannot patch resource "daemonsets"');
const WITHOUT_DRY_RUN = refused(400, 'admission webhook "x.example.com" does not support dry run');
const CHANGED = refused(422, 'the server rejected our request due to an error in our request');
const AWAY = new ConnectionError('cannot reach the API server');
const NEVER = new AbortController().signal;

/** An API server that gives these answers, one after the other, and then always the last one. */
function answering(answers: readonly (object | Error)[]) {
  const asked: string[] = [];
  const client: Pick<ApiClient, 'request'> = {
    async request(verb, path) {
      const answer = answers[Math.min(asked.length, answers.length - 1)];
      asked.push(`${verb} ${path}`);
      if (answer instanceof Error) throw answer;
      return answer;
    },
  };
  return { asked, client };
}

describe('dry runs that drop the tolerations of DaemonSets', () => {
  const rows: readonly (readonly [
    what: string,
    namespaces: readonly string[],
    answers: readonly (object | Error)[],
    expected: KeepVerdict,
    asked: number,
  ])[] = [
    ['come back with them: the protection holds', ['a', 'b'], [KEPT], { kind: 'holds' }, 1],
    ['come back without them', ['a', 'b'], [LOST], { kind: 'broken', example: 'a/agent' }, 2],
    ['come back with them for one DaemonSet at least', ['a', 'b'], [LOST, KEPT], { kind: 'holds' }, 2],
    ['have no DaemonSet to try', [], [LOST], { kind: 'nothing' }, 0],
    ['are for one that has just changed, and another one', ['a', 'b'], [CHANGED, KEPT], { kind: 'holds' }, 2],
    [
      'are for ones that have all just changed',
      ['a', 'b'],
      [CHANGED, refused(404, 'not found', { reason: 'NotFound' })],
      { kind: 'unknown', why: 'the DaemonSets that were tried have just changed' },
      2,
    ],
    [
      'may not be sent',
      ['a', 'b'],
      [RIGHT],
      { kind: 'unknown', why: 'needs the right to patch daemonsets.apps in namespace a' },
      2,
    ],
    [
      'are refused by somebody',
      ['a'],
      [WITHOUT_DRY_RUN],
      {
        kind: 'unknown',
        why: `patch daemonsets/agent: 400 ${'admission webhook "x.example.com" does not support dry run'}`,
      },
      1,
    ],
    [
      'are refused for one, and lose them for another',
      ['a', 'b'],
      [WITHOUT_DRY_RUN, LOST],
      { kind: 'broken', example: 'b/agent' },
      2,
    ],
    ['get no answer', ['a', 'b'], [AWAY], { kind: 'unknown', why: 'cannot reach the API server' }, 1],
    [
      'meet an API server that is overloaded',
      ['a', 'b'],
      [LOST, refused(503, 'busy')],
      { kind: 'unknown', why: 'patch daemonsets/agent: 503 busy' },
      2,
    ],
  ];
  for (const [what, namespaces, answers, expected, count] of rows) {
    it(what, async () => {
      const { asked, client } = answering(answers);
      expect(await tryKeep(client, namespaces.map(probe), NEVER)).to.deep.equal(expected);
      expect(asked).to.have.length(count);
    });
  }

  it('store nothing, and have another field manager than the controller, whose writes are not corrected', async () => {
    const { asked, client } = answering([KEPT]);
    await tryKeep(client, [probe('shop')], NEVER);
    expect(asked).to.deep.equal([
      'patch /apis/apps/v1/namespaces/shop/daemonsets/agent?dryRun=All&fieldManager=archaware-probe',
    ]);
  });
});

describe('the watch over the protection of DaemonSets', () => {
  function arrange(answers: readonly (object | Error)[], namespaces: readonly string[] = ['shop']) {
    const clock = createHandClock();
    const { asked, client } = answering(answers);
    const news: string[] = [];
    const end = new AbortController();
    const objects = [...namespaces];
    const keep = createKeepWatch({
      ...{ client, clock },
      probes: () => objects.map(probe),
      onNews: (verdict) => news.push(verdict.kind),
    });
    const running = keep.watch(end.signal);
    /** Waits until the probe is over, and returns what is known then. */
    const now = async () => {
      while (clock.waiting === 0) await new Promise(setImmediate);
      return keep.holds();
    };
    const later = async (minutes: number) => {
      await now();
      await clock.advance(minutes * 60_000);
      return now();
    };
    return { asked, news, end, running, keep, now, later, objects };
  }

  it('says nothing while it holds, and tries again after an hour', async () => {
    const { asked, news, now, later } = arrange([KEPT]);
    expect(await now()).to.equal(true);
    expect(await later(59)).to.equal(true);
    expect(asked).to.have.length(1);
    expect(await later(1)).to.equal(true);
    expect([asked.length, news]).to.deep.equal([2, []]);
  });

  it('says once that it is broken, after a second probe ten seconds later, and that it holds again', async () => {
    const { asked, news, now, later } = arrange([LOST, LOST, LOST, KEPT]);
    expect(await now()).to.equal(undefined);
    expect(await later(1 / 6)).to.equal(false);
    expect(await later(1)).to.equal(false);
    expect(await later(1)).to.equal(true);
    expect([asked.length, news]).to.deep.equal([4, ['broken', 'holds']]);
  });

  it('takes one probe that no replica of the webhook corrected for no verdict', async () => {
    const { news, now, later } = arrange([KEPT, LOST, KEPT]);
    await now();
    expect(await later(60)).to.equal(true);
    expect(await later(1)).to.equal(true);
    expect(news).to.deep.equal([]);
  });

  for (const [before, answers] of [
    [true, [KEPT]],
    [false, [LOST, LOST]],
  ] as const) {
    it(`keeps the verdict ${before} while the API server does not answer, and says why once`, async () => {
      const { news, now, later } = arrange([...answers, AWAY, AWAY, ...answers]);
      await now();
      if (!before) await later(1);
      const found = news.length;
      expect(await later(60)).to.equal(before);
      expect(await later(1)).to.equal(before);
      expect(news.slice(found)).to.deep.equal(['unknown']);
    });
  }

  it('sends nothing before there is something to protect, and forgets its verdict when there is nothing more', async () => {
    const { asked, news, now, later, objects } = arrange([LOST, LOST], []);
    expect(await now()).to.equal(undefined);
    expect(asked).to.deep.equal([]);
    objects.push('shop');
    await later(1);
    expect(await later(1)).to.equal(false);
    objects.pop();
    expect(await later(1)).to.equal(undefined);
    expect(news).to.deep.equal(['broken', 'nothing']);
  });

  it('knows nothing between the terms', async () => {
    const { end, running, keep, now } = arrange([KEPT]);
    await now();
    end.abort();
    await running;
    expect(keep.holds()).to.equal(undefined);
  });
});
