import { expect } from 'chai';
import { at, objects, text } from '../simulator/json.ts';
import { PODS, productForEach, settled, tolerated, workload } from '../support/product.ts';
import { cleaning } from './cleaning.ts';

const SET = '/apis/apps/v1/namespaces/default/daemonsets/agent';

describe('clean', () => {
  const product = productForEach();

  const settle = () => settled(product);
  const { clean, nothingLeft } = cleaning(product);

  it("removes only archaware's taint if another writer adds one at the same time", async () => {
    await (await settle()).stop();
    const foreign = { key: 'example.com/gpu', effect: 'NoSchedule' };
    const node = '/api/v1/nodes/amd64-1';
    const taints = objects(at(await product.get(node), 'spec', 'taints'));
    product.cluster.faults.conflictNextPatch(/nodes\/amd64-1/, () =>
      product.cluster.request('PATCH', node, { spec: { taints: [...taints, foreign] } }),
    );
    expect(await clean()).to.have.property('code', 0);
    expect(objects(at(await product.get(node), 'spec', 'taints'))).to.deep.equal([foreign]);
  });

  it('stops if a taint is left, because a restored DaemonSet would lose its pods', async () => {
    await (await settle()).stop();
    const heal = product.cluster.faults.inject({ method: 'PATCH', path: /nodes\/arm64-1/, status: 403 });
    const { code, left } = await clean();
    expect(code).to.equal(2);
    expect(left).to.include.members(['Node arm64-1', 'DaemonSet agent']);
    expect(tolerated(at(await product.get(SET), 'spec', 'template', 'spec'))).to.deep.equal(['amd64', 'arm64']);
    heal();
    expect(await clean()).to.deep.include({ code: 0, left: [] });
    await nothingLeft();
  });

  it('says with --dry-run what would become of each pod and node', async () => {
    const controller = await settle();
    await product.cluster.apply(workload('Deployment', 'camera', [product.image('camera', ['arm64'])]));
    await product.eventually('the pods to be placed', async () => {
      const pods = await product.list(PODS);
      return pods.length === 5 && pods.every((pod) => tolerated(pod.spec).length > 0);
    });
    await controller.stop();
    const dry = await product.command(['clean', '--dry-run', '--output', 'json', '--pods', 'restart']);
    const rows = ['left', 'kept'].flatMap((list) =>
      objects(at(JSON.parse(dry.stdout), list)).map(
        ({ kind, name, reason }) => `${list}: ${text(kind)} ${text(name).replace(/-.*/, '')}: ${text(reason)}`,
      ),
    );
    expect(new Set(rows)).to.include.all.keys([
      'left: Pod web: restart: its owner is restarted, if all of its pods are available',
      'left: Pod agent: rolls: its DaemonSet replaces it',
      'kept: Pod camera: a new pod could start on a node of amd64, for which its images have no build',
      'left: Node amd64: its taint and labels would be removed',
    ]);
    expect(dry.stderr).to.match(
      /pods with tolerations or affinity +2 +restart their Deployments and StatefulSets \(1\)/,
    );
    const shown = await product.command(['clean', '--dry-run']);
    expect(shown.stdout).to.match(
      /^clean would remove what archaware wrote to \d+ objects\.\n\nSTEP +WHAT +COUNT +DO\n/,
    );
    expect(shown.stderr).not.to.include('STEP');
  });

  it('refuses an invalid value of a flag', async () => {
    for (const [flag, value] of [
      ['--pods', 'burn'],
      ['--pods', 'evict'],
    ] as const) {
      const { code, stderr } = await product.command(['clean', '--yes', flag, value]);
      expect(code).to.equal(3);
      expect(stderr).to.match(new RegExp(`^archaware: ${flag}: got "${value}", expected .*\n$`));
    }
  });

  it('needs --yes without a terminal: it prints the steps, and changes nothing', async () => {
    await (await settle()).stop();
    product.cluster.forgetRequests();
    const { code, stdout, stderr } = await product.command(['clean'], { input: 'y\n' });
    expect([code, stdout]).to.deep.equal([3, '']);
    expect(stderr).to.match(
      /or affinity +2 +keep .*\n5 +pods with tolerations or affinity +2 +replaced by their DaemonSet/,
    );
    expect(stderr).to.match(/archaware: --yes: required, because there is no terminal to ask on; nothing was done\n$/);
    expect(product.cluster.writes()).to.deep.equal([]);
  });
});
