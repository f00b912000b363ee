import { expect } from 'chai';
import { explainPlacement, imagesToAsk } from '../../src/analysis/explain/explain.ts';
import type { ExplainInput } from '../../src/analysis/explain/input.ts';
import type { LookupResult } from '../../src/analysis/lookup-results.ts';
import type { JsonObject } from '../../src/kit/json.ts';
import type { ImageAnswer } from '../../src/placement/images.ts';
import { readDaemonSet } from '../../src/placement/objects/daemonset.ts';
import { readPod } from '../../src/placement/objects/pod.ts';
import { readWorkload } from '../../src/placement/objects/workload.ts';
import { recordBasis, standingArchitectures, standingTemplate } from '../../src/placement/placing.ts';
import { decisionNote } from '../../src/placement/reasons.ts';
import type { Settings } from '../../src/placement/settings.ts';
import { readPodSubject } from '../../src/placement/subject.ts';
import { findWrongNode, whatIsKnown, whatWasPulled } from '../../src/placement/wrong-node/judge.ts';
import { wrongNodeNote } from '../../src/placement/wrong-node/note.ts';
import {
  daemonSetSubject,
  decideCase,
  digest,
  failed,
  input,
  known,
  pending,
  settings,
  template,
  toleration,
} from './objects.ts';

const BOTH = known('linux/amd64,linux/arm64');
/** An answer that also says whether the name refers to an index. */
const index = (platforms: string): ImageAnswer => ({ ...known(platforms), isIndex: true }) as ImageAnswer;
const single = (platforms: string): ImageAnswer => ({ ...known(platforms), isIndex: false }) as ImageAnswer;
const artifact: ImageAnswer = { ...failed(0), code: 'unsupported', isSingleManifest: true } as ImageAnswer;

const volume = (reference: unknown, more: JsonObject = {}, name = 'data') => ({ name, image: { reference, ...more } });
const V = { image: 'v', pullPolicy: '', volume: 'data' };
const withVolumes = (...volumes: readonly JsonObject[]) => ({ volumes });

describe('the images of volumes', () => {
  const rows: readonly [given: string, volumes: unknown, expected: unknown][] = [
    ['are read after those of containers', [volume('v')], [V]],
    ['have a pull policy', [volume('v', { pullPolicy: 'Always' })], [{ ...V, pullPolicy: 'Always' }]],
    ['may be empty in a template', [volume(''), volume(undefined)], []],
    ['are of image volumes alone', [{ name: 'a', emptyDir: {} }, { name: 'b', image: 'x' }, 5], []],
    ['count once', [volume('v'), volume('v', {}, 'other')], [V]],
    ['add nothing to the same image of a container', [volume('a')], []],
    ['may have no name', [{ image: { reference: 'v' } }], [{ image: 'v', pullPolicy: '', volume: '' }]],
    ['are no list', 'v', []],
  ];
  for (const [given, volumes, expected] of rows) {
    it(given, () => {
      expect(template(['a'], { volumes }).images.slice(1)).to.deep.equal(expected);
    });
  }

  it('have a name that is cut if it is too long', () => {
    const { images } = template([], { volumes: [volume('v', {}, 'n'.repeat(100))] });
    expect(images).to.deep.equal([{ image: 'v', pullPolicy: '', volume: 'n'.repeat(63) }]);
  });
});

describe('the decision for a pod with an image volume', () => {
  const rows: readonly [
    given: string,
    answer: ImageAnswer,
    expected: string,
    more?: { readonly policy?: string; readonly settings?: Partial<Settings>; readonly container?: ImageAnswer },
  ][] = [
    ['an index narrows', index('linux/arm64'), 'place arm64 (images)'],
    ['an index for both', index('linux/amd64,linux/arm64'), 'place amd64,arm64 (images)'],
    ['a single manifest does not', single('linux/arm64'), 'place amd64,arm64 (images)'],
    ['a single manifest for another OS neither', single('windows/amd64'), 'place amd64,arm64 (images)'],
    [
      'an index for another OS',
      index('windows/amd64'),
      'hold: a (linux/amd64, linux/arm64); volume data: v (windows/amd64)',
    ],
    ['nothing in common', index('linux/s390x'), 'hold: a (linux/amd64, linux/arm64); volume data: v (linux/s390x)'],
    ['of which it is not known what it is', known('linux/arm64'), 'place arm64 (images)'],
    ['an artifact, which only some runtimes mount', artifact, 'place amd64,arm64 (images)'],
    ['that is being asked about', pending, 'wait v'],
    ['that cannot be resolved', failed(0), 'wait v: image v of volume data could not be resolved (unavailable)'],
    ['that could not be resolved for long', failed(300), 'place amd64,arm64 (open)'],
    ['that is never pulled', failed(300), 'place amd64,arm64 (images)', { policy: 'Never' }],
    [
      'that an override answers',
      failed(300),
      'place amd64 (images)',
      { settings: { overrides: [{ pattern: 'v', architectures: ['amd64'] }] } },
    ],
    [
      'a single manifest, which says nothing, with a container for arm64',
      single('linux/amd64'),
      'place arm64 (images)',
      { container: known('linux/arm64') },
    ],
  ];
  for (const [given, answer, expected, { policy, container = BOTH, ...more } = {}] of rows) {
    it(`${given}: ${expected}`, () => {
      const pod = template(['a'], withVolumes(volume('v', policy === undefined ? {} : { pullPolicy: policy })));
      const decision = decideCase(input({ a: container, v: answer }, { template: pod, ...more }));
      const told =
        decision.kind === 'place'
          ? `place ${decision.architectures.join()} (${decision.basis})`
          : `${decision.kind}${decision.kind === 'wait' ? ` ${decision.images.join()}` : ''}: ${decisionNote(decision, 'linux', [])}`;
      expect(told.replace('no architecture for linux is common to all images: ', '')).to.match(
        new RegExp(`^${expected.replace(/[()]/g, '\\$&')}`),
      );
    });
  }

  it('follows the cluster if no other image narrows it', () => {
    const pod = readPod({
      spec: { containers: [{ image: 'a', imagePullPolicy: 'Never' }], ...withVolumes(volume('v')) },
    });
    const decision = decideCase(input({ v: single('linux/arm64') }, { template: pod }));
    expect(decision).to.deep.include({ kind: 'place', basis: 'cluster', followsCluster: true });
  });
});

describe('a placement of an earlier version, which did not read volumes', () => {
  const AMD = toleration('supported-arch=amd64:NoSchedule');

  it('stays on a pod', () => {
    const pod = readPod({
      metadata: {
        creationTimestamp: '2026-01-01T00:00:00Z',
        managedFields: [
          {
            manager: 'archaware-controller',
            time: '2026-01-01T00:00:01Z',
            fieldsV1: { 'f:spec': { 'f:tolerations': {} } },
          },
        ],
      },
      spec: { containers: [{ image: 'a' }], tolerations: [AMD], ...withVolumes(volume('v')) },
    });
    const subject = readPodSubject(pod, { name: 'shop', labels: {}, preferred: undefined }, settings());
    expect(standingArchitectures(subject, pod.written, (image) => [image])).to.deep.equal(['amd64']);
  });

  const daemonSet = (spec: JsonObject, recorded: string) =>
    readDaemonSet({
      metadata: { annotations: { 'archaware.dev/tolerations': recorded } },
      spec: { template: { spec: { containers: [{ image: 'a' }], ...spec } } },
    });
  const recorded = (spec: JsonObject) =>
    JSON.stringify({ ...recordBasis(daemonSetSubject(daemonSet(spec, ''), settings())), tolerations: [AMD] });
  const rows: readonly [given: string, spec: JsonObject, recorded: string, stands: boolean][] = [
    ['is decided again where it is a template with an image volume', withVolumes(volume('v')), recorded({}), false],
    ['stands where it is a template without', {}, recorded({}), true],
    ['stands where its record has the volume', withVolumes(volume('v')), recorded(withVolumes(volume('v'))), true],
    [
      'is decided again where the image was a container’s',
      withVolumes(volume('v')),
      recorded({ containers: [{ image: 'a' }, { image: 'v' }] }),
      false,
    ],
    [
      'stands where the record is older still, and names no images',
      withVolumes(volume('v')),
      JSON.stringify([AMD]),
      true,
    ],
  ];
  for (const [given, spec, record, stands] of rows) {
    it(given, () => {
      const found = standingTemplate(daemonSetSubject(daemonSet(spec, record), settings()), record, (image) => [image]);
      expect(found).to.deep.equal(stands ? ['amd64'] : undefined);
    });
  }
});

describe('a pod on a node of arm64 whose container waits for an image', () => {
  const WAITS = {
    waiting: { reason: 'ErrImagePull', message: 'no match for platform in manifest sha256:4: not found' },
  };
  type Row = readonly [
    given: string,
    answers: Readonly<Record<string, ImageAnswer>>,
    expected: string,
    imageID?: string,
  ];
  const rows: readonly Row[] = [
    [
      'because of a volume',
      { 'a:1': BOTH, v: index('linux/amd64') },
      'does-not-run: container app cannot start on node n1 (arm64): the image of volume data has no such platform; warned; a:1 (linux/amd64, linux/arm64); volume data: v (linux/amd64)',
    ],
    [
      'because of a volume, though it ran before',
      { 'a:1': BOTH, [`a@${digest('a')}`]: BOTH, v: index('linux/amd64') },
      `does-not-run: container app cannot start on node n1 (arm64): the image of volume data has no such platform; warned; pulled a@${digest('a')} (linux/amd64, linux/arm64); a:1 (linux/amd64, linux/arm64); volume data: v (linux/amd64)`,
      `docker.io/library/a@${digest('a')}`,
    ],
    [
      'because of its own image, beside a volume of a single manifest',
      { 'a:1': known('linux/amd64'), v: single('linux/amd64') },
      'does-not-run: container app has no image for node n1 (arm64): no match for platform in manifest; warned; a:1 (linux/amd64)',
    ],
    [
      'though all is for both',
      { 'a:1': BOTH, v: index('linux/amd64,linux/arm64') },
      'says-it-runs: container app has no image for node n1 (arm64): no match for platform in manifest; warned; a:1 (linux/amd64, linux/arm64); volume data: v (linux/amd64, linux/arm64)',
    ],
    [
      'and its volume could not be looked up',
      { 'a:1': BOTH, v: failed(1) },
      'says-it-runs: container app has no image for node n1 (arm64): no match for platform in manifest; warned; a:1 (linux/amd64, linux/arm64); not known: v',
    ],
  ];
  for (const [given, answers, expected, imageID = ''] of rows) {
    it(given, () => {
      const pod = readPod({
        spec: { containers: [{ name: 'app', image: 'a:1' }], ...withVolumes(volume('v')) },
        status: { containerStatuses: [{ name: 'app', imageID, state: WAITS }] },
      });
      const answerOf = ({ image }: { image: string }) => answers[image] ?? pending;
      const tags = whatIsKnown(pod, settings(), (image) => [image], answerOf);
      const place = findWrongNode(
        pod,
        'arm64',
        tags,
        whatWasPulled(pod, settings(), (image) => [image], answerOf),
      );
      const note = place && wrongNodeNote(place, { name: 'n1', architecture: 'arm64' }, 'warned');
      expect(`${place?.verdict}: ${note}`).to.equal(expected);
    });
  }
});

describe('an explanation of image volumes', () => {
  const explained = (lookups: Readonly<Record<string, LookupResult>>) => {
    const spec = { containers: [{ name: 'app', image: 'a' }], ...withVolumes(volume('v')) };
    const workload = readWorkload({ kind: 'Pod', metadata: { name: 'web' }, spec });
    if (workload === undefined) throw new Error('no pod');
    const asking: ExplainInput = {
      workload,
      applied: true,
      namespace: { name: 'shop', labels: {}, preferred: undefined },
      settings: settings(),
      nodes: [],
      namesOf: (image) => [image],
    };
    const found = new Map(imagesToAsk(asking).map((image) => [image, lookups[image.image]]));
    return explainPlacement(asking, {
      lookupOf: (image) => found.get(image),
      pullSecrets: [],
      sourceOf: (key) => ({ value: key, source: 'default' }),
    });
  };
  const platforms = [{ os: 'linux', architecture: 'arm64' }];
  const a: LookupResult = {
    platforms: ['amd64', 'arm64'].map((architecture) => ({ os: 'linux', architecture })),
    skipped: [],
  };
  const denied = { error: { code: 'unsupported', message: 'an artifact', registry: 'r' } };

  const rows: readonly [given: string, v: LookupResult, expected: object, by: readonly string[]][] = [
    ['an index', { platforms, skipped: [], isIndex: true }, { platforms }, ['a', 'volume data: v']],
    ['a single manifest', { platforms, skipped: [], isIndex: false }, { platforms, anywhere: 'volume' }, ['a']],
    ['an artifact', { ...denied, isSingleManifest: true }, { platforms: [], anywhere: 'volume' }, ['a']],
    ['a failure', denied, { platforms: [], ...denied }, ['a']],
  ];
  for (const [given, v, expected, by] of rows) {
    it(`says of ${given} what it is and whether it narrows`, () => {
      const { images, intersection } = explained({ a, v });
      expect(images[1]).to.deep.equal({ image: 'v', volume: 'data', skipped: [], ...expected });
      expect(intersection.map((step) => step.by)).to.deep.equal(by);
    });
  }
});
