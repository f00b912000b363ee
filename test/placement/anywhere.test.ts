import { expect } from 'chai';
import type { LookupResult } from '../../src/analysis/lookup-results.ts';
import { describeExplanation } from '../../src/cli/explain/explanation-text.ts';
import { createPaint } from '../../src/cli/paint.ts';
import type { JsonObject } from '../../src/kit/json.ts';
import { normaliseArchitecture } from '../../src/kit/platform.ts';
import type { Decision } from '../../src/placement/decide.ts';
import type { ImageAnswer } from '../../src/placement/images.ts';
import { decisionNote } from '../../src/placement/reasons.ts';
import type { Settings } from '../../src/placement/settings.ts';
import { BOTH as BOTH_BY_NAME, explained } from '../analysis/explain/explained.ts';
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

  it('may be named wasm32, as by early versions of Docker', () =>
    expect(normaliseArchitecture('wasm32')).to.equal('wasm'));
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

/** One manifest, built on the machine that packed the bundle. */
const BUNDLE = { ...known('linux/amd64'), isIndex: false, isBundle: true } as ImageAnswer;
const BOTH = known('linux/amd64,linux/arm64');

describe('an image that is a bundle of the Operator Lifecycle Manager', () => {
  const rows: readonly [given: string, answers: Readonly<Record<string, ImageAnswer>>, expected: string][] = [
    ['beside programs for two architectures, as in OLM', { util: BOTH, opm: BOTH, b: BUNDLE }, 'amd64,arm64'],
    ['beside a program for arm64', { util: known('linux/arm64'), b: BUNDLE }, 'arm64'],
    ['alone', { b: BUNDLE }, 'amd64,arm64'],
    // Container runtimes refuse an index that lacks the platform of the node, whatever is in it.
    ['that is an index, which no config is read of', { util: BOTH, b: known('linux/amd64') }, 'amd64'],
  ];
  for (const [given, answers, expected] of rows) {
    it(`${given}: ${expected}`, () => {
      const decision = decideCase(input(answers));
      expect(decision.kind === 'place' && decision.architectures.join()).to.equal(expected);
    });
  }

  it('limits the nodes as before by an override, which is the word of an operator', () => {
    const settings = { overrides: [{ pattern: 'b', architectures: ['arm64'] }] };
    expect(decideCase(input({ b: BUNDLE }, { settings }))).to.have.deep.property('architectures', ['arm64']);
  });

  it('is explained', () => {
    const platforms = [{ os: 'linux', architecture: 'amd64' }];
    const explanation = explained({ images: { b: { platforms, skipped: [], isIndex: false, isBundle: true } } });
    expect(explanation.images[0]).to.include({ anywhere: 'bundle' });
    expect(explanation.images[0]).not.to.have.property('isBundle');
    const form = { columns: undefined, isVerbose: false, paint: createPaint({ columns: undefined, colors: false }) };
    expect(describeExplanation(explanation, form)).to.include(
      'b: linux/amd64; a bundle of the Operator Lifecycle Manager by its labels, which has only files: it sets no limit',
    );
  });
});

const volume = (reference: unknown, more: JsonObject = {}, name = 'data') => ({ name, image: { reference, ...more } });
const V = { image: 'v', pullPolicy: '', volume: 'data' };

describe('the images of volumes', () => {
  const rows: readonly [given: string, volumes: unknown, expected: unknown][] = [
    ['are read after those of containers', [volume('v')], [V]],
    ['have a pull policy', [volume('v', { pullPolicy: 'Always' })], [{ ...V, pullPolicy: 'Always' }]],
    ['may be empty in a template', [volume(''), volume(undefined)], []],
    ['are of image volumes alone', [{ name: 'a', emptyDir: {} }, { name: 'b', image: 'x' }, 5], []],
    ['count once', [volume('v'), volume('v', {}, 'other')], [V]],
    ['add nothing to the same image of a container', [volume('a')], []],
    ['may have no name', [{ image: { reference: 'v' } }], [{ ...V, volume: '' }]],
    ['have a name that is cut if too long', [volume('v', {}, 'n'.repeat(100))], [{ ...V, volume: 'n'.repeat(63) }]],
    ['are no list', 'v', []],
  ];
  for (const [given, volumes, expected] of rows)
    it(given, () => expect(template(['a'], { volumes }).images.slice(1)).to.deep.equal(expected));
});

describe('an explanation of image volumes', () => {
  const platforms = [{ os: 'linux', architecture: 'arm64' }];
  const denied = { error: { code: 'unsupported', message: 'an artifact', registry: 'r' } };
  const rows: readonly [given: string, v: LookupResult, expected: object, by: readonly string[]][] = [
    ['an index', { platforms, skipped: [], isIndex: true }, { platforms }, ['a', 'volume data: v']],
    ['a single manifest', { platforms, skipped: [], isIndex: false }, { platforms, anywhere: 'volume' }, ['a']],
    ['an artifact', { ...denied, isSingleManifest: true }, { platforms: [], anywhere: 'volume' }, ['a']],
    ['a failure', denied, { platforms: [], ...denied }, ['a']],
  ];
  for (const [given, v, expected, by] of rows) {
    it(`says of ${given} what it is and whether it narrows`, () => {
      const spec = { containers: [{ name: 'app', image: 'a' }], volumes: [volume('v')] };
      const { images, intersection } = explained({ images: { a: BOTH_BY_NAME, v }, spec });
      expect(images[1]).to.deep.equal({ image: 'v', volume: 'data', skipped: [], ...expected });
      expect(intersection.map((step) => step.by)).to.deep.equal(by);
    });
  }
});
