import { expect } from 'chai';
import fc from 'fast-check';
import { systemClock } from '../../src/kit/clock.ts';
import type { JsonObject } from '../../src/kit/json.ts';
import type { AdmissionInput } from '../../src/placement/admission/pod.ts';
import type { ImageAnswer } from '../../src/placement/images.ts';
import { createRemembering } from '../../src/webhook/remembered.ts';
import { createReviewer } from '../../src/webhook/review.ts';
import { pod } from '../placement/admissions.ts';
import { failed, known, pending, settings } from '../placement/objects.ts';
import { anyPod } from '../placement/random-pods.ts';

const PLATFORMS = [{ os: 'linux', architecture: 'arm64' }];
const ARM: ImageAnswer = { kind: 'known', platforms: PLATFORMS };
const ARM_INDEX: ImageAnswer = { ...ARM, isIndex: true };
const BOTH = known('linux/amd64,linux/arm64');

const SHOP = { name: 'shop', labels: {}, preferred: undefined };

/** A world in which one thing after the other may change. */
function world() {
  const asked: string[] = [];
  const answers: Record<string, ImageAnswer> = { a: ARM, b: BOTH };
  const input: AdmissionInput = {
    object: pod(),
    namespace: SHOP,
    settings: settings(),
    clusterArchitectures: ['amd64', 'arm64'],
    namesOf: (image) => [image],
    answerOf({ image }) {
      asked.push(image);
      return answers[image] ?? pending;
    },
    mayGate: true,
    withdrawn: [],
    ownNamespace: 'archaware',
  };
  let judged = 0;
  let minutes = 0;
  const review = createRemembering(
    (_, given) => {
      judged += 1;
      const { kind } = given.answerOf({ image: 'a', pullPolicy: '' });
      return { outcome: 'unchanged', fields: kind };
    },
    { monotonic: () => minutes * 60_000 },
  );
  return {
    input,
    answers,
    asked,
    passMinutes: (more: number) => {
      minutes += more;
    },
    /** Reviews the pod, and returns whether it was decided again. */
    isJudged(object = input.object): boolean {
      const before = judged;
      review({ ...input, object });
      return judged > before;
    },
  };
}

describe('remembered verdicts', () => {
  it('serve all pods of a template', () => {
    const { isJudged } = world();
    const of = (volume: string) => pod({ volumes: [{ name: volume, projected: {} }] }, { generateName: 'web-' });
    expect([isJudged(of('x')), isJudged(of('y')), isJudged(of('z'))]).to.deep.equal([true, false, false]);
  });

  it('ask for the images each time, so that due lookups start', () => {
    const { isJudged, asked } = world();
    for (const expected of [true, false, false]) expect(isJudged()).to.equal(expected);
    expect(asked).to.deep.equal(['a', 'a', 'a']);
  });

  const labels = { 'archaware.dev/ignore': 'true' };
  const changes: [what: string, input: Partial<AdmissionInput>, answers?: Record<string, ImageAnswer>][] = [
    ['the settings', { settings: settings({ mode: 'both' }) }],
    ["the namespace's label that decides", { namespace: { ...SHOP, labels } }],
    ["the namespace's preference", { namespace: { ...SHOP, preferred: 'arm64' } }],
    ['the namespace', { namespace: { ...SHOP, name: 'other' } }],
    ['the architectures of the cluster', { clusterArchitectures: ['amd64'] }],
    ['the parts that are refused', { withdrawn: ['tolerations'] }],
    ['the leader', { mayGate: false }],
    ['a label of the pod that decides', { object: pod({}, { labels }) }],
    ['the platforms of an image', {}, { a: BOTH }],
    ['the kind of an image', {}, { a: ARM_INDEX }],
    ['the knowledge of an image', {}, { a: pending }],
  ];
  for (const [what, change, learnt] of changes) {
    it(`are not used if something else has changed: ${what}`, () => {
      const { input, answers, isJudged } = world();
      isJudged();
      expect(isJudged(), 'the same').to.equal(false);
      Object.assign(input, change);
      Object.assign(answers, learnt);
      expect(isJudged(), what).to.equal(true);
    });
  }

  const passing: [what: string, answer: ImageAnswer][] = [
    ['a lookup that is under way', pending],
    ['a failed lookup, whose time matters', failed(300)],
  ];
  for (const [what, answer] of passing) {
    it(`do not exist for ${what}`, () => {
      const { answers, isJudged } = world();
      answers.a = answer;
      expect([isJudged(), isJudged()]).to.deep.equal([true, true]);
    });
  }

  it('are forgotten if they were not given for ten minutes, and others are remembered', () => {
    const { isJudged, passMinutes } = world();
    const of = (label: string) => pod({}, { annotations: { app: label } });
    for (const label of ['given', 'gone']) expect(isJudged(of(label))).to.equal(true);
    passMinutes(9);
    expect(isJudged(of('given'))).to.equal(false);
    passMinutes(9);
    expect(isJudged(of('new'))).to.equal(true);
    expect(['given', 'new', 'gone'].map((label) => isJudged(of(label)))).to.deep.equal([false, false, true]);
  });

  it('do not exist for very large pods', () => {
    const { isJudged } = world();
    const large = pod({}, { annotations: { note: 'x'.repeat(20_000) } });
    expect([isJudged(large), isJudged(large)]).to.deep.equal([true, true]);
  });

  it('are the verdicts of a reviewer that remembers nothing, whatever happens in between', () => {
    const images = ['arm', 'both', 'cold'];
    const modes = [{ mode: 'both' }, { mode: 'taints' }, { mode: 'both', preferred: { arm64: 9 } }] as const;
    const possible = modes.map((mode) => settings(mode));
    const step = fc.record({
      pod: fc.nat(2),
      settings: fc.nat(2),
      mayGate: fc.boolean(),
      withdrawn: fc.boolean(),
      answers: fc.constantFrom(
        { arm: ARM, both: BOTH, cold: pending },
        { arm: ARM, both: ARM, cold: BOTH },
        { arm: failed(300), both: BOTH, cold: pending },
      ),
    });
    const inputs = fc.tuple(
      fc.tuple(anyPod(images), anyPod(images), anyPod(images)),
      fc.array(step, { minLength: 2, maxLength: 12 }),
    );
    fc.assert(
      fc.property(inputs, ([pods, steps]) => {
        let now = steps[0];
        const create = () =>
          createReviewer({
            settings: () => possible[now?.settings ?? 0] ?? settings(),
            namespaceOf: () => undefined,
            clusterArchitectures: () => ['amd64', 'arm64'],
            liveTaints: () => new Set(),
            namesOf: (image) => [image],
            answerOf: ({ image }) => ({ ...now?.answers })[image] ?? pending,
            mayLookUp: () => true,
            mayGate: () => now?.mayGate ?? true,
            refused: () => (now?.withdrawn ? ['tolerations', 'affinity'] : []),
            ownNamespace: 'archaware',
            warns: true,
            clock: systemClock,
          });
        const review = create();
        for (const each of steps) {
          now = each;
          const body = reviewOf(pods[each.pod] ?? {});
          expect(review(body)).to.deep.equal(create()(body));
        }
      }),
      { numRuns: 100 },
    );
  });
});

function reviewOf(object: JsonObject): JsonObject {
  const resource = { group: '', version: 'v1', resource: 'pods' };
  return {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: { uid: 'u1', resource, operation: 'CREATE', namespace: 'shop', object },
  };
}
