import { expect } from 'chai';
import { at, objects, text } from './simulator/json.ts';
import { manifestObjects } from './support/manifest.ts';

const POLICIES = manifestObjects().filter(([, found]) => found.kind === 'MutatingAdmissionPolicy');

/** Returns the index after the bracket that closes the one at `from`. */
function closed(expression: string, from: number): number {
  let depth = 0;
  for (let index = from; index < expression.length; index++) {
    if ('([{'.includes(expression[index] ?? '')) depth++;
    else if (')]}'.includes(expression[index] ?? '') && --depth === 0) return index + 1;
  }
  throw new Error(`a bracket is not closed: ${expression.slice(from)}`);
}

/** Returns the values of the patches in a CEL expression, without the content of its strings. */
function patchValues(expression: string): string[] {
  const bare = expression.replaceAll(/"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/g, '""');
  return [...bare.matchAll(/JSONPatch\s*\{/g)].flatMap(({ index, 0: head }) => {
    const patch = bare.slice(index + head.length, closed(bare, index + head.length - 1) - 1);
    const [, value] = /\bvalue\s*:([\s\S]*)$/.exec(patch) ?? [];
    return value === undefined ? [] : [value.trim()];
  });
}

/** Returns what is left of a value without its literals and without conversions to simple types: names of other things. */
function unconverted(value: string): string[] {
  const conversion = /\b(?:string|int|double|bool)\s*\(/.exec(value);
  if (conversion !== null) {
    const end = closed(value, conversion.index + conversion[0].length - 1);
    return unconverted(`${value.slice(0, conversion.index)} ${value.slice(end)}`);
  }
  // A list of which each entry was converted, and a conversion of the type alone of what has only such parts.
  const rest = value.replaceAll(/[\w.]+\.map\(\w+,\s*\)/g, '').replaceAll(/\bdyn\(\s*(?:"")?\s*\)/g, '');
  return (rest.match(/[A-Za-z_]\w*/g) ?? []).filter((name) => !['true', 'false', 'null'].includes(name));
}

/**
 * Since Kubernetes 1.37 a part of the object in a patch value cannot be written as JSON. The policy then fails, and with the failure
 * policy Ignore it does nothing, without a sign.
 */
describe('the values of patches in a MutatingAdmissionPolicy', () => {
  const rows: readonly (readonly [expression: string, names: readonly string[]])[] = [
    ['[JSONPatch{op: "add", path: "/x", value: []}]', []],
    ['[JSONPatch{op: "remove", path: "/x"}]', []],
    ["[JSONPatch{op: 'add', path: '/x', value: {'a': string(t.?key.orValue('object')), 'b': int(object.n) + 1}}]", []],
    ['[JSONPatch{op: "add", path: "/x", value: {"a": dyn("b"), "c": dyn(variables.list.map(a, string(a)))}}]', []],
    [
      '[JSONPatch{op: "add", path: "/x", value: dyn(object.list.map(a, a))}]',
      ['dyn', 'object', 'list', 'map', 'a', 'a'],
    ],
    ['[JSONPatch{op: "add", path: "/x", value: object.spec.list}]', ['object', 'spec', 'list']],
    ['[JSONPatch{op: "add", path: "/x", value: {"a": variables.lost}}]', ['variables', 'lost']],
    ['[JSONPatch{op: "add", path: "/x", value: dyn(object.a).?b.orValue([])}]', ['dyn', 'object', 'a', 'b', 'orValue']],
    ['variables.lost.map(t, JSONPatch{op: "add", path: "/x/-", value: t})', ['t']],
  ];
  for (const [expression, names] of rows) {
    it(`are ${names.length === 0 ? 'made only of literals' : 'made of more'} in ${expression}`, () => {
      expect(patchValues(expression).flatMap(unconverted)).to.deep.equal(names);
    });
  }

  for (const [file, policy] of POLICIES) {
    it(`contain no part of the object in ${file}`, () => {
      for (const mutation of objects(at(policy, 'spec', 'mutations'))) {
        expect(mutation.patchType).to.equal('JSONPatch');
        const values = patchValues(text(at(mutation, 'jsonPatch', 'expression')));
        expect(values).not.to.deep.equal([]);
        expect(values.flatMap(unconverted)).to.deep.equal([]);
      }
    });
  }

  it('were found in the sources, in the chart and in the single manifest', () => {
    expect(POLICIES.map(([file]) => file)).to.have.members([
      ...['archaware-controller.yaml', 'archaware-controller.yaml', 'publish.yaml', 'publish.yaml'],
      ...['policy', 'daemonsets'].map((name) => `kustomize/components/publish/${name}.yaml`),
      ...['keep', 'keep-pods', 'place', 'place-daemonsets'].map(
        (name) => `helm/archaware-controller/files/policies/${name}.yaml`,
      ),
      ...['policy', 'pods'].map((name) => `kustomize/components/keep/${name}.yaml`),
    ]);
  });
});
