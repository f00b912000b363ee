import { expect } from 'chai';
import fc from 'fast-check';
import { difference, type Operation } from '../../src/kit/json-patch.ts';
import { jsonPatch } from '../simulator/objects/patch.ts';

const add = (path: string, value: unknown): Operation => ({ op: 'add', path, value });
const replace = (path: string, value: unknown): Operation => ({ op: 'replace', path, value });
const remove = (path: string): Operation => ({ op: 'remove', path });

describe('the difference of two values', () => {
  const rows: [given: string, before: unknown, after: unknown, expected: readonly Operation[]][] = [
    ['the same', { a: [1] }, { a: [1] }, []],
    ['a new field', {}, { a: 1 }, [add('/a', 1)]],
    ['a field that is removed', { a: 1 }, {}, [remove('/a')]],
    ['another value', { a: 1 }, { a: 2 }, [replace('/a', 2)]],
    ['another type', { a: {} }, { a: [] }, [replace('/a', [])]],
    ['null that becomes an object', { a: null }, { a: { b: 1 } }, [replace('/a', { b: 1 })]],
    ['null goes', { a: null }, {}, [remove('/a')]],
    ['null comes', {}, { a: null }, [add('/a', null)]],
    ['deep below', { a: { b: { c: 1, d: 2 } } }, { a: { b: { c: 1, d: 3 } } }, [replace('/a/b/d', 3)]],
    ['a list that grows', { a: [1] }, { a: [1, 2, 3] }, [add('/a/-', 2), add('/a/-', 3)]],
    ['an item that grows', [{ b: [1] }], [{ b: [1, 2] }], [add('/0/b/-', 2)]],
    ['a list that shrinks', { a: [1, 2, 3] }, { a: [1, 3] }, [replace('/a', [1, 3])]],
    ['a list that is added', {}, { a: [1] }, [add('/a', [1])]],
    ['names with a slash or a tilde', {}, { 'a/b~c': 1 }, [add('/a~1b~0c', 1)]],
    ['an empty name', {}, { '': 1 }, [add('/', 1)]],
    ['a value from nothing, at a path', undefined, { b: 1 }, [add('', { b: 1 })]],
  ];
  for (const [given, before, after, expected] of rows) {
    it(`${given}: ${JSON.stringify(expected)}`, () => {
      expect(difference(before, after)).to.deep.equal(expected);
    });
  }

  it('begins at the given path', () => {
    expect(difference({ a: 1 }, { a: 2 }, '/spec/x')).to.deep.equal([replace('/spec/x/a', 2)]);
  });

  it('turns one value into the other, whatever they are', () => {
    const key = fc.oneof(fc.constantFrom('a', 'b', 'c/d', 'e~f', '~1', ''), fc.string({ maxLength: 3 }));
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 4, withCrossShrink: true },
        fc.constantFrom(null, true, 0, 1, 'x', 'y'),
        fc.array(tie('value'), { maxLength: 4 }),
        fc.dictionary(
          key.filter((name) => name !== '__proto__'),
          tie('value'),
          { maxKeys: 4, noNullPrototype: true },
        ),
      ),
    }));
    fc.assert(
      fc.property(value, value, (before, after) => {
        // Compares inside objects, because the test's patch function and the API server only patch objects.
        const patch = difference({ v: before }, { v: after });
        expect(jsonPatch({ v: before }, JSON.stringify(patch))).to.deep.equal({ v: after });
      }),
      { numRuns: 500 },
    );
  });
});
