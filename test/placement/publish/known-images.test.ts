import { expect } from 'chai';
import { parseSelector } from '../../../src/kit/label-syntax.ts';
import type { Narrowing } from '../../../src/placement/images.ts';
import {
  answerFor,
  changedFields,
  knownImages,
  readAnswers,
  unpublished,
  whyNothingIsPublished,
} from '../../../src/placement/publish/known-images.ts';
import type { Settings } from '../../../src/placement/settings.ts';
import { policyOf, settings } from '../objects.ts';

const set = (more: Partial<Extract<Narrowing, { kind: 'set' }>> = {}): Narrowing => ({
  ...{
    kind: 'set',
    by: 'registry',
    architectures: ['amd64', 'arm64'],
    isIndex: true,
    platforms: ['linux/amd64', 'linux/arm64'],
  },
  ...more,
});
const SELECTS = { namespaceSelector: [], podSelector: [] };
const failed = { kind: 'failed', code: 'timeout', message: '', registry: '', sinceMs: 0, retryInMs: 0 } as const;

describe('what is published of an image', () => {
  const rows: [what: string, said: Narrowing, text: string | undefined][] = [
    ['an index', set(), 'amd64,arm64'],
    ['a single manifest', set({ isIndex: false, architectures: ['amd64'], platforms: ['linux/amd64'] }), '=amd64'],
    ['one of images.overrides', set({ by: 'override', architectures: ['arm64'] }), '!arm64'],
    ['one of several operating systems', set({ platforms: ['linux/amd64', 'windows/amd64'] }), undefined],
    ['one for no architecture', set({ architectures: [] }), undefined],
    ['WebAssembly', { kind: 'anywhere', as: 'webassembly' }, undefined],
    ['one that is not known yet', { kind: 'pending' }, undefined],
    ['one that failed', failed, undefined],
  ];
  for (const [what, said, text] of rows) {
    it(`${what}: ${text ?? 'nothing'}`, () => {
      const answer = answerFor(said);
      expect('text' in answer ? answer.text : undefined).to.equal(text);
    });
  }

  it('is said to be missing with the reason, unless it is never pulled', () => {
    const images = [
      { image: { image: 'a', pullPolicy: '' }, said: set() },
      { image: { image: 'b', pullPolicy: '' }, said: failed },
      { image: { image: 'c', pullPolicy: '' }, said: set() },
      { image: { image: 'd', pullPolicy: 'Never' }, said: { kind: 'not-asked' } as const },
    ];
    expect(unpublished(images, new Map([['a', 'amd64,arm64']]))).to.deep.equal([
      { image: 'b', why: 'its platforms are not known' },
      { image: 'c', why: 'no pod used it while a replica led' },
    ]);
  });
});

describe('the object known', () => {
  const answers = new Map([
    ['r.test/b:1', 'amd64'],
    ['r.test/a:1', '=arm64'],
    ['r.test/c:1', '=arm64'],
    ['nginx', '!386,amd64'],
  ]);

  it('has the images by the path before the last slash and by their answer, and can be read back', () => {
    const object = knownImages(answers, settings(), []);
    const others = { taint: 'supported-arch:NoSchedule', schedulable: [], excluded: '^$', daemonSets: false, count: 4 };
    expect(object).to.deep.include(others);
    expect(object.images).to.deep.equal({ '/r.test/': '/=arm64 a:1 c:1 /amd64 b:1 ', '/': '/!386,amd64 nginx ' });
    expect(readAnswers(object)).to.deep.equal(answers);
  });

  it('keeps each part short, whatever names somebody chooses', () => {
    const names = Array.from(
      { length: 2_000 },
      (_, index) => `r.test/${'x'.repeat(200)}/${'y'.repeat(200)}${10_000 + index}:1`,
    );
    const { images, count } = knownImages(new Map(names.map((name) => [name, 'amd64'])), settings(), []);
    expect(Object.values(images).map((text) => text.length <= 64 * 1024)).to.deep.equal([true]);
    expect(count).to.be.within(200, 400);
  });

  it('is short as a whole, and names that somebody makes long take no room from short ones', () => {
    const long = Array.from({ length: 2_000 }, (_, index) => `r.test/${'x'.repeat(200)}${10_000 + index}/a:1`);
    const names = new Map([...long, 'r.test/z/nginx:1'].map((name) => [name, 'amd64']));
    const object = knownImages(names, settings(), []);
    expect(JSON.stringify(object.images).length).to.be.within(100_000, 140_000);
    expect(object.images['/r.test/z/']).to.equal('/amd64 nginx:1 ');
    const last = { image: { image: long.at(-1) ?? '', pullPolicy: '' }, said: set() };
    expect(unpublished([last], readAnswers(object))[0]?.why).to.equal('no room: shorter names come first');
  });

  it('leaves out what has another form when it is read', () => {
    const images = {
      '/r.test/': '/gpu a:1 / b:1 /amd64,x c:1 /amd64 d:1 ',
      '/b/': 7,
      '/c/': 'x'.repeat(3 * 1024 * 1024),
    };
    expect([...readAnswers({ images })]).to.deep.equal([['r.test/d:1', 'amd64']]);
    expect([...readAnswers({})]).to.deep.equal([]);
  });

  it('names the namespaces to leave alone by one expression, and all of them where it would be too long', () => {
    const excluded = (globs: readonly string[], alone: readonly string[] = []) =>
      new RegExp(knownImages(answers, settings({ excludeNamespaces: globs }), alone).excluded);
    const some = excluded(['kube-*', 'a.b', 'team-?'], ['shop']);
    for (const name of ['kube-system', 'kube-', 'team-x', 'shop', 'a.b']) expect(some.test(name), name).to.equal(true);
    for (const name of ['kube', 'xkube-a', 'team-', 'team-xy', 'shop2', 'axb', ''])
      expect(some.test(name), name).to.equal(false);
    expect(excluded([]).test('shop')).to.equal(false);
    expect(
      excluded(
        [],
        Array.from({ length: 2000 }, (_, index) => `namespace-of-a-tenant-${index}`),
      ).test('any'),
    ).to.equal(true);
  });

  it('is changed by what differs alone', () => {
    const before = { ...knownImages(answers, settings(), []), metadata: { name: 'known' }, written: 'then' };
    expect(changedFields(before, knownImages(answers, settings(), []))).to.deep.equal({});
    const after = knownImages(new Map([['r.test/a:1', 'amd64']]), settings({ schedulable: ['amd64'] }), []);
    expect(changedFields(before, after)).to.deep.equal({
      ...{ schedulable: ['amd64'], count: 1 },
      images: { '/r.test/': '/amd64 a:1 ', '/': null },
    });
    expect(changedFields({}, after)).to.deep.equal(after);
  });

  it('is not published where the policy could not decide as the controller does', () => {
    const own = policyOf('edge', { schedulable: ['arm64'] });
    const why = (given: Parameters<typeof settings>[0], loops = ['pods']) =>
      whyNothingIsPublished(settings(given), loops);
    expect(why({})).to.equal(undefined);
    expect(why({ mode: 'both' })).to.equal(undefined);
    expect(why({ mode: 'affinity' })).to.equal('placement.mode is affinity');
    expect(why({}, ['nodes'])).to.equal('loops does not have pods');
    expect(why({ namespaceSelector: [{ key: 'a', operator: 'exists', values: [] }] })).to.equal(
      'pods.namespaceSelector is set',
    );
    expect(why({ policies: [own] })).to.equal('the policy edge has architectures of its own (schedulable)');
  });
});

/** A change of a setting that shows in the object or stops it, or why it needs to do neither. */
const SETTINGS: Readonly<Record<keyof Settings, Partial<Settings> | string>> = {
  mode: { mode: 'affinity' },
  taints: { taints: { ...settings().taints, key: 'example.com/arch' } },
  schedulable: { schedulable: ['arm64'] },
  excludeNamespaces: { excludeNamespaces: ['team-*'] },
  namespaceSelector: { namespaceSelector: parseSelector('team') },
  policies: {
    policies: [{ ...{ name: 'p', namespaces: undefined }, ...SELECTS, settings: settings({ schedulable: ['arm64'] }) }],
  },
  policy: 'the name of a policy',
  overrides: 'in the answer of each image',
  compatible: 'in the answer of each image',
  daemonSets: 'the publisher passes it on, with the loops that run',
  noCommonArchitecture: 'the policy leaves pods without one to the controller',
  unresolvable: 'the policy leaves unknown images to the controller',
  fallback: 'the policy leaves unknown images to the controller',
  fallbackAfterMs: 'the policy leaves unknown images to the controller',
  systemNamespaces: 'the policy leaves unknown images to the controller',
  refused: 'the webhook and the controller withdraw what they add',
  preferred: 'for affinity, which the policy does not write',
  matchNodeLabels: 'for affinity, which the policy does not write',
  onWrongNode: 'after the placement',
};

describe('a setting that decides where pods run, published or not:', () => {
  const shown = (given: Partial<Settings>) => {
    const all = settings(given);
    return [knownImages(new Map(), all, []), whyNothingIsPublished(all, ['pods'])];
  };
  for (const [name, change] of Object.entries(SETTINGS)) {
    it(`${name}: ${typeof change === 'string' ? change : 'is known to the policy'}`, () => {
      if (typeof change !== 'string') expect(shown(change)).not.to.deep.equal(shown({}));
    });
  }
});
