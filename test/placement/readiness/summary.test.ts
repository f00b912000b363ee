import { expect } from 'chai';
import { container, object, report } from './world.ts';

function workload(name: string, images: readonly string[], replicas: number, given: Parameters<typeof object>[0] = {}) {
  return object({ name, images, spec: { replicas }, ...given });
}

describe('the summary of the report', () => {
  const SHOP = [
    workload('ready', ['web'], 5),
    workload('one', ['a-amd64'], 2),
    workload('other', ['b-amd64'], 1),
    workload('both', ['a-amd64', 'b-amd64'], 4),
    workload('pinned', ['a-amd64'], 8, { pod: { containers: [container('a-amd64')], nodeSelector: { disk: 'ssd' } } }),
    workload('unknown', ['gone'], 2),
  ];

  it('sums by state', () => {
    const { summary } = report({ objects: SHOP });
    expect(summary.all).to.deep.include({ workloads: 6, replicas: 22, cpu: 26 });
    expect(summary.measure).to.equal('cpu');
    const found = summary.targets.arm64;
    expect(found?.states.ready.cpu).to.equal(5);
    expect(found?.states.blocked).to.deep.include({ workloads: 4, cpu: 19 });
    expect(found?.states.unknown.cpu).to.equal(2);
    expect(found?.readyShare).to.equal(5 / 26);
    expect(found?.nodes).to.equal(1);
  });

  it('ranks rebuilds by what each frees after those before it', () => {
    const rebuilds = report({ objects: SHOP }).summary.targets.arm64?.rebuilds ?? [];
    expect(rebuilds.map(({ image, frees }) => [image, frees.workloads, frees.cpu])).to.deep.equal([
      ['a-amd64', 1, 2],
      ['b-amd64', 2, 9],
    ]);
    expect(rebuilds.map(({ readyAfter }) => readyAfter)).to.deep.equal([7 / 26, 16 / 26]);
  });

  it('ranks an image that frees nothing alone before the one that completes it', () => {
    const rebuilds = report({ objects: [workload('both', ['a-amd64', 'b-amd64'], 4)] }).summary.targets.arm64?.rebuilds;
    expect(rebuilds?.map(({ image, frees, readyAfter }) => [image, frees.cpu, readyAfter])).to.deep.equal([
      ['a-amd64', 0, 0],
      ['b-amd64', 8, 1],
    ]);
  });

  it('counts replicas where no workload requests CPU', () => {
    const bare = { containers: [{ name: 'a', image: 'web' }] };
    const { summary } = report({
      objects: [
        workload('a', [], 3, { pod: bare }),
        workload('b', [], 1, { pod: { containers: [{ name: 'a', image: 'a-amd64' }] } }),
      ],
    });
    expect([summary.measure, summary.targets.arm64?.readyShare]).to.deep.equal(['replicas', 0.75]);
  });

  it('is complete where there is nothing to count', () => {
    expect(report({ objects: [] }).summary.targets.arm64?.readyShare).to.equal(1);
  });

  it('says what an image blocks, alone and with others', () => {
    const { images } = report({ objects: SHOP, newerOf: (image) => (image === 'a-amd64' ? '2' : undefined) });
    const [first] = images;
    expect(first?.image).to.equal('a-amd64');
    expect(first?.blocking.arm64?.blocks.workloads).to.equal(3);
    expect(first?.blocking.arm64?.alone.workloads).to.equal(1);
    expect(first?.blocking.arm64?.newer).to.equal('2');
    expect(images.find(({ image }) => image === 'gone')?.error?.code).to.equal('unavailable');
    expect(images.find(({ image }) => image === 'web')?.blocking).to.deep.equal({});
  });

  it('takes the architectures of nodes and images for targets', () => {
    const objects = [workload('a', ['x-amd64-s390x'], 1)];
    expect(report({ objects, targets: undefined }).targets).to.deep.equal(['amd64', 'arm64', 's390x']);
    expect(
      report({ objects, targets: undefined, settings: { schedulable: ['s390x', 'amd64'] } }).targets,
    ).to.deep.equal(['amd64', 's390x']);
  });

  it('groups by namespace, label and registry', () => {
    const objects = [
      workload('a', ['web'], 1, { namespace: 'one', labels: { team: 'red' } }),
      workload('b', ['ghcr.io/a-amd64', 'web'], 3, { namespace: 'two' }),
    ];
    const groups = (by: Parameters<typeof report>[0]['grouping']) =>
      report({ objects, grouping: by }).groups?.map(({ name, all, targets }) => [
        name,
        all.workloads,
        targets.arm64?.readyShare,
      ]);
    expect(groups({ by: 'namespace' })).to.deep.equal([
      ['one', 1, 1],
      ['two', 1, 0],
    ]);
    expect(groups({ by: 'label', key: 'team' })).to.deep.equal([
      ['', 1, 0],
      ['red', 1, 1],
    ]);
    expect(groups({ by: 'registry' })).to.deep.equal([
      ['docker.io', 2, 1 / 7],
      ['ghcr.io', 1, 0],
    ]);
  });
});
