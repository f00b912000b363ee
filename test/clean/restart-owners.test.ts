import { expect } from 'chai';
import { createLedger } from '../../src/clean/outcomes.ts';
import { restartOwners } from '../../src/clean/restart-owners.ts';
import type { CarryingPod } from '../../src/clean/traces.ts';
import { type ApiClient, contentTypeOf } from '../../src/kube/api-client.ts';
import { ApiError, ConnectionError } from '../../src/kube/errors.ts';
import { createSetClock } from '../kube/cluster.ts';
import { at } from '../simulator/json.ts';

const conflict = (path: string) => new ApiError(409, { reason: 'Conflict' }, path);
const NS = '/apis/apps/v1/namespaces/shop';

/** An owner in a model of the API server. `needs`: how many seconds its rollout takes; undefined: it never ends. */
type Given = {
  readonly kind?: 'Deployment' | 'StatefulSet' | 'DaemonSet' | 'Rollout';
  readonly needs?: number | undefined;
  readonly isWhole?: boolean;
  /** What the API server answers to the first restarts, instead of doing it; `lost`: it does it, but the answer is lost. */
  readonly refusals?: readonly ('lost' | 403 | 409 | 500)[];
};

/** Runs the work on these owners. Returns what it wrote, said and recorded, and the most rollouts at once. */
async function run(given: Readonly<Record<string, Given>>) {
  const clock = createSetClock();
  const [writes, said, most]: [string[], string[], { atOnce: number }] = [[], [], { atOnce: 0 }];
  const owners = new Map(
    Object.entries(given).map(([name, { kind = 'Deployment', needs, isWhole = true, refusals = [] }]) => [
      name,
      { kind, needs, isWhole, refusals: [...refusals], left: kind === 'DaemonSet' ? needs : 0, stamp: '', version: 1 },
    ]),
  );
  type Owner = NonNullable<ReturnType<typeof owners.get>>;
  const rolls = ({ left }: Owner) => left !== 0;
  const object = (name: string, owner: Owner) => {
    const updated = rolls(owner) ? 0 : 1;
    const available = owner.isWhole ? 1 : 0;
    return {
      metadata: { name, namespace: 'shop', uid: `uid-${name}`, resourceVersion: String(owner.version), generation: 1 },
      spec: {
        replicas: 1,
        template: { metadata: { annotations: { 'kubectl.kubernetes.io/restartedAt': owner.stamp } } },
      },
      status: {
        ...{ observedGeneration: 1, replicas: 1, updatedReplicas: updated, readyReplicas: available },
        ...{ availableReplicas: available, desiredNumberScheduled: 1, updatedNumberScheduled: updated },
        numberAvailable: available,
      },
    };
  };
  const nothing = async () => undefined;
  const client: ApiClient = {
    host: 'x',
    addresses: () => new Set(),
    watch: nothing,
    close: nothing,
    async request(verb, path, { body } = {}) {
      const [, collection = '', name = ''] = /^.*\/([a-z]+)\/([a-z0-9-]+)(?:\?|$)/.exec(path) ?? [];
      expect(path.startsWith(`${NS}/`)).to.equal(true);
      const owner = owners.get(name.replace(/-abc$/, ''));
      if (owner === undefined) throw new ApiError(404, { reason: 'NotFound' }, path);
      if (verb === 'get' && collection === 'replicasets') {
        const reference = { kind: owner.kind, apiVersion: 'apps/v1', controller: true };
        const [deployment] = name.split('-');
        return { metadata: { ownerReferences: [{ ...reference, name: deployment, uid: `uid-${deployment}` }] } };
      }
      if (verb === 'get') return object(name, owner);
      expect([verb, contentTypeOf(verb, body), path.split('?')[1]]).to.deep.equal([
        'patch',
        'application/merge-patch+json',
        'fieldManager=kubectl-rollout',
      ]);
      const refusal = owner.refusals.shift();
      if (typeof refusal === 'number') throw new ApiError(refusal, { message: 'no' }, path);
      if (at(body, 'metadata', 'resourceVersion') !== String(owner.version)) throw conflict(path);
      const stamp = at(body, 'spec', 'template', 'metadata', 'annotations', 'kubectl.kubernetes.io/restartedAt');
      Object.assign(owner, { left: owner.needs, stamp });
      owner.version += 1;
      writes.push(name);
      most.atOnce = Math.max(most.atOnce, [...owners.values()].filter(rolls).length);
      if (refusal === 'lost') throw conflict(path);
      return {};
    },
  };
  const pods = [...owners].map(([name, { kind }]): CarryingPod => {
    const isSet = kind === 'StatefulSet' || kind === 'DaemonSet';
    const ownerName = isSet ? name : `${name}-abc`;
    return {
      ...{ kind: 'Pod', namespace: 'shop', name: `${name}-0`, uid: `${name}-0` },
      owner: { kind: isSet ? kind : 'ReplicaSet', apiVersion: 'apps/v1', name: ownerName, uid: `uid-${ownerName}` },
      cleaning: { kind: kind === 'DaemonSet' ? 'rolls' : 'restart' },
    };
  });
  const ledger = createLedger();
  const timed = {
    ...clock,
    monotonic: () => clock.now.monotonic,
    async delay(ms: number, signal: AbortSignal) {
      clock.now.monotonic += ms;
      for (const owner of owners.values()) if (owner.left) owner.left -= 1;
      await clock.delay(0, signal);
    },
  };
  const signal = new AbortController().signal;
  await restartOwners(
    { client, clock: timed, mayWrite: () => true, ledger, say: (line) => said.push(line), signal },
    pods,
  );
  const { kept } = ledger.outcome('');
  return {
    writes,
    said,
    atOnce: most.atOnce,
    kept: Object.fromEntries(kept.map(({ name, reason }) => [name.replace(/-0$/, ''), reason])),
    seconds: clock.now.monotonic / 1000,
  };
}

describe('the restarts of clean', () => {
  it('restart Deployments and StatefulSets, and only wait for a DaemonSet that rolls', async () => {
    const { writes, kept, said } = await run({
      web: { needs: 3 },
      store: { kind: 'StatefulSet', needs: 3 },
      agent: { kind: 'DaemonSet', needs: 3 },
    });
    expect(writes.sort()).to.deep.equal(['store', 'web']);
    expect(kept).to.deep.equal({});
    expect(said.at(-1)).to.equal('owners of pods: 3 of 3 looked after');
  });

  it('are at most ten at once, and go on with the next one when one is done', async () => {
    const names = Array.from({ length: 25 }, (_, index) => `web${index}`);
    const { writes, atOnce, kept } = await run(Object.fromEntries(names.map((name) => [name, { needs: 2 }])));
    expect([writes.length, atOnce]).to.deep.equal([25, 10]);
    expect(kept).to.deep.equal({});
  });

  it('leave an owner alone that was not whole before, and one that has no Deployment', async () => {
    const { writes, kept, seconds } = await run({ web: { isWhole: false, needs: 1 }, own: { kind: 'Rollout' } });
    expect(writes).to.deep.equal([]);
    expect(kept).to.deep.equal({
      web: 'its Deployment was not whole (1 of 1 up to date, 0 available), so it was not restarted',
      own: 'its ReplicaSet has no Deployment, and clean does not restart it',
    });
    expect(seconds, 'nothing to wait for').to.equal(0);
  });

  it('give up after two minutes without progress, name the owner, and go on with the next one', async () => {
    const stuck = Array.from({ length: 10 }, (_, index) => [`stuck${index}`, {}]);
    const { writes, kept, said } = await run({ ...Object.fromEntries(stuck), web: { needs: 2 } });
    expect(writes).to.have.lengthOf(11);
    expect(Object.keys(kept)).to.have.lengthOf(10);
    expect(kept.stuck0).to.equal('its Deployment made no progress for 2 minutes (0 of 1 up to date, 1 available)');
    expect(said).to.include(
      'waiting for Deployment shop/stuck0: 0 of 1 up to date, 1 available; ' +
        'Deployment shop/stuck1: 0 of 1 up to date, 1 available; Deployment shop/stuck2: 0 of 1 up to date, 1 available; and 8 more',
    );
    const waits = said.filter((line) => line.startsWith('waiting for ')).length;
    expect(waits, 'every ten seconds').to.be.within(11, 13);
  });

  it('judge again after a conflict, and do not restart twice where only the answer was lost', async () => {
    const { writes, kept } = await run({ web: { needs: 2, refusals: [409] }, shop: { needs: 2, refusals: ['lost'] } });
    expect(writes.sort()).to.deep.equal(['shop', 'web']);
    expect(kept).to.deep.equal({});
  });

  it('name an owner that the API server does not let them restart', async () => {
    const { kept } = await run({ web: { refusals: [403] }, shop: { refusals: [500] }, api: { needs: 1 } });
    expect(Object.keys(kept)).to.deep.equal(['web', 'shop']);
    expect(kept.web).to.match(/403.*: it was not restarted$/);
  });

  it('end with the error where the API server cannot be reached', async () => {
    const client: ApiClient = {
      host: 'x',
      addresses: () => new Set(),
      watch: async () => undefined,
      close: async () => undefined,
      request: async () => {
        throw new ConnectionError('no answer');
      },
    };
    const pod: CarryingPod = {
      ...{ kind: 'Pod', namespace: 'shop', name: 'a', uid: 'a', cleaning: { kind: 'restart' } },
      owner: { kind: 'StatefulSet', apiVersion: 'apps/v1', name: 'a', uid: 'a' },
    };
    const say = () => {};
    const options = { client, clock: createSetClock(), mayWrite: () => true, ledger: createLedger(), say };
    const failure = await restartOwners({ ...options, signal: new AbortController().signal }, [pod]).catch(String);
    expect(failure).to.match(/no answer/);
  });
});
