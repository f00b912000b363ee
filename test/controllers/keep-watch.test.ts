import { expect } from 'chai';
import { createKeepWatch, type KeepVerdict, tryKeep } from '../../src/controllers/keep-watch.ts';
import type { ApiClient } from '../../src/kube/api-client.ts';
import { ApiError, ConnectionError } from '../../src/kube/errors.ts';
import type { KeepProbe } from '../../src/placement/patch/keep-probe.ts';
import { toleration } from '../placement/objects.ts';

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

const unknown = (why: string): KeepVerdict => ({ kind: 'unknown', why });
const broken = (example: string): KeepVerdict => ({ kind: 'broken', example });

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
    ['come back without them', ['a', 'b'], [LOST], broken('a/agent'), 2],
    ['come back with them for one DaemonSet at least', ['a', 'b'], [LOST, KEPT], { kind: 'holds' }, 2],
    ['have no DaemonSet to try', [], [LOST], { kind: 'nothing' }, 0],
    ['are for one that has just changed, and another one', ['a', 'b'], [CHANGED, KEPT], { kind: 'holds' }, 2],
    [
      'are for ones that have all just changed',
      ['a', 'b'],
      [CHANGED, refused(404, 'not found', { reason: 'NotFound' })],
      unknown('the DaemonSets that were tried have just changed'),
      2,
    ],
    ['may not be sent', ['a', 'b'], [RIGHT], unknown('needs the right to patch daemonsets.apps in namespace a'), 2],
    ['are refused by somebody', ['a'], [WITHOUT_DRY_RUN], unknown(WITHOUT_DRY_RUN.message), 1],
    ['are refused, and for another lose them', ['a', 'b'], [WITHOUT_DRY_RUN, LOST], broken('b/agent'), 2],
    ['get no answer', ['a', 'b'], [AWAY], unknown('cannot reach the API server'), 1],
    ['meet a busy server', ['a', 'b'], [LOST, refused(503, 'busy')], unknown('patch daemonsets/agent: 503 busy'), 2],
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
    const path = '/apis/apps/v1/namespaces/shop/daemonsets/agent?dryRun=All&fieldManager=archaware-probe';
    expect(asked).to.deep.equal([`patch ${path}`]);
  });
});

describe('what a term knows about the protection of DaemonSets', () => {
  function arrange(answers: readonly (object | Error)[], namespaces: readonly string[] = ['shop']) {
    const { asked, client } = answering(answers);
    const news: string[] = [];
    const objects = [...namespaces];
    let version: string | Error = 'v1.36.1';
    const keep = createKeepWatch({
      client: {
        async request(verb, path, options) {
          if (path !== '/version') return client.request(verb, path, options);
          if (version instanceof Error) throw version;
          return { gitVersion: version };
        },
      },
      probes: () => objects.map(probe),
      onNews: (verdict) => news.push(verdict.kind),
    });
    /** What is known when the term begins, or after a watch was opened. */
    const look = async (server?: string | Error) => {
      version = server ?? version;
      await keep.look(NEVER);
      return keep.holds();
    };
    return { asked, news, keep, look, objects };
  }

  it('is found out once while the API server has the same version, and nothing is said', async () => {
    const { asked, news, keep, look } = arrange([KEPT]);
    expect(keep.holds()).to.equal(undefined);
    expect([await look(), await look(), await look()]).to.deep.equal([true, true, true]);
    expect([asked.length, news]).to.deep.equal([1, []]);
  });

  it('is found out again when the API server has another version, and said if that one breaks it', async () => {
    const { asked, news, look } = arrange([KEPT, LOST]);
    expect(await look()).to.equal(true);
    expect(await look('v1.37.0')).to.equal(false);
    expect([asked.length, news]).to.deep.equal([2, ['broken']]);
  });

  it('is tried with each watch while it does not hold, and said once, and when it holds again', async () => {
    const { asked, news, look } = arrange([LOST, LOST, KEPT]);
    expect([await look(), await look(), await look(), await look()]).to.deep.equal([false, false, true, true]);
    expect([asked.length, news]).to.deep.equal([3, ['broken', 'holds']]);
  });

  it('is tried again after a probe that gave no verdict, which leaves the last one', async () => {
    const { news, look } = arrange([KEPT, AWAY, AWAY, LOST]);
    expect(await look()).to.equal(true);
    expect([await look('v1.37.0'), await look(), await look()]).to.deep.equal([true, true, false]);
    expect(news).to.deep.equal(['unknown', 'broken']);
  });

  it('stays as it is while the API server does not tell its version', async () => {
    const { asked, news, look } = arrange([KEPT]);
    expect(await look(AWAY)).to.equal(undefined);
    expect(await look('v1.36.1')).to.equal(true);
    expect(await look(AWAY)).to.equal(true);
    expect([asked.length, news]).to.deep.equal([1, []]);
  });

  it('is nothing before there is something to protect, and when there is nothing more', async () => {
    const { asked, news, look, objects } = arrange([LOST], []);
    expect(await look()).to.equal(undefined);
    expect(asked).to.deep.equal([]);
    objects.push('shop');
    expect(await look()).to.equal(false);
    objects.pop();
    expect(await look()).to.equal(undefined);
    expect(news).to.deep.equal(['broken', 'nothing']);
  });

  it('is tried by one call at a time', async () => {
    const { asked, keep, look } = arrange([KEPT]);
    await Promise.all([keep.look(NEVER), look()]);
    expect(asked).to.have.length(1);
  });
});
