import { expect } from 'chai';
import { createReleases } from '../../../src/app/replica/releases.ts';
import { ApiError, ConnectionError } from '../../../src/kube/errors.ts';
import type { WriteResult, WriteTarget } from '../../../src/kube/writer.ts';

const RBAC = 'pods "p" is forbidden: User "system:serviceaccount:archaware:archaware-controller" cannot patch resource';
const refusal = (status: number, message: string, causes: readonly object[] = []) =>
  new ApiError(status, { message, details: { causes } }, 'patch /api/v1/namespaces/a/pods/p');

describe('the releases of a replica', () => {
  let now: number;
  let result: WriteResult | Error;
  let releases: ReturnType<typeof createReleases>;
  let said: string[];
  let mayPatch: boolean | Error;
  beforeEach(() => {
    [now, said, mayPatch] = [0, [], true];
    const say = (_: unknown, text = '') => void said.push(text);
    const log = { info: (text: unknown) => say(0, String(text)), warn: say };
    releases = createReleases({ monotonic: () => now }, log, async (namespace) => {
      expect(namespace).to.equal('a');
      if (mayPatch instanceof Error) throw mayPatch;
      return mayPatch;
    });
  });
  async function write(given: WriteResult | Error, action: WriteTarget['action'] = 'release'): Promise<void> {
    result = given;
    const through = releases.through(async () => {
      if (result instanceof Error) throw result;
      return result;
    });
    const target = { kind: 'Pod', namespace: 'a', name: 'p', action } as const;
    await through(target, [], new AbortController().signal).catch(() => {});
  }
  /** Tries twice, ten seconds apart, and says whether they count as failing then. */
  async function twice(error: Error, action?: WriteTarget['action']): Promise<boolean> {
    await write(error, action);
    expect(releases.fail(), 'at once').to.equal(false);
    now += 10_000;
    await write(error, action);
    return releases.fail();
  }

  for (const [what, error] of [
    ['a missing right', refusal(403, RBAC)],
    ['no answer', new ConnectionError('reset')],
    ['an answer 504', refusal(504, 'timeout')],
    ['an etcd that is away', refusal(500, 'etcdserver: request timed out')],
  ] as const) {
    it(`fail after ten seconds of ${what}, until one succeeds`, async () => {
      mayPatch = false;
      expect(await twice(error)).to.equal(true);
      await write({ kind: 'conflict' });
      expect(releases.fail(), 'a conflict is no release').to.equal(true);
      await write({ kind: 'written', object: {} });
      expect(releases.fail()).to.equal(false);
      expect(said).to.have.lengthOf(2);
    });
  }

  for (const [what, error] of [
    ['a policy', refusal(403, 'pods "p" is forbidden: ValidatingAdmissionPolicy denied', [{ message: 'no' }])],
    ['a webhook that quotes', refusal(403, `admission webhook "x" denied the request: ${RBAC}`)],
    ['a webhook that copies RBAC', refusal(403, RBAC)],
    ['a plug-in with the wrong status', refusal(500, 'pod tolerations conflict')],
    ['a field', refusal(422, 'invalid', [{ field: 'spec' }])],
  ] as const) {
    it(`do not fail because of ${what}: one tenant must not stop the gates of others`, async () => {
      expect(await twice(error)).to.equal(false);
    });
  }

  it('do not fail because of a 403 while the right is not known', async () => {
    mayPatch = new ConnectionError('reset');
    expect(await twice(refusal(403, RBAC))).to.equal(false);
  });

  it('do not fail because of other writes', async () => {
    mayPatch = false;
    expect(await twice(refusal(403, RBAC), 'tolerate')).to.equal(false);
  });

  it('are not known any more after two minutes without an attempt', async () => {
    mayPatch = false;
    expect(await twice(refusal(403, RBAC))).to.equal(true);
    now += 120_000;
    expect(releases.fail()).to.equal(false);
  });
});
