import { expect } from 'chai';
import { withPeers } from '../hack/bench/peers/peers.ts';
import { judge, row } from '../hack/bench/result.ts';
import { median } from '../hack/bench/rounds.ts';
import { createKinds } from '../hack/bench/scale/kinds.ts';
import { sizingText } from '../hack/bench/scale/rows.ts';
import { createStamp, fillIn } from '../hack/bench/scale/stamp.ts';
import { readNode } from '../src/placement/nodes/node.ts';
import { readPod } from '../src/placement/objects/pod.ts';
import { at, type JsonObject, list, object, text } from './simulator/json.ts';

const FIELDS = { version: 4, index: 3 } as const;
const SHAPE = { pods: 1_050, nodes: 50, images: 20, repository: '127.0.0.1:5000/bench' };
const parsed = (bytes: Buffer): JsonObject => object(JSON.parse(bytes.toString()));

describe('a stamp of the benchmark', () => {
  it('writes the numbers into a copy of the text', () => {
    const stamp = createStamp('pod-@index@ at @version@, @index@', FIELDS);
    expect(stamp.make([12, 7]).toString()).to.equal('pod-007 at 0012, 007');
    expect(stamp.size).to.equal('pod-007 at 0012, 007'.length);
  });

  it('refuses a field that does not exist', () => {
    expect(() => createStamp('@other@', FIELDS)).to.throw('@other@ is not one of version, index');
  });

  it('leaves the fields that are not given', () => {
    expect(fillIn('@index@ @version@', FIELDS, { index: 5 })).to.equal('005 @version@');
  });
});

describe('the big cluster of the benchmark', () => {
  it('lists every pod once, page by page, all of them placed', () => {
    const { pods } = createKinds(SHAPE);
    const indexes = Array.from({ length: SHAPE.pods }, (_, index) => index);
    const pages = [parsed(pods.page(indexes.slice(0, 500), 500)), parsed(pods.page(indexes.slice(500)))];
    expect(at(pages[0], 'metadata', 'continue')).to.equal('500');
    expect(at(pages[1], 'metadata', 'continue')).to.equal(undefined);
    const read = pages.flatMap((page) => list(page.items)).map((item) => readPod(object(item)));
    expect(new Set(read.map(({ uid }) => uid)).size).to.equal(SHAPE.pods);
    expect(new Set(read.map(({ nodeName }) => nodeName)).size).to.equal(SHAPE.nodes);
    for (const { tolerations = [] } of read) {
      expect(tolerations.flatMap(({ key, value }) => (key === 'supported-arch' ? value : []))).to.deep.equal([
        'amd64',
        'arm64',
      ]);
    }
  });

  it('lists nothing as an empty list', () => {
    expect(list(parsed(createKinds(SHAPE).pods.page([])).items)).to.deep.equal([]);
  });

  it('has objects of the size that is usual', () => {
    const { pods, nodes } = createKinds(SHAPE);
    expect(pods.object(0).length).to.be.within(4_500, 6_500);
    expect(nodes.object(0).length).to.be.within(9_000, 13_000);
  });

  it('answers a patch with the changed object, and sends its event', () => {
    const { pods } = createKinds(SHAPE);
    const seen: JsonObject[] = [];
    pods.watch(Number.POSITIVE_INFINITY, (event) => seen.push(parsed(event)));
    pods.add(1);
    const index = SHAPE.pods;
    const before = parsed(pods.object(index));
    const patch = [
      { op: 'test', path: '/metadata/uid', value: at(before, 'metadata', 'uid') },
      { op: 'test', path: '/metadata/generation', value: 1 },
      { op: 'add', path: '/spec/tolerations/-', value: { key: 'supported-arch', operator: 'Exists' } },
    ];
    const answer = parsed(pods.patch(index, JSON.stringify(patch), true));
    expect(answer).to.include({ kind: 'PartialObjectMetadata' });
    expect(at(answer, 'metadata', 'generation')).to.equal(2);
    expect(seen.map(({ type }) => type)).to.deep.equal(['ADDED', 'MODIFIED']);
    const changed = readPod(object(seen[1]?.object));
    expect(changed.tolerations?.at(-1)).to.deep.equal({ key: 'supported-arch', operator: 'Exists' });
    expect(changed.resourceVersion).to.equal(text(at(answer, 'metadata', 'resourceVersion')));
    expect(() => pods.patch(index, JSON.stringify(patch), true)).to.throw('the server rejected');
  });

  it('sends the events after a version to a watch that begins later', () => {
    const { nodes } = createKinds(SHAPE);
    nodes.touch(3);
    nodes.touch(4);
    const first = Number(at(parsed(nodes.object(3)), 'metadata', 'resourceVersion'));
    const seen: string[] = [];
    nodes.watch(first, (event) => seen.push(readNode(object(parsed(event).object)).name));
    expect(seen).to.deep.equal(['node-000004']);
  });

  it('joins nodes without the taint', () => {
    const kinds = createKinds(SHAPE);
    kinds.join(1, 'riscv64');
    const { reportedArchitecture, taints, managed } = readNode(parsed(kinds.nodes.object(SHAPE.nodes)));
    expect({ reportedArchitecture, taints, managed }).to.deep.equal({
      reportedArchitecture: 'riscv64',
      taints: undefined,
      managed: undefined,
    });
  });
});

describe('the tables of the benchmark', () => {
  for (const [value, goal, text, isMet] of [
    [0.95, { atLeast: 0.95 }, 'at least 0.95', true],
    [0.94, { atLeast: 0.95 }, 'at least 0.95', false],
    [3, { atMost: 3 }, 'at most 3 ms', true],
    [10, { under: 10 }, 'under 10 ms', false],
    [Number.NaN, { atMost: 3 }, 'at most 3 ms', false],
  ] as const) {
    it(`say whether ${value} is ${text}`, () => {
      expect(judge(value, goal, 'atLeast' in goal ? '' : ' ms')).to.deep.equal({ goal: text, isMet });
    });
  }

  it('have the middle of the rounds', () => {
    expect(median([3, 1, 2])).to.equal(2);
    expect(median([0.8, 0.9])).to.be.closeTo(0.85, 1e-9);
    expect(median([])).to.deep.equal(Number.NaN);
  });

  it('have formulas that fit the sizes', () => {
    const points = [1_000, 10_000, 100_000].map((pods) => ({
      pods,
      nodes: pods / 20,
      events: pods / 100,
      rss: 0,
      peak: 80 + (2 * pods) / 1_000,
      readySeconds: 0,
      cpuOfPlacedPod: 0.5,
      idle: 0.1,
      load: (1 + (0.2 * pods) / 100) / 10,
    }));
    expect(sizingText(points)).to.include('= 80 + 2.00 × pods / 1000').and.include('= 1.0 + 0.20 × events/s + 0.50 ×');
  });
});

describe('the column of other programs', () => {
  const rows = ['2000 pods at once, warm', 'most reviews/s, warm', 'registry requests of a cold burst'].map((what) =>
    row(what, '1'),
  );
  const noe = { perSecond: 1728.4, p50Ms: 1.1, reviews: 400, aloneMs: 3, memory: 42 };
  const mto = { perSecond: 79.4, barePerSecond: 505, cpuOfPod: 1.2, p50Ms: 55, p99Ms: 104, peak: 106 };
  const peersOf = (peers: Parameters<typeof withPeers>[1]) => withPeers(rows, peers).map((each) => each.peers);

  it('has figures of notes, with a star, where a program was not measured', () => {
    expect(peersOf({ noe: undefined, mto: undefined })).to.deep.equal(['MTO 79 pods/s*', 'Noe 20*', '']);
    expect(peersOf({ noe, mto: undefined })).to.deep.equal(['MTO 79 pods/s*', 'Noe 1728, 42 MiB', '']);
  });

  it('has what was measured, without a star', () => {
    expect(peersOf({ noe: undefined, mto })).to.deep.equal([
      'MTO 79 pods/s (gated; a bare loop releases 505)',
      'Noe 20*',
      '',
    ]);
  });

  it('replaces every figure of notes', () => {
    const all = [
      ...rows,
      row('most memory in the bursts (VmHWM)', '1'),
      row('200 reviews/s, warm, p50', '1'),
      row('gated to released at 20 pods/s, warm, p50', '1'),
    ];
    const cells = withPeers(all, { noe, mto }).map(({ peers = '' }) => peers);
    expect(cells.filter((cell) => cell !== '')).to.have.length(5);
    expect(cells.filter((cell) => cell.includes('*'))).to.deep.equal([]);
  });
});
