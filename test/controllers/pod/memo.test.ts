import { expect } from 'chai';
import { createDecisionMemo } from '../../../src/controllers/pod/memo.ts';
import type { Placement } from '../../../src/placement/decide.ts';
import { readPod } from '../../../src/placement/objects/pod.ts';
import { settings } from '../../placement/objects.ts';

const pod = (name: string, spec: object = {}, annotations: object = {}, namespace = 'shop') =>
  readPod({
    metadata: { name, namespace, uid: name, annotations },
    spec: { containers: [{ image: 'web:1' }], ...spec },
  });

describe('the memory of decisions about equal pods', () => {
  const cluster = ['amd64', 'arm64'];
  const placed: Placement = {
    kind: 'place',
    architectures: ['arm64'],
    basis: 'images',
    followsCluster: false,
    os: undefined,
    failed: [],
    unknown: [],
    images: [],
  };
  const first = pod('first');
  const now = settings({});
  let time = 0;
  const memo = createDecisionMemo({ monotonic: () => time });

  beforeEach(() => {
    memo.clear();
    time = 0;
    memo.keep(first, now, cluster, placed);
  });

  it('gives the decision to another pod of the same template', () => {
    expect(memo.find(pod('second'), now, cluster)).to.equal(placed);
  });

  it('keeps it for less than a second', () => {
    time = 999;
    expect(memo.find(first, now, cluster)).to.equal(placed);
    time = 1_000;
    expect(memo.find(first, now, cluster)).to.equal(undefined);
  });

  it('forgets it when it is told that something has changed', () => {
    memo.clear();
    expect(memo.find(first, now, cluster)).to.equal(undefined);
  });

  for (const [what, other] of [
    ['other images', pod('p', { containers: [{ image: 'web:2' }] })],
    ['another pull policy', pod('p', { containers: [{ image: 'web:1', imagePullPolicy: 'Always' }] })],
    ['other pull secrets', pod('p', { imagePullSecrets: [{ name: 'key' }] })],
    ['another OS', pod('p', { os: { name: 'windows' } })],
    ['a RuntimeClass', pod('p', { runtimeClassName: 'wasm' })],
    ['a statement', pod('p', {}, { 'archaware.dev/architectures': 'amd64' })],
    ['another namespace', pod('p', {}, {}, 'bank')],
  ] as const) {
    it(`gives nothing to a pod with ${what}`, () => {
      expect(memo.find(other, now, cluster)).to.equal(undefined);
    });
  }

  it('gives nothing under other settings, or in another cluster', () => {
    expect(memo.find(first, settings({}), cluster)).to.equal(undefined);
    expect(memo.find(first, now, ['amd64', 'arm64'])).to.equal(undefined);
  });

  it('keeps no decision that did without an image', () => {
    memo.clear();
    memo.keep(first, now, cluster, { ...placed, unknown: ['web:1'] });
    memo.keep(first, now, cluster, { ...placed, basis: 'open' });
    expect(memo.find(first, now, cluster)).to.equal(undefined);
  });
});
