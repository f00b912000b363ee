import { expect } from 'chai';
import { keptDecision } from '../../src/controllers/kept-decision.ts';
import type { Decision } from '../../src/placement/decide.ts';

const long = (at: number) => `r.example.com/${'x'.repeat(700)}${at}`;
const many = Array.from({ length: 256 }, (_, at) => long(at));
const failed = many.map((image) => ({
  image,
  code: 'unavailable',
  message: 'y'.repeat(900),
  registry: 'r.example.com',
}));
const sets = many.map((image) => ({ image, platforms: Array.from({ length: 40 }, (_, at) => `linux/arch${at}`) }));
const place = {
  kind: 'place',
  architectures: ['amd64'],
  basis: 'open',
  followsCluster: true,
  os: undefined,
  failed: [],
  unknown: [],
  images: [],
} as const;

describe('what is kept of a decision', () => {
  const rows: [name: string, decision: Decision][] = [
    ['that waits for 256 images', { kind: 'wait', images: many, failed, againInMs: 5, givesUpInMs: undefined }],
    ['without 256 images', { ...place, failed, unknown: many }],
    ['that released a pod of 256 images', { ...place, images: sets }],
    ['that holds a pod of 256 images', { kind: 'hold', reason: 'no-common-architecture', images: sets }],
  ];
  for (const [name, decision] of rows) {
    it(`${name} takes a few KB, and says the same in short`, () => {
      const kept = keptDecision(decision);
      expect(JSON.stringify(kept).length).to.be.below(8_000);
      expect(kept.kind).to.equal(decision.kind);
      if (kept.kind === 'place') expect(kept).to.deep.include({ architectures: ['amd64'], followsCluster: true });
      if (decision.kind === 'place' && kept.kind === 'place') {
        expect(kept.unknown.length > 0).to.equal(decision.unknown.length > 0);
      }
      if (kept.kind === 'wait') expect(kept.images).to.have.length(8);
    });
  }

  it('is all of an ordinary one, but for the time to wait', () => {
    const [first] = failed;
    const decision: Decision = { ...place, unknown: ['app'], failed: first ? [{ ...first, image: 'app' }] : [] };
    expect(keptDecision(decision)).to.equal(decision);
    expect(
      keptDecision({ kind: 'wait', images: ['app'], failed: [], againInMs: 5, givesUpInMs: undefined }),
    ).to.deep.equal({
      kind: 'wait',
      images: ['app'],
      failed: [],
      againInMs: undefined,
      givesUpInMs: undefined,
    });
  });
});
