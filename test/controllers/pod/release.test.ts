import { expect } from 'chai';
import type { Announcer, Problem } from '../../../src/controllers/announce.ts';
import { createRecords } from '../../../src/controllers/object-record.ts';
import { createRelease } from '../../../src/controllers/pod/release.ts';
import { createRefusals } from '../../../src/controllers/refusals.ts';
import { createRefusedEntries } from '../../../src/controllers/refused-entries.ts';
import { ApiError } from '../../../src/kube/errors.ts';
import { readPod } from '../../../src/placement/objects/pod.ts';
import type { PlacementIntent } from '../../../src/placement/placing.ts';
import { toleration } from '../../placement/objects.ts';
import { createHandClock } from '../hand-clock.ts';

const POD = readPod({
  metadata: { namespace: 'shop', name: 'web-1', uid: 'u1', generation: 1, resourceVersion: '7' },
  spec: { containers: [{ image: 'a' }], schedulingGates: [{ name: 'archaware.dev/architecture' }] },
});
const PLACING: PlacementIntent = {
  tolerations: [toleration('supported-arch=arm64:NoSchedule')],
  affinity: { required: [{ key: 'kubernetes.io/arch', operator: 'In', values: ['arm64'] }], preferred: [] },
};
const details = { causes: [{ field: 'spec.affinity', message: 'no' }] };
const invalid = new ApiError(422, { reason: 'Invalid', message: 'spec.affinity: no', details }, 'patch');
const forbidden = new ApiError(403, { reason: 'Forbidden', message: 'cannot patch resource "pods"' }, 'patch');

/** Tries to release the pod every ten seconds while the API server refuses what `refuses` says. */
function attempts(
  refuses: (placing: PlacementIntent | undefined) => ApiError | undefined,
  pod = POD,
  lastWriteAt: (now: number) => number | undefined = () => undefined,
) {
  const clock = createHandClock();
  const reported: Problem[] = [];
  const record = createRecords().of('shop/web-1', 'u1');
  const announcer: Announcer = { report: (_record, _regarding, problem) => void reported.push(problem) };
  const release = createRelease({
    announcer,
    noteRefusal: createRefusals({ announcer, clock, lastWriteMs: () => lastWriteAt(clock.monotonic()) }),
    entries: createRefusedEntries(clock),
  });
  let given: PlacementIntent | undefined | 'nothing' = 'nothing';
  async function once(): Promise<boolean> {
    try {
      const written = await release(record, pod, PLACING, {
        async send(_pod, placing) {
          const refusal = refuses(placing);
          if (refusal !== undefined) throw refusal;
          given = placing;
          return { kind: 'written', object: {}, placing };
        },
        check: async () => ({ kind: 'written', object: {} }),
      });
      return written.kind === 'written';
    } catch {
      await clock.advance(10_000);
      return false;
    }
  }
  async function tries(most: number): Promise<number> {
    for (let count = 1; count <= most; count++) if (await once()) return count;
    return 0;
  }
  return { tries, reported, given: () => given };
}

describe('the release of a gated pod', () => {
  it('is retried while the API server refuses it for a reason outside the pod, and is then complete', async () => {
    let isStarting = true;
    const { tries, given } = attempts(() => (isStarting ? forbidden : undefined));
    expect(await tries(100)).to.equal(0);
    isStarting = false;
    expect(await tries(1)).to.equal(1);
    expect(given()).to.deep.equal(PLACING);
  });

  it('goes without node affinity only after the same refusal for a minute, with an Event', async () => {
    const { tries, reported, given } = attempts((placing) => (placing?.affinity ? invalid : undefined));
    expect(await tries(20)).to.equal(7);
    expect(given()).to.deep.equal({ ...PLACING, affinity: undefined });
    expect(reported.at(-1)).to.include({ reason: 'OpenPlacement' });
    expect(reported.at(-1)?.note).to.contain('released without node affinity');
  });

  it('goes without tolerations, and with its affinity, if the refusal is about tolerations', async () => {
    const message = 'ValidatingAdmissionPolicy denied request: tolerations are not allowed';
    const denied = new ApiError(422, { reason: 'Invalid', message, details }, 'patch');
    const { tries, reported, given } = attempts((placing) => (placing?.tolerations.length ? denied : undefined));
    expect(await tries(20)).to.equal(7);
    expect(given()).to.deep.equal({ ...PLACING, tolerations: [] });
    expect(reported.at(-1)?.note).to.match(/^released without tolerations, because/);
  });

  it('goes after a minute of the same 500 while other writes succeed, as after PodTolerationRestriction', async () => {
    const message =
      'pod tolerations (possibly merged with namespace default tolerations) conflict with its namespace whitelist';
    const conflict = new ApiError(500, { message }, 'patch');
    const refuses = (placing: PlacementIntent | undefined) => (placing?.tolerations.length ? conflict : undefined);
    const { tries, given } = attempts(refuses, POD, (now) => now);
    expect(await tries(20)).to.equal(7);
    expect(given()).to.deep.equal({ ...PLACING, tolerations: [] });
  });

  it('is retried as long as the API server answers every write with 500', async () => {
    const broken = new ApiError(500, { message: 'cannot store it' }, 'patch');
    const { tries } = attempts(
      () => broken,
      POD,
      () => 0,
    );
    expect(await tries(100)).to.equal(0);
  });

  it('is not tried with less if the pod is not gated, because nothing holds it', async () => {
    const { tries, given } = attempts((placing) => (placing === undefined ? undefined : invalid), {
      ...POD,
      gated: undefined,
    });
    expect(await tries(30)).to.equal(0);
    expect(given()).to.equal('nothing');
  });

  it('goes without tolerations only after another minute of refusals', async () => {
    const { tries, given } = attempts((placing) => (placing === undefined ? undefined : invalid));
    expect(await tries(30)).to.be.greaterThan(7);
    expect(given()).to.equal(undefined);
  });
});

describe('a pod, if the API server refuses one of its tolerations,', () => {
  const denied = new ApiError(403, { message: 'admission webhook "a.b" denied the request: no s390x' }, 'patch');
  const NAMES = ['amd64', 'arm64', 's390x'];
  const wanted = NAMES.map((name) => toleration(`supported-arch=${name}:NoSchedule`));
  const INTENT: PlacementIntent = { tolerations: wanted, affinity: undefined };
  const values = (list: readonly unknown[] | undefined) =>
    NAMES.filter((name) => JSON.stringify(list ?? []).includes(`"${name}"`)).join(' ');
  const podOf = (name: string, has: readonly string[] = [], gated = false) =>
    readPod({
      metadata: { namespace: 'shop', name, uid: name, generation: 1, resourceVersion: '7' },
      spec: {
        containers: [{ image: 'a' }],
        tolerations: has.map((one) => toleration(`supported-arch=${one}:NoSchedule`)),
        ...(gated ? { schedulingGates: [{ name: 'archaware.dev/architecture' }] } : {}),
      },
    });

  /** Returns what was sent for pods one after the other while writes with these values are refused. */
  function world(refuses: readonly string[], refusal = denied) {
    const clock = createHandClock();
    const announcer = { report() {} };
    const records = createRecords();
    const entries = createRefusedEntries(clock);
    const noteRefusal = createRefusals({ announcer, clock, lastWriteMs: clock.monotonic });
    const release = createRelease({ announcer, noteRefusal, entries });
    const sent: string[] = [];
    const send = (what: string, patch: unknown) => {
      const text = values([patch]);
      sent.push(`${what} ${text}`);
      if (refuses.some((name) => text.includes(name))) throw refusal;
      return { kind: 'written', object: {} } as const;
    };
    const write = async (pod: ReturnType<typeof podOf>) => {
      sent.length = 0;
      const outcome = await release(records.of(`shop/${pod.name}`, pod.uid), pod, INTENT, {
        send: async (_pod, placing, patch) => ({
          ...send(JSON.stringify(patch).includes('/spec/schedulingGates"') ? 'release' : 'write', patch),
          placing,
        }),
        check: async (_pod, patch) => send('check', patch),
      }).then(
        ({ kind }) => kind,
        (error: unknown) => (error === refusal ? 'refused' : String(error)),
      );
      return [...sent, outcome];
    };
    return { write, clock, allow: () => (refuses = []) };
  }

  it('gets the others at once, and is tried again', async () => {
    const { write } = world(['s390x']);
    expect(await write(podOf('web-1'))).to.deep.equal([
      'write amd64 arm64 s390x',
      'check amd64',
      'check arm64',
      'check s390x',
      'write amd64 arm64',
      'refused',
    ]);
  });

  it('gets the others if the refusal is a 500 that has lasted for a minute while other writes succeed', async () => {
    const conflict = new ApiError(500, { message: 'pod tolerations conflict with its namespace whitelist' }, 'patch');
    const { write, clock } = world(['s390x'], conflict);
    for (let time = 0; time < 6; time++) {
      expect(await write(podOf('web-1'))).to.deep.equal(['write amd64 arm64 s390x', 'refused']);
      await clock.advance(10_000);
    }
    expect((await write(podOf('web-1'))).slice(-2)).to.deep.equal(['write amd64 arm64', 'refused']);
  });

  it('is released with the others', async () => {
    const { write } = world(['s390x']);
    expect((await write(podOf('web-1', [], true))).slice(-2)).to.deep.equal(['release amd64 arm64', 'refused']);
  });

  it('costs the next pods of the namespace one write each, and nothing if they lack only that one', async () => {
    const { write } = world(['s390x']);
    await write(podOf('web-1'));
    expect(await write(podOf('web-2'))).to.deep.equal(['write amd64 arm64', 'refused']);
    expect(await write(podOf('web-3', ['amd64', 'arm64']))).to.deep.equal(['refused']);
  });

  it('costs one write of 150 pods that have the others', async () => {
    const { write } = world(['s390x']);
    const sent = [];
    for (let index = 0; index < 150; index++) {
      sent.push(...(await write(podOf(`web-${index}`, ['amd64', 'arm64']))).filter((one) => one !== 'refused'));
    }
    expect(sent).to.deep.equal(['write s390x']);
  });

  it('gets it as soon as it is allowed and the pause is over, which grows to five minutes', async () => {
    const { write, clock, allow } = world(['s390x']);
    const pod = podOf('web-1', ['amd64', 'arm64']);
    const pauses = [];
    for (let seconds = 0; seconds < 1_000; seconds++) {
      if ((await write(pod)).length > 1) pauses.push(seconds);
      await clock.advance(1_000);
    }
    expect(pauses).to.deep.equal([0, 10, 30, 70, 150, 310, 610, 910]);
    allow();
    await clock.advance(300_000);
    expect(await write(pod)).to.deep.equal(['write s390x', 'written']);
    expect(await write(podOf('web-2'))).to.deep.equal(['write amd64 arm64 s390x', 'written']);
  });

  const rows: [given: string, refuses: readonly string[], refusal: ApiError, sent: readonly string[]][] = [
    [
      'every one is refused',
      NAMES,
      denied,
      ['write amd64 arm64 s390x', 'check amd64', 'check arm64', 'check s390x', 'refused'],
    ],
    ['the right is missing', NAMES, forbidden, ['write amd64 arm64 s390x', 'refused']],
    [
      'the API server is overloaded',
      NAMES,
      new ApiError(503, { message: 'later' }, 'patch'),
      ['write amd64 arm64 s390x', 'refused'],
    ],
  ];
  for (const [given, refuses, refusal, sent] of rows) {
    it(`gets nothing if ${given}`, async () => {
      const { write } = world(refuses, refusal);
      expect(await write(podOf('web-1'))).to.deep.equal(sent);
      // The next pod is tried as a whole: nothing says that the refusal is about its entries.
      expect(await write(podOf('web-2'))).to.deep.equal([sent[0], 'refused']);
    });
  }
});
