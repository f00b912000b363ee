import { expect } from 'chai';
import { createImageSource, NEVER } from '../../src/controllers/image-source.ts';
import { ImageError } from '../../src/oci/errors.ts';
import type { Look } from '../../src/oci/resolver.ts';
import { secretProblems } from '../../src/placement/object-problems.ts';

describe('the pull secrets of a pod', () => {
  const names = (count: number) => Array.from({ length: count }, (_, index) => `s${index}`);

  it('are passed to a lookup up to the limit', () => {
    const given: number[] = [];
    const images = createImageSource({
      look(_image, { pullSecrets }) {
        given.push(pullSecrets.length);
        return { kind: 'pending', isPlanned: true };
      },
    });
    for (const count of [0, 32, 33]) images.answer({ image: 'nginx', pullPolicy: '' }, 'default', names(count));
    expect(given).to.deep.equal([0, 32, 32]);
  });

  it('that cannot be used cause one Event, however many they are', () => {
    const images = createImageSource({ look: () => ({ kind: 'pending', isPlanned: true }) }, (_namespace, name) =>
      name === 's0' ? undefined : 'it does not exist',
    );
    const note = (count: number): string[] =>
      secretProblems(images.unusableSecrets('default', names(count))).map((problem) => problem.note);
    expect(note(1)).to.deep.equal([]);
    expect(note(2)).to.deep.equal(['pull secret s1 cannot be used: it does not exist']);
    expect(note(3)).to.deep.equal(['pull secrets cannot be used: s1 (it does not exist), s2 (it does not exist)']);
    expect(note(33)).to.deep.equal([
      'pull secrets cannot be used: s32 and all after it (only the first 32 are read), s1 (it does not exist), s2 (it does not exist) and 29 more',
    ]);
  });
});

describe('the image source', () => {
  const POD_IMAGE = { image: 'nginx', pullPolicy: '' };
  const answerTo = (look: Look, image = 'nginx') =>
    createImageSource({ look: () => look }).answer({ image, pullPolicy: '' }, 'default', []);

  it('passes on whether a lookup may start', () => {
    const given: (boolean | undefined)[] = [];
    const images = createImageSource({
      look(_image, _access, mayStart) {
        given.push(mayStart?.());
        return { kind: 'pending', isPlanned: true };
      },
    });
    images.answer(POD_IMAGE, 'default', []);
    images.answer(POD_IMAGE, 'default', [], NEVER);
    images.answer(POD_IMAGE, 'default', [], () => true);
    expect(given).to.deep.equal([undefined, false, true]);
  });

  it('answers with what is known, and says that it has expired', () => {
    const known: Look = { kind: 'known', platforms: [{ os: 'linux', architecture: 'amd64' }], isIndex: false };
    expect(answerTo(known)).to.equal(known);
    expect(answerTo({ ...known, isStale: true })).to.deep.equal({ ...known, isStale: true });
  });

  const error = (endpoint?: string) => new ImageError('gone', { code: 'unavailable', temporary: true, endpoint });
  const failed = (more: Partial<Extract<Look, { kind: 'failed' }>>): Look => ({
    ...{ kind: 'failed', error: error(), isPlanned: true, sinceMs: 9, retryInMs: 1_000, ...more },
  });

  it('says when to ask again for an image that no lookup is planned for, because too many wait', () => {
    expect(answerTo({ kind: 'pending', isPlanned: true })).to.deep.equal({ kind: 'pending' });
    expect(answerTo({ kind: 'pending', isPlanned: false })).to.deep.equal({ kind: 'pending', retryInMs: 10_000 });
    expect(answerTo(failed({}))).to.include({ sinceMs: 9, retryInMs: 1_000 });
    const due = { retryInMs: Number.POSITIVE_INFINITY };
    expect(answerTo(failed(due))).to.include(due);
    expect(answerTo(failed({ ...due, isPlanned: false }))).to.include({ retryInMs: 10_000 });
  });

  const registries: [what: string, image: string, endpoint: string | undefined, registry: string][] = [
    ['that of the image', 'quay.io/team/app', undefined, 'quay.io'],
    ["Docker Hub's", 'nginx', undefined, 'docker.io'],
    ['the mirror that failed', 'quay.io/team/app', 'mirror.example.com', 'mirror.example.com'],
    ['none, of a malformed image', 'a b', undefined, ''],
  ];
  for (const [what, image, endpoint, registry] of registries)
    it(`names the registry of a failure: ${what}`, () =>
      expect(answerTo(failed({ error: error(endpoint) }), image)).to.include({ registry }));
});
