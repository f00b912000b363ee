import { expect } from 'chai';
import { createRelease } from '../../../src/controllers/pod/release.ts';
import { createRefusals } from '../../../src/controllers/refusals.ts';
import { ApiError } from '../../../src/kube/errors.ts';
import type { Occurrence } from '../../../src/kube/events.ts';
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
function attempts(refuses: (placing: PlacementIntent | undefined) => ApiError | undefined, pod = POD) {
  const clock = createHandClock();
  const reported: Occurrence[] = [];
  const announcer = { report: (_key: string, occurrence: Occurrence) => void reported.push(occurrence), forget() {} };
  const release = createRelease({ announcer, refusals: createRefusals({ announcer, clock }) });
  let given: PlacementIntent | undefined | 'nothing' = 'nothing';
  async function once(): Promise<boolean> {
    try {
      const written = await release.write('shop/web-1', pod, PLACING, async (_pod, placing) => {
        const refusal = refuses(placing);
        if (refusal !== undefined) throw refusal;
        given = placing;
        return { kind: 'written', object: {}, placing };
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
