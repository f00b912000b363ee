import { expect } from 'chai';
import { at, type JsonObject, object } from '../simulator/json.ts';
import { type Context, createPod, done, fieldErrors, NAMESPACE, NOWHERE, refused, spec, versionOf } from './context.ts';

const LEASES = `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases`;
const EVENTS = `/apis/events.k8s.io/v1/namespaces/${NAMESPACE}/events`;
const MICRO = '2026-01-02T03:04:05.000678Z';
const MILLI = '2026-01-02T03:04:05.678Z';

function leaseOf(name: string, fields: JsonObject = {}): JsonObject {
  const spec = {
    holderIdentity: 'a',
    leaseDurationSeconds: 15,
    acquireTime: MICRO,
    renewTime: MICRO,
    leaseTransitions: 0,
  };
  return { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name }, spec: { ...spec, ...fields } };
}

export function describeLeases(context: () => Context): void {
  const create = (name: string, fields?: JsonObject) => context().client.request('POST', LEASES, leaseOf(name, fields));

  it('keeps the six digits of a time, and refuses three', async () => {
    expect(spec(done(await create('times')), 'renewTime')).to.equal(MICRO);
    expect(refused(await create('times-2', { renewTime: MILLI }), 400, 'BadRequest').message).to.contain(
      'cannot parse',
    );
    const update = [{ op: 'replace', path: '/spec/renewTime', value: MILLI }];
    const answer = await context().client.request('PATCH', `${LEASES}/times`, update);
    expect(fieldErrors(answer)[0]).to.match(/^patch: Invalid value/);
  });

  it('is taken by one of two', async () => {
    const lease = done(await create('taken'));
    const put = (from: JsonObject, holderIdentity: string) =>
      context().client.request('PUT', `${LEASES}/taken`, { ...from, spec: { ...object(from.spec), holderIdentity } });
    done(await put(lease, 'b'));
    refused(await put(lease, 'c'), 409, 'Conflict');
  });

  it('requires the version in a PUT', async () => {
    done(await create('versionless'));
    const [error] = fieldErrors(await context().client.request('PUT', `${LEASES}/versionless`, leaseOf('versionless')));
    expect(error).to.match(/^metadata.resourceVersion: Invalid value: .*: must be specified for an update$/);
  });

  it('is released with an empty holder and a duration of 1, not 0', async () => {
    done(await create('released'));
    const release = (seconds: number) =>
      context().client.request('PATCH', `${LEASES}/released`, [
        { op: 'test', path: '/spec/holderIdentity', value: 'a' },
        { op: 'replace', path: '/spec/holderIdentity', value: '' },
        { op: 'replace', path: '/spec/leaseDurationSeconds', value: seconds },
      ]);
    expect(fieldErrors(await release(0))).to.deep.equal([
      'spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0',
    ]);
    expect(spec(done(await release(1)), 'holderIdentity')).to.equal('');
  });

  it('has a new version after each renewal', async () => {
    const lease = done(await create('renewed'));
    const renew = [{ op: 'replace', path: '/spec/renewTime', value: '2026-01-02T03:04:06.000000Z' }];
    const renewed = done(await context().client.request('PATCH', `${LEASES}/renewed`, renew));
    expect(Number(versionOf(renewed))).to.be.greaterThan(Number(versionOf(lease)));
    expect(spec(renewed, 'renewTime')).to.equal('2026-01-02T03:04:06.000000Z');
  });
}

export function describeEvents(context: () => Context): void {
  let regarding: JsonObject = {};
  before(async () => {
    const pod = await createPod(context(), 'regarded', NOWHERE);
    regarding = {
      apiVersion: 'v1',
      kind: 'Pod',
      namespace: NAMESPACE,
      name: 'regarded',
      uid: at(pod, 'metadata', 'uid'),
    };
  });
  const eventOf = (name: string, fields: JsonObject = {}): JsonObject => ({
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name },
    type: 'Warning',
    reason: 'ImageUnresolvable',
    action: 'Resolve',
    reportingController: 'archaware-controller',
    reportingInstance: 'archaware-controller-1',
    eventTime: MICRO,
    note: 'registry.example.com/app:1: not found',
    regarding,
    ...fields,
  });
  const create = (name: string, fields?: JsonObject) => context().client.request('POST', EVENTS, eventOf(name, fields));

  it('is created with all fields that v1 requires', async () => {
    const { action, note, eventTime } = done(await create('complete'));
    expect({ action, note, eventTime }).to.deep.equal({
      action: 'Resolve',
      note: 'registry.example.com/app:1: not found',
      eventTime: MICRO,
    });
  });

  for (const field of ['action', 'reportingInstance', 'reportingController', 'reason', 'type', 'eventTime']) {
    it(`is refused without ${field}`, async () => {
      refused(await create(`no-${field.toLowerCase()}`, { [field]: undefined }), 422, 'Invalid');
    });
  }

  it('is refused with a note over 1,024 bytes, or a time of three digits', async () => {
    done(await create('long', { note: 'x'.repeat(1024) }));
    refused(await create('too-long', { note: 'x'.repeat(1025) }), 422, 'Invalid');
    refused(await create('too-long-2', { note: 'é'.repeat(513) }), 422, 'Invalid');
    refused(await create('milli', { eventTime: MILLI }), 400, 'BadRequest');
  });

  it('counts a series from two', async () => {
    done(await create('series'));
    const patch = (count: number, path = 'series') =>
      context().client.request('PATCH', `${EVENTS}/${path}`, { series: { count, lastObservedTime: MICRO } });
    refused(await patch(1), 422, 'Invalid');
    expect(done(await patch(2)).series).to.deep.equal({ count: 2, lastObservedTime: MICRO });
    expect(done(await patch(9)).series).to.deep.equal({ count: 9, lastObservedTime: MICRO });
    refused(await patch(2, 'gone'), 404, 'NotFound');
  });

  it('keeps its note', async () => {
    done(await create('fixed'));
    const answer = await context().client.request('PATCH', `${EVENTS}/fixed`, { note: 'other' });
    refused(answer, 422, 'Invalid');
  });

  it('about a node is in the namespace default', async () => {
    const node = { apiVersion: 'v1', kind: 'Node', name: 'contract-amd64' };
    refused(await create('node', { regarding: node }), 422, 'Invalid');
    const path = '/apis/events.k8s.io/v1/namespaces/default/events';
    done(await context().client.request('POST', path, eventOf('contract-node', { regarding: node })));
    done(await context().client.request('DELETE', `${path}/contract-node`));
  });
}
