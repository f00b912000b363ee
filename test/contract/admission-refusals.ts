import { expect } from 'chai';
import { at, type JsonObject } from '../simulator/json.ts';
import { type Answer, patching } from '../support/webhook-server.ts';
import { type Context, fieldErrors, NOWHERE, PODS, podOf } from './context.ts';
import { webhooksOf } from './webhooks.ts';

const GATE = { name: 'archaware.dev/architecture' };

/** What the API server does with a pod if a webhook denies it, fails, or answers with an impossible patch. */
export function describeAdmissionRefusals(context: () => Context): void {
  const { server, install } = webhooksOf(context);
  const post = (podSpec: JsonObject = {}) =>
    context().client.request('POST', PODS, podOf('', { ...NOWHERE, ...podSpec }, { generateName: 'refused-' }));

  const denials: readonly (readonly [JsonObject | undefined, number, string, string | undefined])[] = [
    [undefined, 400, ' without explanation', undefined],
    [{ message: 'because' }, 400, ': because', undefined],
    [{ reason: 'Mine' }, 400, ': Mine', 'Mine'],
    [{ code: 200, message: 'because' }, 400, ': because', undefined],
    [{ code: 403, reason: 'Forbidden', message: 'because' }, 403, ': because', 'Forbidden'],
    [{ code: 422, message: 'two\nlines' }, 422, ': two\nlines', undefined],
  ];
  for (const [status, code, end, reason] of denials) {
    it(`refuses with ${code} what a webhook denies with ${JSON.stringify(status)}, even if its failures are ignored`, async () => {
      await install(server().webhook('a', { failurePolicy: 'Ignore' }));
      server().answer('/a', () => ({ allowed: false, ...(status ? { status } : {}) }));
      const answer = await post();
      expect(answer.status).to.equal(code);
      expect(at(answer.body, 'message')).to.equal(`admission webhook "a.example.com" denied the request${end}`);
      expect(at(answer.body, 'reason')).to.equal(reason);
    });
  }

  const patch = (source: string) => ({
    allowed: true,
    patchType: 'JSONPatch',
    patch: Buffer.from(source).toString('base64'),
  });
  const failures: readonly (readonly [string, Answer, JsonObject, RegExp])[] = [
    [
      'that is down',
      { allowed: true },
      { clientConfig: { url: 'https://127.0.0.1:1/a' } },
      /failed to call webhook: Post "https:\/\/127.0.0.1:1\/a\?timeout=1s": .*/,
    ],
    [
      'whose certificate is from an unknown authority',
      { allowed: true },
      { clientConfig: { caBundle: '' } },
      /failed to call webhook: Post .*/,
    ],
    ['that takes too long', 'hang', {}, /failed to call webhook: Post .*: context deadline exceeded/],
    ['that answers without JSON', 'oops', {}, /failed to call webhook: .*json parse error.*/],
    [
      'that answers for another request',
      { uid: 'other', allowed: true },
      {},
      /received invalid webhook response: expected response.uid=.*, got "other"/,
    ],
    [
      'with a patch without its type',
      { allowed: true, patch: 'W10=' },
      {},
      /received invalid webhook response: webhook returned response.patch but not response.patchType/,
    ],
    ['with a patch that is not JSON', patch('oops'), {}, /received undecodable patch in webhook response.*/],
    ['with a patch that is not a list', patch('{}'), {}, /received undecodable patch in webhook response.*/],
  ];
  for (const [what, answer, settings, message] of failures) {
    it(`ignores a webhook ${what}, or refuses with 500`, async () => {
      for (const failurePolicy of ['Ignore', 'Fail']) {
        await install(server().webhook('a', { timeoutSeconds: 1, failurePolicy, ...settings }));
        server().answer('/a', () => answer);
        const { status, body } = await post();
        expect(status, JSON.stringify(body)).to.equal(failurePolicy === 'Ignore' ? 201 : 500);
        if (status === 201) continue;
        expect(at(body, 'reason')).to.equal('InternalError');
        const whole = `^Internal error occurred: failed calling webhook "a.example.com": ${message.source}$`;
        expect(at(body, 'message')).to.match(new RegExp(whole));
      }
    });
  }

  const unappliable: readonly (readonly [string, JsonObject])[] = [
    ['fails its own test', { op: 'test', path: '/metadata/namespace', value: 'other' }],
    ['removes something that does not exist', { op: 'remove', path: '/spec/nothing' }],
    ['adds to a list that does not exist', { op: 'add', path: '/spec/schedulingGates/-', value: GATE }],
    ['has an unknown operation', { op: 'repair', path: '/spec' }],
  ];
  for (const [what, operation] of unappliable) {
    it(`refuses a pod with 500 if a patch ${what}, even if failures are ignored`, async () => {
      await install(server().webhook('a', { failurePolicy: 'Ignore' }));
      server().answer('/a', () => patching([operation]));
      const { status, body } = await post();
      expect([status, at(body, 'reason')]).to.deep.equal([500, 'InternalError']);
      expect(at(body, 'message'))
        .to.match(/^Internal error occurred: /)
        .and.to.not.include('a.example.com');
    });
  }

  it('validates the pod that the webhooks have changed, even if failures are ignored', async () => {
    await install(server().webhook('a', { failurePolicy: 'Ignore' }));
    server().answer('/a', () => patching([{ op: 'add', path: '/spec/schedulingGates', value: [GATE, GATE] }]));
    expect(fieldErrors(await post())).to.deep.equal([`spec.schedulingGates[1]: Duplicate value: "${GATE.name}"`]);
    server().answer('/a', () => patching([{ op: 'add', path: '/spec/schedulingGates', value: [GATE] }]));
    expect(fieldErrors(await post({ nodeName: 'contract-amd64' }))).to.deep.equal([
      'spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared',
    ]);
  });
}
