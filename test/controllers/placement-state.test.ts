import { expect } from 'chai';
import { imagesAwaited } from '../../src/controllers/placement-state.ts';
import { readPod } from '../../src/placement/objects/pod.ts';
import { decideCase, input } from '../placement/objects.ts';

describe('the images that an object waits for', () => {
  it('are all that are looked up, even if the first one beyond the limit is one of them with another pull policy', () => {
    const containers = [
      ...Array.from({ length: 256 }, (_, index) => ({ image: `i${index}`, imagePullPolicy: 'IfNotPresent' })),
      { image: 'i7', imagePullPolicy: 'Always' },
    ];
    const template = readPod({ metadata: { name: 'p', namespace: 'shop' }, spec: { containers } });
    const decision = decideCase({ ...input({}), template, answerOf: () => ({ kind: 'pending' }) });
    expect(imagesAwaited(decision)).to.deep.equal(containers.slice(0, 256).map(({ image }) => image));
  });
});
