import { expect } from 'chai';
import type { ImageAnswer } from '../../../src/placement/images.ts';
import { narrow } from '../../../src/placement/images.ts';
import type { Settings } from '../../../src/placement/settings.ts';
import { decideCase, input, known, subjectOf, template } from '../objects.ts';

const lying = (platforms: string, ...lies: readonly string[]): ImageAnswer => ({
  ...(known(platforms) as Extract<ImageAnswer, { kind: 'known' }>),
  lies,
});
const [BOTH, AMD, ARM] = ['linux/amd64,linux/arm64', 'linux/amd64', 'linux/arm64'];

type Row = readonly [
  what: string,
  images: Readonly<Record<string, ImageAnswer>>,
  given: { settings?: Partial<Settings>; cluster?: readonly string[]; asked?: readonly string[] },
  expected: readonly string[],
];

describe('an image whose index has a platform that the image does not run on', () => {
  const rows: readonly Row[] = [
    ['loses this architecture', { a: lying(BOTH, 'linux/arm64') }, {}, ['amd64']],
    [
      'loses nothing if the key only reports',
      { a: lying(BOTH, 'linux/arm64') },
      { settings: { lies: 'report' } },
      ['amd64', 'arm64'],
    ],
    [
      'loses nothing if every architecture was shown: the architecture is not what is wrong',
      { a: lying(BOTH, 'linux/amd64', 'linux/arm64') },
      {},
      ['amd64', 'arm64'],
    ],
    ['loses nothing for another OS', { a: lying(BOTH, 'windows/arm64') }, {}, ['amd64', 'arm64']],
    ['loses nothing that it does not claim', { a: lying(BOTH, 'linux/s390x') }, {}, ['amd64', 'arm64']],
    [
      'keeps the only architecture of the cluster',
      { a: lying(BOTH, 'linux/amd64') },
      { cluster: ['amd64'] },
      ['amd64', 'arm64'],
    ],
    [
      'keeps the only schedulable architecture',
      { a: lying(BOTH, 'linux/amd64') },
      { settings: { schedulable: ['amd64'] } },
      ['amd64'],
    ],
    [
      'keeps the only architecture that the pod asks for',
      { a: lying(BOTH, 'linux/amd64') },
      { asked: ['amd64'] },
      ['amd64', 'arm64'],
    ],
    [
      'keeps the last architecture that the images have in common',
      { a: lying(BOTH, 'linux/amd64'), b: known(AMD) },
      {},
      ['amd64'],
    ],
    [
      'loses it beside an image of which every architecture was shown',
      { a: lying(BOTH, 'linux/amd64', 'linux/arm64'), b: lying(BOTH, 'linux/arm64') },
      {},
      ['amd64'],
    ],
    [
      'loses it although the nodes also run 386, because they take the entry of their own',
      { a: lying(`${BOTH},linux/386`, 'linux/amd64') },
      {},
      ['386', 'arm64'],
    ],
    [
      'loses it for the nodes that only run its platform too',
      { a: lying(BOTH, 'linux/arm64') },
      { settings: { compatible: { riscv64: ['arm64'], s390x: ['amd64'] } }, cluster: ['amd64', 'riscv64', 's390x'] },
      ['amd64', 's390x'],
    ],
    [
      'loses nothing where images.overrides states the architectures',
      { a: lying(BOTH, 'linux/arm64') },
      { settings: { overrides: [{ pattern: 'a', architectures: ['arm64', 'amd64'] }] } },
      ['amd64', 'arm64'],
    ],
    [
      'has no effect on a cluster whose architectures are not known, as long as one is left',
      { a: lying(BOTH, 'linux/arm64') },
      { cluster: [] },
      ['amd64'],
    ],
  ];
  for (const [what, answers, { settings, cluster, asked }, expected] of rows) {
    it(what, () => {
      const own = asked === undefined ? {} : { nodeSelector: { 'kubernetes.io/arch': asked[0] } };
      const decision = decideCase(
        input(answers, {
          template: template(Object.keys(answers), own),
          ...(cluster === undefined ? {} : { clusterArchitectures: cluster }),
          ...(settings === undefined ? {} : { settings }),
        }),
      );
      expect(decision.kind === 'place' && decision.architectures).to.deep.equal(expected);
    });
  }

  it('is never the reason to hold a pod', () => {
    const decision = decideCase(input({ a: lying(BOTH, 'linux/arm64'), b: known(ARM) }));
    expect(decision).to.include({ kind: 'place', basis: 'images' });
  });

  it('says what it claims, and why that counts nevertheless', () => {
    const saidOf = (answer: ImageAnswer, given: Partial<Settings> = {}, cluster = ['amd64', 'arm64']) => {
      const one = input({ a: answer }, { settings: given, clusterArchitectures: cluster });
      const [{ said } = {}] = narrow(subjectOf(one), one);
      return said?.kind === 'set' ? said.lies : undefined;
    };
    const claimed = { architectures: ['amd64', 'arm64'], platforms: [AMD, ARM] };
    expect(saidOf(lying(BOTH, ARM))).to.deep.equal({ platforms: [ARM], claimed });
    expect(saidOf(lying(BOTH, ARM), { lies: 'report' })).to.deep.equal({
      platforms: [ARM],
      claimed,
      ignored: 'reported',
    });
    expect(saidOf(lying(BOTH, ARM), {}, ['arm64'])).to.deep.equal({
      platforms: [ARM],
      claimed,
      ignored: 'nothing-left',
    });
    expect(saidOf(known(BOTH))).to.equal(undefined);
  });
});
