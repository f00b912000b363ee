import type { TestCluster } from '../simulator/test-cluster.ts';
import { describeAdmission } from './admission.ts';
import { describeAdmissionRefusals } from './admission-refusals.ts';
import { describeWorkloadAdmission } from './admission-workloads.ts';
import { connect } from './client.ts';
import { type Context, done, NAMESPACE } from './context.ts';
import { describeDaemonSets } from './daemonsets.ts';
import { describeEvictions } from './evictions.ts';
import { describeEvents, describeLeases } from './leases-events.ts';
import { describeLists, describeWatches } from './lists-watches.ts';
import { describeNodePatches } from './node-patches.ts';
import { describeBarePods, describePodPatches } from './pod-patches.ts';
import { describeRights } from './rights.ts';
import { describeScheduling } from './scheduling.ts';

export interface ContractOptions {
  /** The admission plug-in DefaultTolerationSeconds. */
  readonly defaultTolerations: boolean;
}

/**
 * What the program relies on, asked of any cluster. The embedded cluster and a real one run the same rows: a difference
 * is a failure of the embedded one.
 */
export function describeContract(name: string, start: (options: ContractOptions) => Promise<TestCluster>): void {
  describe(`${name}: the API as the program relies on it`, () => {
    const context = startedWith(start, { defaultTolerations: true });
    describe('a pod', () => describePodPatches(context));
    describe('a node', () => describeNodePatches(context));
    describe('a Lease', () => describeLeases(context));
    describe('an Event', () => describeEvents(context));
    describe('a list', () => describeLists(context));
    describe('a watch', () => describeWatches(context));
    describe('the scheduler', () => describeScheduling(context));
    describe('a DaemonSet', () => describeDaemonSets(context));
    describe('an eviction', () => describeEvictions(context));
    describe('a service account', () => describeRights(context));
    describe('a mutating webhook, for pods', () => describeAdmission(context));
    describe('a mutating webhook, in trouble', () => describeAdmissionRefusals(context));
    describe('a mutating webhook, for workloads', () => describeWorkloadAdmission(context));
  });
  describe(`${name}: without default tolerations`, () => {
    const context = startedWith(start, { defaultTolerations: false });
    describe('a pod', () => describeBarePods(context));
  });
}

function startedWith(
  start: (options: ContractOptions) => Promise<TestCluster>,
  options: ContractOptions,
): () => Context {
  let started: Context | undefined;
  before(async function () {
    this.timeout(120_000);
    const cluster = await start(options);
    const client = await connect(cluster.kubeconfig);
    started = { cluster, client };
    done(await client.request('POST', '/api/v1/namespaces', { metadata: { name: NAMESPACE } }));
    await cluster.waitFor('the service account', async () => {
      const path = `/api/v1/namespaces/${NAMESPACE}/serviceaccounts/default`;
      return (await client.request('GET', path)).status === 200;
    });
    await cluster.createNode({ name: 'contract-amd64', architecture: 'amd64' });
    await cluster.createNode({ name: 'contract-arm64', architecture: 'arm64' });
  });
  after(async function () {
    this.timeout(120_000);
    await started?.client.close();
    await started?.cluster.stop();
  });
  return () => {
    if (!started) throw new Error('the cluster has not started');
    return started;
  };
}
