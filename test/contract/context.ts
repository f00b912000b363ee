import { expect } from 'chai';
import type { Answer, Client } from '../../hack/cluster/client.ts';
import { at, type JsonObject, object, objects, text } from '../simulator/json.ts';
import type { TestCluster } from '../simulator/test-cluster.ts';

/** What the rows of the contract work with; their objects are in one namespace of their own. */
export interface Context {
  readonly cluster: TestCluster;
  readonly client: Client;
}

export const NAMESPACE = 'contract';
export const NODE_NAMES = ['contract-amd64', 'contract-arm64'] as const;
export const NODE = `/api/v1/nodes/${NODE_NAMES[0]}`;
export const PODS = `/api/v1/namespaces/${NAMESPACE}/pods`;
/** Keeps a pod Pending, because no such scheduler exists. */
export const NOWHERE = { schedulerName: 'nobody' };
export const OURS = { key: 'supported-arch', operator: 'Equal', value: 'amd64', effect: 'NoSchedule' };

export function podOf(name: string, spec: JsonObject = {}, metadata: JsonObject = {}): JsonObject {
  const containers = [{ name: 'app', image: 'registry.example.com/app:1' }];
  const graceful = { terminationGracePeriodSeconds: 1 };
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, ...metadata }, spec: { ...graceful, containers, ...spec } };
}

export async function createPod({ client }: Context, name: string, spec: JsonObject = {}, metadata: JsonObject = {}) {
  return done(await client.request('POST', PODS, podOf(name, spec, metadata)));
}

/** Returns the body of a success; fails with the server's message. */
export function done({ status, body }: Answer): JsonObject {
  expect(status, JSON.stringify(body)).to.be.lessThan(300);
  return object(body);
}

/** Checks a refusal in the server's form; returns its Status. */
export function refused({ status, body }: Answer, code: number, reason: string): JsonObject {
  expect(status, JSON.stringify(body)).to.equal(code);
  expect(object(body)).to.deep.include({ kind: 'Status', apiVersion: 'v1', status: 'Failure', reason, code });
  return object(body);
}

/**
 * Checks a JSON Patch that could not be applied. The server does not return the reason, so this exact text identifies
 * it.
 */
export function patchFailed(answer: Answer): void {
  const status = refused(answer, 422, 'Invalid');
  expect(status.message).to.equal('the server rejected our request due to an error in our request');
  expect(status.details).to.deep.equal({});
}

/** Checks a refusal of fields; returns `field: message` of each. */
export function fieldErrors(answer: Answer): string[] {
  const status = refused(answer, 422, 'Invalid');
  return objects(at(status, 'details', 'causes')).map(({ field, message }) => `${text(field)}: ${text(message)}`);
}

export const spec = (item: JsonObject, name: string) => at(item, 'spec', name);
export const generation = (item: JsonObject) => at(item, 'metadata', 'generation');
export const versionOf = (item: JsonObject) => at(item, 'metadata', 'resourceVersion');
