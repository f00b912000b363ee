import { expect } from 'chai';
import type { JsonObject } from '../../src/kit/json.ts';
import { normaliseArchitecture } from '../../src/kit/platform.ts';
import type { Decision } from '../../src/placement/decide.ts';
import type { ImageAnswer } from '../../src/placement/images.ts';
import { decisionNote } from '../../src/placement/reasons.ts';
import type { Settings } from '../../src/placement/settings.ts';
import { explained } from '../analysis/explain/explained.ts';
import { decideCase, input, known, template } from './objects.ts';

const WASM = known('wasi/wasm');
const PLACED = 'place amd64,arm64 (cluster, follows)';
const CLASS = { runtimeClassName: 'wasmtime' };
const NONE = 'hold: no architecture for linux is common to all images';
const HELD = `${NONE}: WebAssembly without a RuntimeClass (set spec.runtimeClassName)`;

function told(decision: Decision): string {
  if (decision.kind !== 'place') return `${decision.kind}: ${decisionNote(decision, 'linux', [])}`;
  return `place ${decision.architectures.join()} (${decision.basis}${decision.followsCluster ? ', follows' : ''})`;
}

type Row = readonly [
  given: string,
  answers: Readonly<Record<string, ImageAnswer>>,
  spec: JsonObject,
  expected: string,
  more?: Partial<Settings>,
];

describe('an image that is WebAssembly', () => {
  const rows: readonly Row[] = [
    ['in a pod with a RuntimeClass', { a: WASM }, CLASS, PLACED],
    ['beside a container for arm64', { a: WASM, b: known('linux/arm64') }, CLASS, 'place arm64 (images)'],
    ['for wasip1', { a: known('wasip1/wasm') }, CLASS, PLACED],
    ['for linux', { a: known('linux/wasm') }, CLASS, PLACED],
    ['under what is schedulable', { a: WASM }, CLASS, 'place amd64 (cluster, follows)', { schedulable: ['amd64'] }],
    ['without a RuntimeClass', { a: WASM }, {}, `${HELD}: a; a (wasi/wasm)`],
    ['with an empty one', { a: WASM }, { runtimeClassName: '' }, `${HELD}: a; a (wasi/wasm)`],
    ['in one of two images', { a: known('linux/amd64'), b: WASM }, {}, `${HELD}: b; a (linux/amd64); b (wasi/wasm)`],
    ['released', { a: WASM }, {}, 'place amd64,arm64 (released, follows)', { noCommonArchitecture: 'release' }],
    ['by an override', { a: WASM }, CLASS, PLACED, { overrides: [{ pattern: 'a', architectures: ['wasm'] }] }],
    // The entries of an index for the pod's OS decide.
    ['and linux in one index', { a: known('wasi/wasm,linux/amd64') }, {}, 'place amd64 (images)'],
    ['the same, with a RuntimeClass', { a: known('wasi/wasm,linux/amd64') }, CLASS, 'place amd64 (images)'],
    ['and windows in one', { a: known('wasi/wasm,windows/amd64') }, CLASS, `${NONE}: a (wasi/wasm, windows/amd64)`],
    // The runtime of the RuntimeClass runs containers; a volume is mounted.
    [
      'in a volume',
      { a: known('linux/amd64'), v: { ...WASM, isIndex: true } as ImageAnswer },
      { ...CLASS, volumes: [{ name: 'data', image: { reference: 'v' } }] },
      'hold: no architecture for linux is common to all images: a (linux/amd64); volume data: v (wasi/wasm)',
    ],
    ['of no platform at all', { a: known('') }, CLASS, `${NONE}: a (none)`],
  ];
  for (const [given, answers, spec, expected, more = {}] of rows) {
    it(`${given}: ${expected}`, () => {
      const containers = Object.keys(answers).filter((name) => name !== 'v');
      const given = { template: template(containers, spec), settings: more };
      expect(told(decideCase(input(answers, given)))).to.equal(expected);
    });
  }

  it('names at most a few images', () => {
    const answers = Object.fromEntries([1, 2, 3, 4, 5].map((count) => [`w${count}`, WASM]));
    expect(told(decideCase(input(answers)))).to.include(': w1, w2, w3 and 2 more; w1 (wasi/wasm)');
  });

  it('may be named wasm32, as by early versions of Docker', () => {
    expect(normaliseArchitecture('wasm32')).to.equal('wasm');
  });
});

describe('an explanation of WebAssembly', () => {
  const of = (spec: JsonObject) =>
    explained({ images: { a: 'wasi/wasm' }, nodes: [], spec: { containers: [{ image: 'a' }], ...spec } });

  it('says that the image runs anywhere if the pod has a RuntimeClass', () => {
    const { images, decision, advice } = of(CLASS);
    expect(images[0]).to.deep.include({ anywhere: 'webassembly', platforms: [{ os: 'wasi', architecture: 'wasm' }] });
    expect(decision.kind).to.equal('place');
    expect(advice.join()).not.to.include('runtimeClassName');
  });

  it('advises a RuntimeClass if the pod has none', () => {
    const { images, decision, advice } = of({});
    expect(images[0]).not.to.have.property('anywhere');
    expect(decision.kind).to.equal('hold');
    expect(advice[0]).to.equal('set runtimeClassName to a RuntimeClass that runs WebAssembly (a)');
  });
});
