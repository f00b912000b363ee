import { expect } from 'chai';
import {
  giveBackAfterWrite,
  giveBackAtSight,
  type OwnershipOptions,
} from '../../../src/controllers/daemonset/give-back.ts';
import { createRecords } from '../../../src/controllers/memory.ts';
import type { JsonObject } from '../../../src/kit/json.ts';
import { ApiError, ConnectionError } from '../../../src/kube/errors.ts';
import type { WriteResult } from '../../../src/kube/writer.ts';
import { readDaemonSet } from '../../../src/placement/objects/daemonset.ts';
import { jsonPatch } from '../../simulator/objects/patch.ts';
import { createHandClock } from '../hand-clock.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const NEVER = new AbortController().signal;
const LIST = { 'f:spec': { 'f:template': { 'f:spec': { 'f:tolerations': {} } } } };
const NOTE = { 'f:metadata': { 'f:annotations': { 'f:archaware.dev/tolerations': {} } } };
const HELM = { manager: 'helm', operation: 'Apply', fieldsV1: LIST };
const KUBELET = { manager: 'kube-controller-manager', operation: 'Update', subresource: 'status', fieldsV1: {} };
const OURS = { manager: 'archaware-controller', operation: 'Update', fieldsV1: { ...LIST, ...NOTE } };

/** A DaemonSet whose list archaware's entry owns, and an API server that carries out what it is sent. */
function arrange(managedFields: readonly JsonObject[] = [HELM, OURS, KUBELET]) {
  const clock = createHandClock();
  const sent: JsonObject[][] = [];
  const world = {
    answer: undefined as WriteResult | Error | undefined,
    /** What the server makes of the entries it is sent. */
    keeps: (entries: unknown): unknown => entries,
    refused: 0,
  };
  let object: JsonObject = {
    metadata: { namespace: 'shop', name: 'agent', uid: 'u', resourceVersion: '7', managedFields },
  };
  const parts: OwnershipOptions = {
    clock,
    onRefused: () => {
      world.refused++;
    },
    async write({ action }, patch) {
      expect(action).to.equal('give-back');
      sent.push(patch.map(({ op, path }) => ({ op, path })));
      if (world.answer instanceof Error) throw world.answer;
      if (world.answer !== undefined) return world.answer;
      const { metadata } = JSON.parse(JSON.stringify(jsonPatch(object, JSON.stringify(patch))));
      object = { metadata: { ...metadata, resourceVersion: '8', managedFields: world.keeps(metadata.managedFields) } };
      return { kind: 'written', object };
    },
  };
  const records = createRecords();
  const of = () => records.of('shop/agent', 'u');
  const seen = () => readDaemonSet(object);
  return {
    ...{ clock, world, parts, records, of, sent, seen, object: () => object },
    look: () => giveBackAtSight(parts, of(), seen(), NEVER),
  };
}

describe('the ownership of a list of tolerations', () => {
  it("is given back after a write: archaware's entry keeps the record and a name that outlives it", async () => {
    const { of, parts, seen, object, sent, look } = arrange();
    expect(await giveBackAfterWrite(parts, of(), seen(), NEVER)).to.equal('8');
    expect(sent).to.have.length(1);
    const names = { 'f:archaware.dev/tolerations': {}, 'f:archaware.dev/wrote': {} };
    const after = { ...OURS, fieldsV1: { 'f:metadata': { 'f:annotations': names } } };
    expect(object()).to.have.deep.nested.property('metadata.managedFields', [HELM, after, KUBELET]);
    expect(seen().entry).to.deep.equal({ index: 1, ownsSpec: false });
    expect([await giveBackAfterWrite(parts, of(), seen(), NEVER), await look()]).to.deep.equal(['8', {}]);
    expect(sent, 'a second time').to.have.length(1);
  });

  const nothing: [given: string, entries: readonly JsonObject[]][] = [
    ['archaware never wrote', [HELM, KUBELET]],
    ['archaware owns the record alone', [HELM, { ...OURS, fieldsV1: NOTE }]],
    ['archaware wrote the status', [{ ...OURS, subresource: 'status' }]],
    ['archaware applied', [{ ...OURS, operation: 'Apply' }]],
    ['the list is gone', []],
  ];
  for (const [given, entries] of nothing) {
    it(`is not touched where ${given}`, async () => {
      const { of, parts, seen, sent, look } = arrange(entries);
      expect(await giveBackAfterWrite(parts, of(), seen(), NEVER)).to.equal('7');
      expect(await look()).to.deep.equal({});
      expect(sent).to.deep.equal([]);
    });
  }

  const failures: [what: string, answer: WriteResult | Error, refused: number][] = [
    ['a refusal', new ApiError(422, { message: 'denied request: no' }, 'patch'), 1],
    ['a missing right', new ApiError(403, { message: 'forbidden' }, 'patch'), 0],
    ['a broken connection', new ConnectionError('reset'), 0],
  ];
  for (const [what, answer, refused] of failures) {
    it(`is not an error after ${what}, and is tried again at sight, less and less often`, async () => {
      const { of, parts, world, look, seen, sent, clock } = arrange();
      world.answer = answer;
      expect(await giveBackAfterWrite(parts, of(), seen(), NEVER)).to.equal('7');
      expect(await look()).to.deep.equal({ againInMs: MINUTE });
      await clock.advance(MINUTE);
      expect(await look()).to.deep.equal({ againInMs: 2 * MINUTE });
      expect([sent.length, world.refused]).to.deep.equal([3, 3 * refused]);
      await clock.advance(30 * 24 * 60 * MINUTE);
      world.answer = undefined;
      expect(await look()).to.deep.equal({ resourceVersion: '8' });
    });
  }

  it('is tried again soon where the entries have changed their places', async () => {
    const { of, parts, world, look, seen, clock } = arrange();
    world.answer = { kind: 'conflict' };
    expect(await giveBackAfterWrite(parts, of(), seen(), NEVER)).to.equal('7');
    for (let attempt = 0; attempt < 3; attempt++) {
      expect(await look()).to.deep.equal({ againInMs: SECOND });
      await clock.advance(SECOND);
    }
    world.answer = undefined;
    expect(await look()).to.deep.equal({ resourceVersion: '8' });
  });

  it('is left as it is where the API server does not let go of it', async () => {
    const { of, records, parts, world, look, seen, sent, clock } = arrange();
    world.keeps = () => [HELM, OURS];
    await giveBackAfterWrite(parts, of(), seen(), NEVER);
    expect(await look()).to.deep.equal({});
    await clock.advance(30 * 24 * 60 * MINUTE);
    expect(await look()).to.deep.equal({});
    expect(sent).to.have.length(1);
    records.forget('shop/agent');
    await look();
    expect(sent, 'of another DaemonSet of that name').to.have.length(2);
  });

  it('does not make a DaemonSet busy whose author gives it to archaware again and again', async () => {
    const { of, parts, sent, clock } = arrange();
    const again = () =>
      giveBackAtSight(parts, of(), readDaemonSet({ metadata: { uid: 'u', managedFields: [OURS] } }), NEVER);
    for (let second = 0; second < 3600; second++) {
      await again();
      await clock.advance(SECOND);
    }
    expect(sent.length).to.be.below(8);
  });

  it('ends with the process', async () => {
    const { of, parts, world, seen } = arrange();
    world.answer = new ConnectionError('aborted');
    const end = AbortSignal.abort(new Error('over'));
    const ended = await giveBackAfterWrite(parts, of(), seen(), end).catch((error: unknown) => error);
    expect(ended).to.be.an('error').with.property('message', 'over');
  });
});
