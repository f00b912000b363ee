import { expect } from 'chai';
import type { JsonObject } from '../../../src/kit/json.ts';
import { warningsFor } from '../../../src/placement/admission/warnings.ts';
import type { ImageAnswer } from '../../../src/placement/images.ts';
import type { Settings } from '../../../src/placement/settings.ts';
import { known, pending, settings } from '../objects.ts';

const answers: Record<string, ImageAnswer> = {
  arm: known('linux/arm64'),
  amd: known('linux/amd64'),
  mainframe: known('linux/s390x'),
  both: known('linux/amd64,linux/arm64'),
  cold: pending,
};

function template(images: readonly string[], spec: JsonObject = {}, metadata: JsonObject = {}): JsonObject {
  return { metadata, spec: { containers: images.map((image, index) => ({ name: `c${index}`, image })), ...spec } };
}

const onArm = { nodeSelector: { 'kubernetes.io/arch': 'arm64' } };
const apart = 'the images have no architecture in common, so the pods will';
const sets = '(amd: amd64; arm: arm64)';
const apartAs = (noCommonArchitecture: Settings['noCommonArchitecture']) => ({ settings: { noCommonArchitecture } });
const within = 'the images have no architecture in common within architectures.schedulable (amd64), so the pods will';
const onlyAmd = (noCommonArchitecture: Settings['noCommonArchitecture']) => ({
  settings: { noCommonArchitecture, schedulable: ['amd64'] },
});
const dropped = 'arm64 was dropped: the running version has it';
const onAmd = 'image amd runs on amd64 only; the pods will run on amd64 nodes';

type Row = readonly [
  what: string,
  template: JsonObject,
  wanted: readonly string[],
  more?: { readonly before?: JsonObject; readonly settings?: Partial<Settings>; readonly labels?: JsonObject },
];

const rows: Row[] = [
  ['images that run everywhere', template(['both']), []],
  ['an image that is not known', template(['cold']), []],
  ['an image that runs on less', template(['both', 'amd', 'cold']), [onAmd]],
  ['no node', template(['mainframe']), ['image mainframe runs on s390x only; no node has that: the pods will wait']],
  ['nothing in common', template(['amd', 'arm']), [`${apart} be held ${sets}`]],
  ['released', template(['amd', 'arm']), [`${apart} run on nodes of any architecture ${sets}`], apartAs('release')],
  ['rejected', template(['amd', 'arm']), [`${apart} be rejected ${sets}`], apartAs('reject')],
  [
    'a selector that an image cannot follow',
    template(['both', 'amd'], onArm),
    ['the pods ask for kubernetes.io/arch=arm64 by its nodeSelector, and image amd runs on amd64 only'],
  ],
  ['a selector that all follow', template(['both', 'arm'], onArm), []],
  ['a statement of the author', template(['amd'], {}, { annotations: { 'archaware.dev/architectures': 'amd64' } }), []],
  ['an update that drops an architecture', template(['amd']), [dropped, onAmd], { before: template(['both']) }],
  ['an update from what is not known', template(['amd']), [onAmd], { before: template(['cold']) }],
  ['another update', template(['amd'], { terminationGracePeriodSeconds: 1 }), [], { before: template(['amd']) }],
  ['a template to be ignored', template(['amd'], {}, { labels: { 'archaware.dev/ignore': 'true' } }), []],
  ['a workload to be ignored', template(['amd']), [], { labels: { 'archaware.dev/ignore': 'true' } }],
  ['a namespace that is excluded', template(['amd']), [], { settings: { excludeNamespaces: ['shop'] } }],
  ['what may not be scheduled', template(['arm']), [`${within} be held (arm: arm64)`], onlyAmd('hold')],
  ['the same, released', template(['arm']), [`${within} run on amd64 nodes (arm: arm64)`], onlyAmd('release')],
  ['only what may be scheduled counts', template(['amd']), [], { settings: { schedulable: ['amd64'] } }],
];

function warned([, given, , { before, settings: changed = {}, labels } = {}]: Row): string[] {
  return warningsFor({
    ...{ metadata: { labels }, template: given, before, settings: settings(changed) },
    namespace: { name: 'shop', labels: {}, preferred: undefined },
    clusterArchitectures: ['amd64', 'arm64'],
    namesOf: (image) => [image],
    answerOf: ({ image }) => answers[image] ?? known('linux/amd64'),
  });
}

describe('the warnings for the author of a workload', () => {
  for (const row of rows)
    it(`${row[0]}: ${row[2].join('; ') || 'none'}`, () => expect(warned(row)).to.deep.equal(row[2]));

  it('are three at most, and short', () => {
    const names = Array.from({ length: 9 }, (_, index) => `${'x'.repeat(300)}${index}\u001b[31m`);
    const given = warned(['', template(names), []]);
    expect(given).to.have.length(3);
    for (const one of given) expect(one).to.match(/^[ -~…]{1,256}$/u);
  });
});
