import { expect } from 'chai';
import { judge } from '../hack/bench/result.ts';
import { median } from '../hack/bench/rounds.ts';
import { createKinds } from '../hack/bench/scale/kinds.ts';
import { createStamp } from '../hack/bench/scale/stamp.ts';
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
});
