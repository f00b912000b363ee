import { expect } from 'chai';
import { type Connection, connect } from '../../src/app/connect.ts';
import { loadConfig } from '../../src/config/load.ts';
import { createLease } from '../../src/kube/lease.ts';
import { type EmbeddedCluster, startEmbeddedCluster } from '../simulator/embedded-cluster.ts';
import { patientClock } from '../support/patient-clock.ts';

describe('the connection to a cluster', () => {
  let cluster: EmbeddedCluster;
  let connection: Connection | undefined;
  let ended: Promise<unknown>;
  const end = new AbortController();
  const clock = patientClock();
  const how = () => ({
    ...{ config: loadConfig({ environment: {}, flags: {} }).config, kubeconfig: cluster.kubeconfig },
    ...{ context: undefined, clock, signal: end.signal },
  });
  beforeEach(async () => {
    [connection, ended] = [undefined, Promise.resolve()];
    cluster = await startEmbeddedCluster({ scheduler: false, workloads: false });
    connection = await connect(how());
  });
  afterEach(async () => {
    await connection?.close();
    await ended;
    await cluster.stop();
  });

  it('says at a terminal to which server it connects if that takes long', async () => {
    cluster.faults.inject({ path: /\/version/, hang: true });
    const interrupt = new AbortController();
    const shown: string[] = [];
    const failed = connect({
      ...how(),
      clock: { ...clock, after: (_ms, action) => clock.after(0, action) },
      signal: interrupt.signal,
      status(line) {
        shown.push(line);
        interrupt.abort();
      },
    }).then(
      () => 'connected',
      () => 'interrupted',
    );
    expect(await failed).to.equal('interrupted');
    expect(shown).to.deep.equal([`connecting to ${connection?.client.host} …`, '']);
  });

  it('renews the Lease while every other connection hangs', async () => {
    if (connection === undefined) throw new Error('not connected');
    const { client, leaseClient } = connection;
    cluster.faults.inject({ path: /\/pods/, hang: true });
    const hanging = Array.from({ length: 100 }, () => client.request('list', '/api/v1/pods').catch(() => undefined));
    const isHung = async () => cluster.requests().filter(({ path }) => path === '/api/v1/pods').length === 44;
    await cluster.waitFor('all connections to be in use', isHung);
    const given = { namespace: 'default', name: 'l', identity: 'me', durationMs: 15_000, clock };
    const lease = createLease({ client: leaseClient, ...given });
    expect(await lease.tryAcquire(new AbortController().signal)).to.deep.equal({ held: true });
    expect([...leaseClient.addresses()]).to.deep.equal([...client.addresses()]);
    // The requests end when the clients are closed.
    ended = Promise.all(hanging);
  });
});
