import { expect } from 'chai';
import { productForEach, settled } from '../support/product.ts';
import { taintsOf } from '../support/world.ts';
import { cleaning } from './cleaning.ts';

const LEASE = '/apis/coordination.k8s.io/v1/namespaces/archaware/leases/archaware-controller';

describe('clean, while something fails', () => {
  const product = productForEach();

  const { clean, nothingLeft } = cleaning(product);
  const settle = () => settled(product);
  /** Run by an administrator, who may list and scale everywhere. */
  const asAdmin = (...args: string[]) => product.asAdmin(['clean', ...args]);
  const taints = async () => (await product.list('/api/v1/nodes')).flatMap(taintsOf).sort();

  it('takes over from a killed leader once its lease has expired', async () => {
    await (await settle()).stop();
    // A leader that was killed has not released its Lease. This one expires a second after clean has seen it.
    await product.patch(LEASE, { spec: { holderIdentity: 'killed', leaseDurationSeconds: 1 } });
    const { code, stderr } = await clean();
    expect(code).to.equal(0);
    expect(stderr).to.match(/holds the lease; waiting up to 15s/);
    await nothingLeft();
  });

  it('refuses while a leader lives in the Lease of the configuration, wherever that is', async () => {
    await (await settle()).stop();
    await product.namespace('other');
    const configured = ['--leaderElection.namespace', 'other', '--leaderElection.name', 'arch'];
    const leader = await product.run(['--kubeconfig', product.cluster.kubeconfig, ...configured]);
    await product.eventually('it to lead', async () => (await leader.metric('archaware_leader')) === 1);
    const dry = await asAdmin('--dry-run', ...configured);
    expect(dry.stderr).to.match(/without --dry-run, clean refuses: \S+ leads \(Lease other\/arch\)/);
    const named = ['--installation', 'other/arch', '--leaderElection.name', 'arch'];
    for (const { code, stderr } of [await asAdmin('--yes', ...configured), await asAdmin('--yes', ...named)]) {
      expect(code, stderr).to.equal(1);
      expect(stderr).to.match(/leads \(Lease other\/arch\): stop it first/);
    }
    const outside =
      /leads .*: stop it first: Deployment archaware\/archaware-controller does not exist, so end that process/;
    expect((await asAdmin('--yes', ...configured)).stderr).to.match(outside);
    const planned = await asAdmin('--dry-run', '--stop', ...configured);
    expect(planned.stderr, '--stop has no Deployment to scale').to.match(/without --dry-run, clean refuses/);
    expect(planned.stdout).to.match(/clean would refuse/);
    const stopping = await asAdmin('--yes', '--stop', ...configured);
    expect(stopping.code).to.equal(1);
    expect(stopping.stderr).to.match(/ leads \(Lease .*it does not belong to the Deployment of archaware/);
    expect(await taints()).to.deep.equal(['amd64', 'arm64']);
  });

  it('says of another clean that it ends by itself, with and without --stop', async () => {
    await (await settle()).stop();
    const renew = async (now: string) =>
      product.patch(LEASE, { spec: { holderIdentity: 'clean:other', leaseDurationSeconds: 15, renewTime: now } });
    await renew(new Date().toISOString().replace('Z', '000Z'));
    const renewing = setInterval(() => void renew(new Date().toISOString().replace('Z', '000Z')), 500);
    try {
      for (const flag of ['--yes', '--stop']) {
        const { code, stderr } = await asAdmin('--yes', flag);
        expect([code, stderr.trim().split('\n').at(-1)]).to.deep.equal([
          1,
          'archaware: clean:other is another clean that is running (Lease archaware/archaware-controller): wait until it has ended, then run clean again',
        ]);
      }
    } finally {
      clearInterval(renewing);
    }
  });

  it('names the right that it lacks to look for the controller', async () => {
    await (await settle()).stop();
    product.cluster.faults.inject({ path: /\/deployments\/archaware-controller/, status: 403 });
    const { code, stderr } = await product.command(['clean', '--yes']);
    expect(code).to.equal(1);
    expect(stderr).to.match(
      /clean looks for the Deployment archaware\/archaware-controller and its Lease.*grant "get" on both/,
    );
    const dry = await product.command(['clean', '--dry-run']);
    expect(dry.code).to.equal(0);
    expect(dry.stderr).to.match(/without --dry-run, clean refuses: .*deployments\/archaware-controller/);
  });

  it('tries failed lists again', async () => {
    await (await settle()).stop();
    for (const [path, fault] of [
      [/\/api\/v1\/pods\?/, { status: 503, headers: { 'retry-after': '1' } }],
      [/daemonsets\?/, { reset: true }],
      [/\/leases\/archaware-controller$/, { status: 429 }],
    ] as const) {
      product.cluster.faults.inject({ method: 'GET', path, times: 2, ...fault });
    }
    const { code, left, stderr } = await clean();
    expect([code, left]).to.deep.equal([0, []]);
    expect(stderr).to.match(/list \/api\/v1\/pods: 503 .*; trying again in 1\.0 s/);
    await nothingLeft();
  });

  it('prints what it did and what is left if it is interrupted', async () => {
    await (await settle()).stop();
    let heal = () => {};
    product.cluster.faults.conflictNextPatch(/daemonsets/, () => {
      heal = product.cluster.faults.inject({ method: 'GET', path: /\/replicasets\//, reset: true });
    });
    const { code, kept, removed, stderr } = await clean();
    expect(code, stderr).to.equal(1);
    expect(removed).to.deep.include({ configurations: 4, nodes: 2, daemonSets: 1, pods: 0 });
    expect(kept, kept.join()).to.have.lengthOf(4);
    expect(stderr).to.match(/\narchaware: cannot reach the API server/);
    heal();
    expect(await clean()).to.deep.include({ code: 0, left: [] });
    await nothingLeft();
  });

  it('looks once more with --stop: a replica that lives nevertheless is named, and exit code 2 says that it writes again', async () => {
    await (await settle()).stop();
    product.cluster.faults.conflictNextPatch(/daemonsets/, async () => {
      // As a leader that hung: it is not seen, and leads when clean has released the Lease.
      const hung = await product.run();
      await product.eventually('it to follow', async () => (await hung.metric('archaware_leader')) === 0);
    });
    const { code, left, stderr } = await clean('--stop');
    expect(code, stderr).to.equal(2);
    expect(left).to.deep.equal(['Lease archaware-controller']);
    await product.stopControllers();
    expect(await clean('--stop')).to.deep.include({ code: 0, left: [] });
    await nothingLeft();
    const leases = await product.list('/apis/coordination.k8s.io/v1/namespaces/archaware/leases');
    expect(leases, 'nobody needs the Lease any more').to.deep.equal([]);
  });
});
