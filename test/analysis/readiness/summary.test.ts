import { expect } from 'chai';
import { notLookedUpText } from '../../../src/analysis/readiness/report-images.ts';
import { shortfalls } from '../../../src/analysis/readiness/tally.ts';
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

  it('is complete where there is nothing to count', () =>
    expect(report({ objects: [] }).summary.targets.arm64?.readyShare).to.equal(1));

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

describe('a threshold of readiness', () => {
  const bare = (name: string, image: string, replicas: number) =>
    workload(name, [], replicas, { pod: { containers: [{ name: 'main', image }] } });
  const requesting = (name: string, image: string, replicas: number) => workload(name, [image], replicas);
  type Row = readonly [title: string, objects: readonly ReturnType<typeof object>[], percent: number, short: string];
  const rows: readonly Row[] = [
    ['is reached where everything is ready', [requesting('a', 'web', 3)], 100, ''],
    ['is reached by its own number', [requesting('a', 'web', 29), requesting('b', 'b-amd64', 71)], 29, ''],
    ['is never reached by rounding', [requesting('a', 'web', 2489), requesting('b', 'b-amd64', 10)], 99.6, 'cpu 0.99'],
    ['is not 100 with one of many', [requesting('a', 'web', 999_999), requesting('b', 'b-amd64', 1)], 100, 'cpu 0.99'],
    ['counts unknown as not ready', [requesting('a', 'web', 1), requesting('b', 'gone', 1)], 51, 'cpu 0.50'],
    ['counts replicas where no CPU is requested', [bare('a', 'web', 3), bare('b', 'b-amd64', 1)], 76, 'replicas 0.75'],
    ['counts them beside some', [requesting('a', 'web', 1), bare('b', 'b-amd64', 50)], 1, 'replicas without CPU 0.00'],
    ['counts unknown ones as well', [requesting('a', 'web', 1), bare('b', 'gone', 50)], 1, 'replicas without CPU 0.00'],
    ['does not let them stand for requested CPU', [requesting('a', 'a-amd64', 1), bare('b', 'web', 50)], 1, 'cpu 0.00'],
    ['says both', [requesting('a', 'a-amd64', 1), bare('b', 'b-amd64', 1)], 1, 'cpu 0.00, replicas without CPU 0.00'],
    ['leaves out what wants no pod', [requesting('a', 'web', 1), bare('b', 'b-amd64', 0)], 100, ''],
    ['judges nothing where nothing wants a pod', [bare('b', 'web', 0)], 0, 'nothing to judge'],
    ['judges nothing where there is nothing', [], 0, 'nothing to judge'],
  ];
  for (const [title, objects, percent, expected] of rows) {
    it(title, () => {
      const found = shortfalls(report({ objects: [...objects] }), 'arm64', percent);
      const text = found?.map(
        ({ measure, isWithoutCpu, share }) =>
          `${measure}${isWithoutCpu ? ' without CPU' : ''} ${(Math.floor(share * 100) / 100).toFixed(2)}`,
      );
      expect(text?.join(', ') ?? 'nothing to judge').to.equal(expected);
    });
  }
});

describe('images that were not looked up', () => {
  it('are counted once each, with the workloads that use them', () => {
    const { summary } = report({
      objects: [workload('a', ['gone', 'web'], 1), workload('b', ['gone'], 1), workload('c', ['web'], 1)],
    });
    expect(summary.notLookedUp).to.deep.include({ images: 1, workloads: 2 });
    expect(report({ objects: [workload('c', ['web'], 1)] }).summary.notLookedUp).to.deep.equal({
      images: 0,
      workloads: 0,
      registries: [],
    });
  });

  it('are named by registry and reason, the first three', () => {
    const registries = ['a', 'b', 'c', 'd'].map((registry) => ({ registry, code: 'timeout', images: 2 }));
    expect(notLookedUpText({ images: 8, registries })).to.equal(
      '8 images were not looked up (a timeout: 2, b timeout: 2, c timeout: 2, 1 more)',
    );
    expect(notLookedUpText({ images: 0, registries: [] })).to.equal(undefined);
  });
});
