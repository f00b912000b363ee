import { expect } from 'chai';
import { compareWorkloads } from '../../../src/analysis/readiness/compare.ts';
import { createInventory } from '../../../src/analysis/readiness/inventory.ts';
import type { JsonObject } from '../../../src/kit/json.ts';
import { ARCHITECTURES_ANNOTATION } from '../../../src/names.ts';
import { canonicalName } from '../../../src/oci/reference.ts';
import type { ImageAnswer } from '../../../src/placement/images.ts';
import { settings } from '../../placement/objects.ts';
import { answer, object } from './world.ts';

/** By the name of the container. */
type Images = Readonly<Record<string, string>>;
type Workload = { readonly images: Images; readonly volume?: string; readonly annotations?: JsonObject };

function candidates({ images, volume, annotations }: Workload) {
  const containers = Object.entries(images).map(([name, image]) => ({ name, image }));
  const volumes = volume === undefined ? [] : [{ name: 'v', image: { reference: volume } }];
  const inventory = createInventory();
  inventory.add(object({ pod: { containers, volumes }, ...(annotations && { annotations }) }));
  return inventory.units().flatMap(({ parts }) => parts);
}

/** Compares as the command does: it looks up what is asked for, until nothing is pending. */
function compared(before: Workload, after: Workload, on?: readonly string[]) {
  const answers = new Map<string, ImageAnswer>();
  const circumstances = {
    settings: settings(),
    architectures: [],
    namespaceOf: (name: string) => ({ name, labels: {}, preferred: undefined }),
    namesOf: (image: string) => [canonicalName(image)],
    assessesAll: true,
  };
  for (;;) {
    const asked = new Set<string>();
    const { workloads, unknown } = compareWorkloads(
      { before: candidates(before), after: candidates(after) },
      on,
      circumstances,
      ({ image }) => {
        const known = answers.get(image);
        if (known === undefined) asked.add(image);
        return known ?? { kind: 'pending' };
      },
    );
    for (const image of asked) answers.set(image, answer(image));
    if (asked.size > 0) continue;
    const lines = workloads.flatMap(({ images }) =>
      images.map(({ containers, dropped, gained }) => `${containers}: -${dropped} +${gained}`),
    );
    const unread = unknown.map(({ when, containers, image }) => `${containers}: unknown ${when} ${image}`);
    return { lines: [...lines, ...unread], asked: [...answers.keys()].sort() };
  }
}

describe('the comparison of images', () => {
  /** Images by container as `c=x:1 d=y:1`; the lines between `; `, what was asked for and what counts between spaces. */
  type Row = readonly [title: string, before: string, after: string, lines: string, asked: string, on?: string];
  const rows: readonly Row[] = [
    ['finds what an image lacks', 'c=x:1', 'c=x-amd64:2', 'c: -arm64 +', 'x-amd64:2 x:1'],
    ['finds what an image gained', 'c=x-amd64:1', 'c=x:2', 'c: - +arm64', 'x-amd64:1 x:2'],
    [
      'names containers together whose images are the same before and after, and no others',
      'c=x:1 d=x:1 e=y:1',
      'c=x-amd64:2 d=x-amd64:2 e=x-amd64:2',
      'c,d: -arm64 +; e: -arm64 +',
      'x-amd64:2 x:1 y:1',
    ],
    ['asks for nothing that did not change', 'c=gone:1 d=x:1', 'c=gone:1 d=x:1', '', ''],
    ['takes two ways to write a reference for the same', 'c=nginx', 'c=docker.io/library/nginx:latest', '', ''],
    ['takes containers that swap their images for no change', 'c=x:1 d=y:1', 'c=y:1 d=x:1', '', ''],
    ['takes an image that another one had for no change', 'c=x:1 d=y-amd64:1', 'c=y-amd64:1 d=y-amd64:1', '', ''],
    ['takes a container that went for no change', 'c=gone:1 d=x:1', 'c=gone:1', '', ''],
    ['does not ask for the others if nothing is lacking', 'c=x:1 d=gone:1', 'c=x:2 d=gone:1', '', 'x:1 x:2'],
    [
      'asks for the others if something is lacking: one that lacked it already makes the drop a false alarm',
      'c=x:1 d=y-amd64:1',
      'c=x-amd64:2 d=y-amd64:1',
      '',
      'x-amd64:2 x:1 y-amd64:1',
    ],
    ['one that goes may have lacked it, too', 'c=x:1 d=y-amd64:1', 'c=x-amd64:2', '', 'x-amd64:2 x:1 y-amd64:1'],
    [
      'another image limits the drop to what it had',
      'c=x-amd64-arm64-s390x:1 d=y:1',
      'c=x-amd64:2 d=y:1',
      'c: -arm64 +',
      'x-amd64-arm64-s390x:1 x-amd64:2 y:1',
    ],
    [
      'another image that cannot be looked up limits nothing, and is not reported',
      'c=x:1 d=gone:1',
      'c=x-amd64:2 d=gone:1',
      'c: -arm64 +',
      'gone:1 x-amd64:2 x:1',
    ],
    ['an image that replaces one cannot be looked up', 'c=x:1', 'c=gone:2', 'c: unknown after gone:2', 'gone:2 x:1'],
    ['the replaced one cannot be looked up', 'c=gone:1', 'c=x-amd64:2', 'c: unknown before gone:1', 'gone:1 x-amd64:2'],
    [
      'names an image once that cannot be looked up, with all its containers',
      'c=x:1 d=x:1',
      'c=gone:2 d=gone:2',
      'c,d: unknown after gone:2',
      'gone:2 x:1',
    ],
    ['compares one in a new container with all others', 'c=x:1', 'c=x:1 d=y-amd64:1', 'd: -arm64 +', 'x:1 y-amd64:1'],
    [
      'an old image that cannot be looked up limits nothing for a new container either',
      'c=x:1 d=gone:1',
      'c=x:1 d=gone:1 e=y-amd64:1',
      'e: -arm64 +',
      'gone:1 x:1 y-amd64:1',
    ],
    [
      'a new container is compared with nothing if no old image can be looked up',
      'c=gone:1',
      'c=gone:1 d=y-amd64:1',
      'c: unknown before gone:1',
      'gone:1 y-amd64:1',
    ],
    ['a new container that runs on all that counts', 'c=gone:1', 'c=gone:1 d=y:1', '', 'y:1', 'amd64 arm64'],
    [
      'what does not count is neither dropped nor gained',
      'c=x-amd64-arm64-s390x:1 d=y-amd64:1',
      'c=x:2 d=y:2',
      '',
      'x-amd64-arm64-s390x:1 x:2 y-amd64:1 y:2',
      'amd64',
    ],
  ];
  for (const [title, before, after, lines, asked, on] of rows) {
    it(title, () => {
      const images = (text: string) => Object.fromEntries(text.split(' ').map((each) => each.split('=')));
      const found = compared({ images: images(before) }, { images: images(after) }, on?.split(' '));
      expect([found.lines.join('; '), found.asked.join(' ')]).to.deep.equal([lines, asked]);
    });
  }

  it('compares nothing, and asks for nothing, where an annotation answers on either side', () => {
    const annotations = { [ARCHITECTURES_ANNOTATION]: 'amd64' };
    const [old, now] = [{ images: { c: 'x:1' } }, { images: { c: 'x-amd64:2' } }];
    const nothing = { lines: [], asked: [] };
    expect(compared(old, { ...now, annotations })).to.deep.equal(nothing);
    expect(compared({ ...old, annotations }, now)).to.deep.equal(nothing);
  });

  it('compares image volumes, and an image in a volume is another one than in a container', () => {
    const [old, now] = [
      { images: { c: 'x:1' }, volume: 'm:1' },
      { images: { c: 'x:1' }, volume: 'm-amd64:2' },
    ];
    expect(compared(old, old)).to.deep.equal({ lines: [], asked: [] });
    expect(compared(old, now).lines).to.deep.equal(['volume v: -arm64 +']);
    const moved = { images: { c: 'x:1', d: 'm-amd64:1' } };
    expect(compared({ images: { c: 'x:1' }, volume: 'm-amd64:1' }, moved).asked).to.include('m-amd64:1');
  });
});
