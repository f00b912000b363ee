import { expect } from 'chai';
import { describeExplanation } from '../../src/cli/explain/explanation-text.ts';
import { createPaint } from '../../src/cli/paint.ts';
import type { ImageAnswer } from '../../src/placement/images.ts';
import { explained } from '../analysis/explain/explained.ts';
import { decideCase, input, known } from './objects.ts';

/** One manifest, built on the machine of whoever packed the bundle. */
const BUNDLE = { ...known('linux/amd64'), isIndex: false, isBundle: true } as ImageAnswer;
const BOTH = known('linux/amd64,linux/arm64');

describe('an image that is a bundle of the Operator Lifecycle Manager', () => {
  const rows: readonly [given: string, answers: Readonly<Record<string, ImageAnswer>>, expected: string][] = [
    [
      'beside programs for two architectures, as in the Job of OLM',
      { util: BOTH, opm: BOTH, b: BUNDLE },
      'amd64,arm64',
    ],
    ['beside a program for arm64', { util: known('linux/arm64'), b: BUNDLE }, 'arm64'],
    ['alone', { b: BUNDLE }, 'amd64,arm64'],
    ['alone, though stale', { b: { ...BUNDLE, isStale: true } as ImageAnswer }, 'amd64,arm64'],
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
