import { expect } from 'chai';
import fc from 'fast-check';
import { createLedger } from '../../src/clean/outcomes.ts';
import { replacePods } from '../../src/clean/replace-pods.ts';
import type { CarryingPod } from '../../src/clean/traces.ts';
import type { ApiClient } from '../../src/kube/api-client.ts';
import { ApiError } from '../../src/kube/errors.ts';
import { createSetClock } from '../kube/cluster.ts';

/** What becomes of the successor of an evicted pod: how many rounds until it is ready; undefined: it never is. */
type Fate = number | undefined;
/** An owner with its pods, of which each is ready, not ready, or waits for a node; `lacks`: how many pods less than it wants. */
type Given = {
  readonly kind: string;
  readonly pods: readonly ('ready' | 'crashes' | 'pending')[];
  readonly lacks: number;
};
type Run = { readonly endsAtRequest: number | undefined; readonly timeoutMs: number };
type History = { readonly owners: readonly Given[]; readonly fates: readonly Fate[]; readonly runs: readonly Run[] };

type Pod = { uid: string; owner: number; ready: boolean; readyIn: Fate; carries: boolean; bound: boolean };

const KINDS = ['ReplicaSet', 'StatefulSet', 'ReplicationController'] as const;
const NS = '/api/v1/namespaces/shop/pods';

/** A cluster in which owners create pods again, and what happened to it. */
function createModel({ owners, fates }: History) {
  const wanted = owners.map(({ pods, lacks }) => pods.length + lacks);
  const pods: Pod[] = owners.flatMap(({ pods: states }, owner) =>
    states.map((state, index) => ({
      uid: `o${owner}-${index}`,
      owner,
      ready: state === 'ready',
      readyIn: undefined,
      carries: true,
      bound: state !== 'pending',
    })),
  );
  const readyOf = (owner: number) => pods.filter((pod) => pod.owner === owner && pod.ready).length;
  const least = owners.map((_, owner) => readyOf(owner));
  const broken: string[] = [];
  let created = 0;

  function evict(uid: string): void {
    const pod = pods.find((other) => other.uid === uid);
    if (pod === undefined) throw new ApiError(404, {}, 'evict');
    const { owner } = pod;
    if (pod.bound && readyOf(owner) < (wanted[owner] ?? 0)) broken.push(`${uid} went while its owner lacked pods`);
    if (!pod.carries) broken.push(`${uid} has nothing of archaware`);
    pods.splice(pods.indexOf(pod), 1);
    const readyIn = fates[created % Math.max(1, fates.length)];
    pods.push({ uid: `n${created++}`, owner, ready: false, readyIn, carries: false, bound: true });
    least[owner] = Math.min(least[owner] ?? 0, readyOf(owner));
  }

  const object = ({ uid, owner, ready, bound }: Pod) => ({
    metadata: { name: uid, namespace: 'shop', uid, ownerReferences: [{ ...referenceOf(owner), controller: true }] },
    spec: bound ? { nodeName: 'n' } : {},
    status: { phase: 'Running', conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] },
  });
  function referenceOf(owner: number) {
    const kind = owners[owner]?.kind ?? '';
    return {
      kind,
      apiVersion: kind === 'ReplicationController' ? 'v1' : 'apps/v1',
      name: `o${owner}`,
      uid: `o${owner}`,
    };
  }

  return {
    wanted,
    least,
    broken,
    readyOf,
    /** A round passes: what starts comes nearer to being ready. */
    step() {
      for (const pod of pods) {
        if (pod.readyIn === undefined) continue;
        pod.readyIn -= 1;
        if (pod.readyIn <= 0) pod.ready = true;
      }
    },
    carrying: (): CarryingPod[] =>
      pods
        .filter(({ carries }) => carries)
        .map(({ uid, owner, bound }) => ({
          kind: 'Pod',
          namespace: 'shop',
          name: uid,
          uid,
          bound,
          owner: referenceOf(owner),
          templateHash: undefined,
          cleaning: { kind: 'replace' },
        })),
    async answer(verb: string, path: string): Promise<unknown> {
      const [, name = ''] = /\/([^/]+)\/eviction$/.exec(path) ?? [];
      if (verb === 'create') return evict(name);
      if (path.startsWith(`${NS}?`)) return { metadata: {}, items: pods.map(object) };
      const [, own = ''] = /\/o([0-9]+)$/.exec(path) ?? [];
      if (own !== '') return { metadata: { uid: `o${own}` }, spec: { replicas: wanted[Number(own)] } };
      const pod = pods.find(({ uid }) => path === `${NS}/${uid}`);
      if (pod === undefined) throw new ApiError(404, { reason: 'NotFound' }, path);
      return object(pod);
    },
  };
}

/** Runs `clean`'s work on pods once, and ends it as Ctrl-C does at a request. Returns what is left and what it said. */
async function run(model: ReturnType<typeof createModel>, { endsAtRequest, timeoutMs }: Run) {
  const end = new AbortController();
  let requests = 0;
  const nothing = async () => undefined;
  const client: ApiClient = {
    host: 'x',
    addresses: () => new Set(),
    watch: nothing,
    close: nothing,
    async request(verb, path) {
      requests += 1;
      const answer = await model.answer(verb, path);
      if (requests === endsAtRequest) end.abort(new Error('interrupted'));
      end.signal.throwIfAborted();
      return answer;
    },
  };
  const clock = createSetClock();
  const timed = {
    ...clock,
    monotonic: () => clock.now.monotonic,
    async delay(ms: number, signal: AbortSignal) {
      clock.now.monotonic += ms;
      model.step();
      await clock.delay(0, signal);
    },
  };
  const ledger = createLedger();
  const said: string[] = [];
  const options = {
    client,
    clock: timed,
    ledger,
    mayWrite: () => true,
    how: 'evict',
    signal: end.signal,
    timeoutMs,
  } as const;
  await replacePods({ ...options, onProgress: (line) => said.push(line) }, model.carrying()).catch((error: unknown) => {
    if (!end.signal.aborted) throw error;
  });
  return { left: ledger.outcome('not reached').left, said };
}

const history: fc.Arbitrary<History> = fc.record({
  owners: fc.array(
    fc.record({
      kind: fc.constantFrom(...KINDS),
      pods: fc.array(fc.constantFrom('ready', 'ready', 'ready', 'crashes', 'pending'), { minLength: 1, maxLength: 4 }),
      lacks: fc.constantFrom(0, 0, 0, 1),
    }),
    { minLength: 1, maxLength: 14 },
  ),
  fates: fc.array(fc.option(fc.integer({ min: 1, max: 30 }), { nil: undefined, freq: 3 }), {
    minLength: 1,
    maxLength: 6,
  }),
  runs: fc.array(
    fc.record({
      endsAtRequest: fc.option(fc.integer({ min: 1, max: 40 }), { nil: undefined }),
      timeoutMs: fc.constantFrom(0, 5_000, 600_000),
    }),
    { minLength: 1, maxLength: 5 },
  ),
});

describe('any number of runs of clean, interrupted anywhere', () => {
  it('cost an owner at most one ready pod, and none where it lacks one', async () => {
    await fc.assert(
      fc.asyncProperty(history, async (given) => {
        const model = createModel(given);
        const first = given.owners.map((_, owner) => model.readyOf(owner));
        for (const each of given.runs) await run(model, each);
        expect(model.broken).to.deep.equal([]);
        for (const [owner, least] of model.least.entries()) {
          const floor = Math.min(first[owner] ?? 0, (model.wanted[owner] ?? 0) - 1);
          expect(least, `owner ${owner}`).to.be.at.least(floor);
        }
      }),
      { numRuns: 120 },
    );
  });

  const camera: Given = { kind: 'ReplicaSet', pods: ['ready', 'ready', 'ready'], lacks: 0 };

  it('leave and name an owner whose new pod is never ready, in the first run and in each later one', async () => {
    const model = createModel({ owners: [camera], fates: [undefined], runs: [] });
    const wait = { endsAtRequest: undefined, timeoutMs: 20_000 };
    const reasons = async () => (await run(model, wait)).left.map(({ reason }) => reason);
    const waited = 'its ReplicaSet has 2 of 3 pods ready: the next one was not replaced';
    expect(await reasons()).to.deep.equal([waited, waited]);
    const left = 'its ReplicaSet has only 2 of 3 pods ready, so none was replaced';
    for (let again = 0; again < 3; again++) expect(await reasons()).to.deep.equal([left, left]);
    expect(model.least).to.deep.equal([2]);
  });

  it('say every 10 s whom they wait for, and at the end whom they gave up', async () => {
    const model = createModel({ owners: [camera], fates: [undefined], runs: [] });
    const { said } = await run(model, { endsAtRequest: undefined, timeoutMs: 32_000 });
    expect(said).to.deep.equal([
      'pods: 0 of 3 replaced',
      'pods: 1 of 3 replaced',
      'waiting for ReplicaSet shop/o0: 2 of 3 ready, 23 s left',
      'waiting for ReplicaSet shop/o0: 2 of 3 ready, 13 s left',
      'waiting for ReplicaSet shop/o0: 2 of 3 ready, 3 s left',
      'gave up after 32 s without progress: ReplicaSet shop/o0: 2 of 3 ready',
    ]);
  });

  it('replace every pod where new ones become ready', async () => {
    const model = createModel({ owners: Array.from({ length: 25 }, () => camera), fates: [3], runs: [] });
    const { left } = await run(model, { endsAtRequest: undefined, timeoutMs: 60_000 });
    expect(left).to.deep.equal([]);
    expect(new Set(model.least)).to.deep.equal(new Set([2]));
  });
});
