import { expect } from 'chai';
import { explainPlacement } from '../../src/analysis/explain/explain.ts';
import type { LookupResult } from '../../src/analysis/lookup-results.ts';
import { describeExplanation } from '../../src/cli/explain/explanation-text.ts';
import { createPaint } from '../../src/cli/paint.ts';
import type { ImageAnswer } from '../../src/placement/images.ts';
import { readWorkload } from '../../src/placement/objects/workload.ts';
import { decideCase, input, known, settings, template } from './objects.ts';

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
      const decision = decideCase(input(answers, { template: template(Object.keys(answers)) }));
      expect(decision.kind === 'place' && decision.architectures.join()).to.equal(expected);
    });
  }

  it('limits the nodes as before by an override, which is the word of an operator', () => {
    const overridden = {
      template: template(['b']),
      settings: { overrides: [{ pattern: 'b', architectures: ['arm64'] }] },
    };
    const decision = decideCase(input({ b: BUNDLE }, overridden));
    expect(decision.kind === 'place' && decision.architectures).to.deep.equal(['arm64']);
  });

  it('is explained', () => {
    const pod = { kind: 'Pod', metadata: { name: 'unpack' }, spec: { containers: [{ image: 'b' }] } };
    const workload = readWorkload(pod);
    if (workload === undefined) throw new Error('no pod');
    const found: LookupResult = {
      platforms: [{ os: 'linux', architecture: 'amd64' }],
      skipped: [],
      isIndex: false,
      isBundle: true,
    };
    const explanation = explainPlacement(
      {
        workload,
        applied: false,
        namespace: { name: 'operators', labels: {}, preferred: undefined },
        settings: settings(),
        nodes: [],
        namesOf: (image) => [image],
      },
      { lookupOf: () => found, pullSecrets: [], sourceOf: (key) => ({ value: key, source: 'default' }) },
    );
    expect(explanation.images[0]).to.include({ anywhere: 'bundle' });
    expect(explanation.images[0]).not.to.have.property('isBundle');
    const form = { columns: undefined, isVerbose: false, paint: createPaint({ columns: undefined, colors: false }) };
    expect(describeExplanation(explanation, form)).to.include(
      'b: linux/amd64; a bundle of the Operator Lifecycle Manager by its labels, which has only files: it sets no limit',
    );
  });
});
