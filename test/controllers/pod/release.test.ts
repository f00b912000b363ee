import { expect } from 'chai';
import type { Announcer } from '../../../src/controllers/announce.ts';
import { createRecords } from '../../../src/controllers/memory.ts';
import { release } from '../../../src/controllers/pod/carry-out.ts';
import { createRefusals } from '../../../src/controllers/refusals.ts';
import type { Operation } from '../../../src/kit/json-patch.ts';
import { ApiError } from '../../../src/kube/errors.ts';
import type { Problem } from '../../../src/placement/object-problems.ts';
import { readPod } from '../../../src/placement/objects/pod.ts';
import type { PlacementIntent } from '../../../src/placement/placing.ts';
import { readPodSubject } from '../../../src/placement/subject.ts';
import { settings, toleration } from '../../placement/objects.ts';
import { createHandClock } from '../hand-clock.ts';

const POD = readPod({
  metadata: { namespace: 'shop', name: 'web-1', uid: 'u1', generation: 1, resourceVersion: '7' },
  spec: { containers: [{ image: 'a' }], schedulingGates: [{ name: 'archaware.dev/architecture' }] },
});
const PLACING: PlacementIntent = {
  tolerations: [toleration('supported-arch=arm64:NoSchedule')],
  affinity: { required: [{ key: 'kubernetes.io/arch', operator: 'In', values: ['arm64'] }], preferred: [] },
};
const refusal = (status: number, message: string, more: object = {}) =>
  new ApiError(status, { message, ...more }, 'patch');
const CAUSES = { reason: 'Invalid', details: { causes: [{ field: 'spec.affinity', message: 'no' }] } };
const invalid = refusal(422, 'spec.affinity: no', CAUSES);
const forbidden = refusal(403, 'cannot patch resource "pods"', { reason: 'Forbidden' });

/** Returns what a patch adds to the pod; undefined: only the gate is removed. */
function placingIn(patch: readonly Operation[]): PlacementIntent | undefined {
  const has = (field: string) => patch.some(({ op, path }) => op !== 'test' && path.startsWith(`/spec/${field}`));
  const [isTolerant, isAffine] = [has('tolerations'), has('affinity')];
  if (!isTolerant && !isAffine) return undefined;
  return { tolerations: isTolerant ? PLACING.tolerations : [], affinity: isAffine ? PLACING.affinity : undefined };
}

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
  const parts: Parameters<typeof release>[0] = {
    announcer,
    noteRefusal: createRefusals({ announcer, clock, lastWriteMs: () => lastWriteAt(clock.monotonic()) }),
    async write(_target, patch) {
      const refusal = refuses(placingIn(patch));
      if (refusal !== undefined) throw refusal;
      return { kind: 'written', object: {} };
    },
  };
  const namespace = { uid: 'n', resourceVersion: '1', name: 'shop', labels: {}, preferred: undefined };
  const subject = readPodSubject(pod, namespace, settings());
  const at = { pod, subject, record, settings: settings(), signal: new AbortController().signal };
  let given: PlacementIntent | undefined | 'nothing' = 'nothing';
  async function once(): Promise<boolean> {
    try {
      const ended = await release(parts, at, PLACING);
      given = ended?.part;
      return ended?.written.kind === 'written';
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
    const denied = refusal(422, 'ValidatingAdmissionPolicy denied request: tolerations are not allowed', CAUSES);
    const { tries, reported, given } = attempts((placing) => (placing?.tolerations.length ? denied : undefined));
    expect(await tries(20)).to.equal(7);
    expect(given()).to.deep.equal({ ...PLACING, tolerations: [] });
    expect(reported.at(-1)?.note).to.match(/^released without tolerations, because/);
  });

  it('goes after a minute of the same 500 while other writes succeed, as after PodTolerationRestriction', async () => {
    const conflict = refusal(500, 'pod tolerations (possibly merged) conflict with its namespace whitelist');
    const refuses = (placing: PlacementIntent | undefined) => (placing?.tolerations.length ? conflict : undefined);
    const { tries, given } = attempts(refuses, POD, (now) => now);
    expect(await tries(20)).to.equal(7);
    expect(given()).to.deep.equal({ ...PLACING, tolerations: [] });
  });

  it('is retried as long as the API server answers every write with 500', async () => {
    const refuses = () => refusal(500, 'cannot store it');
    const noWrite = () => 0;
    expect(await attempts(refuses, POD, noWrite).tries(100)).to.equal(0);
  });

  const all = (placing: PlacementIntent | undefined) => (placing === undefined ? undefined : invalid);

  it('is not tried with less if the pod is not gated, because nothing holds it', async () => {
    const { tries, given } = attempts(all, { ...POD, gated: undefined });
    expect([await tries(30), given()]).to.deep.equal([0, 'nothing']);
  });

  it('goes without tolerations only after another minute of refusals', async () => {
    const { tries, given } = attempts(all);
    expect(await tries(30)).to.be.greaterThan(7);
    expect(given()).to.equal(undefined);
  });
});
