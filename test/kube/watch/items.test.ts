import { expect } from 'chai';
import fc from 'fast-check';
import type { JsonObject } from '../../../src/kit/json.ts';
import { createItemReader } from '../../../src/kube/watch/items.ts';

/** Reads a text in pieces that end at these places. */
function read(text: string, cuts: readonly number[] = []): { metadata: JsonObject[]; items: JsonObject[] } {
  const metadata: JsonObject[] = [];
  const items: JsonObject[] = [];
  const reader = createItemReader({
    onMetadata: (found) => void metadata.push(found),
    onItem: (item) => void items.push(item),
    textOf: (item) => item.toString('utf8'),
    title: 'list /api/v1/pods',
  });
  const bytes = Buffer.from(text);
  const places = [...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].sort((one, other) => one - other);
  let from = 0;
  for (const to of places) {
    reader.take(Buffer.from(bytes.subarray(from, to)));
    from = to;
  }
  reader.end();
  return { metadata, items };
}

describe('the items of a list', () => {
  const text = fc.oneof(fc.string(), fc.constantFrom('},{"metadata":{', '"items":[', ']}', 'ä"}'));
  const item = fc.record({
    metadata: fc.record({ name: text, labels: fc.dictionary(text, text, { maxKeys: 2 }) }),
    // Within an item, one object with metadata follows another.
    spec: fc.array(fc.record({ metadata: fc.record({ name: text }) }), { maxLength: 3 }),
  });

  it('are the same, wherever the pieces end and whatever their texts look like', () => {
    fc.assert(
      fc.property(
        fc.array(item, { maxLength: 5 }),
        text,
        fc.array(fc.nat(), { maxLength: 8 }),
        (items, token, cuts) => {
          const metadata = { resourceVersion: '7', continue: token };
          const list = { kind: 'PodList', apiVersion: 'v1', metadata, items };
          expect(read(`${JSON.stringify(list)}\n`, cuts)).to.deep.equal({ metadata: [metadata], items });
          // A list whose metadata come last is read as a whole.
          const { metadata: last, ...first } = list;
          expect(read(JSON.stringify({ ...first, metadata: last }), cuts)).to.deep.equal({
            metadata: [metadata],
            items,
          });
        },
      ),
    );
  });

  it('are not copied again with each piece, however large they are', () => {
    const large = { metadata: { name: 'a', annotations: { x: 'y'.repeat(1_000_000) } } };
    const text = JSON.stringify({ kind: 'PodList', metadata: {}, items: [large, { metadata: { name: 'b' } }] });
    const pieces = Array.from({ length: Math.ceil(text.length / 1_000) }, (_, at) => at * 1_000);
    let copied = 0;
    const concat = Buffer.concat;
    Buffer.concat = (...args: Parameters<typeof concat>) => {
      const joined = concat(...args);
      copied += joined.length;
      return joined;
    };
    try {
      expect(read(text, pieces).items).to.have.length(2);
    } finally {
      Buffer.concat = concat;
    }
    expect(copied).to.be.below(3 * text.length);
  });

  it('arrive before the list is complete', () => {
    const items: JsonObject[] = [];
    const reader = createItemReader({
      onMetadata: () => undefined,
      onItem: (found) => void items.push(found),
      textOf: (bytes) => bytes.toString('utf8'),
      title: 'list',
    });
    reader.take(Buffer.from('{"metadata":{},"items":[{"metadata":{"name":"a"}},{"metadata":{"na'));
    expect(items).to.deep.equal([{ metadata: { name: 'a' } }]);
    expect(() => reader.end()).to.throw('list: the answer is not a list');
  });

  for (const broken of ['', 'nonsense', '{"metadata":{},"items":[{"metadata":{}}', '[]']) {
    it(`are an error that names the request, if the answer is ${JSON.stringify(broken)}`, () => {
      expect(() => read(broken)).to.throw('list /api/v1/pods: the answer is not a list');
    });
  }

  it('are none if the list has null in their place', () => {
    expect(read('{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":null}').items).to.deep.equal([]);
  });
});
