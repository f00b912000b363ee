import { expect } from 'chai';
import { decide } from '../../src/placement/decide.ts';
import { known, settings, template } from '../placement/objects.ts';

// archaware-controller (2022) intersected each image only with the first one, and so put pods on nodes that cannot run
// the third.
describe('the set of a pod with three images is what all three have in common', () => {
  const platforms: Readonly<Record<string, string>> = {
    wide: 'linux/amd64,linux/arm64,linux/s390x',
    middle: 'linux/arm64,linux/s390x',
    narrow: 'linux/amd64,linux/s390x',
    alone: 'linux/amd64',
  };
  const decided = (images: readonly string[]) =>
    decide({
      template: template(images),
      namespace: 'default',
      settings: settings({ compatible: {} }),
      clusterArchitectures: ['amd64', 'arm64', 's390x'],
      namesOf: (image) => [image],
      answerOf: ({ image }) => known(platforms[image] ?? ''),
      waitedMs: 0,
    });

  const orders = [
    ['wide', 'middle', 'narrow'],
    ['middle', 'wide', 'narrow'],
    ['narrow', 'middle', 'wide'],
    ['wide', 'wide', 'middle', 'narrow'],
  ];
  for (const images of orders) {
    it(`is s390x for ${images.join(', ')}`, () => {
      expect(decided(images)).to.deep.include({ kind: 'place', architectures: ['s390x'] });
    });
  }

  it('is empty, and the pod held, if two of three have nothing in common', () => {
    expect(decided(['wide', 'middle', 'alone']).kind).to.equal('hold');
  });
});
