import { expect } from 'chai';
import type { JsonObject } from '../../src/kit/json.ts';
import type { Decision } from '../../src/placement/decide.ts';
import type { ImageAnswer } from '../../src/placement/images.ts';
import type { Settings } from '../../src/placement/settings.ts';
import { type Case, decideCase, failed, input, known, pending, template } from './objects.ts';

const BOTH = known('linux/amd64,linux/arm64');
const AMD = known('linux/amd64');
const ARM = known('linux/arm64');

/** A decision in one line: `amd64,arm64 (images)`, `amd64 (open, follows, linux)`, `wait a,b again in 10s`, `hold`. */
function told(decision: Decision): string {
  switch (decision.kind) {
    case 'place': {
      const { architectures, basis, followsCluster, os } = decision;
      const more = `${followsCluster ? ', follows' : ''}${os ? `, ${os}` : ''}`;
      return `${architectures.join(',') || 'nowhere'} (${basis}${more})`;
    }
    case 'wait': {
      const again = decision.againInMs === undefined ? '' : ` again in ${decision.againInMs / 1000}s`;
      return `wait ${decision.images.join(',')}${again}`;
    }
    case 'hold':
      return 'hold';
    default:
      return decision satisfies never;
  }
}

type Row = readonly [given: string, what: Case, expected: string];

function check(rows: readonly Row[]): void {
  for (const [given, what, expected] of rows)
    it(`${given}: ${expected}`, () => expect(told(decideCase(what))).to.equal(expected));
}

/** A pod that states its architectures; no image may be looked up. */
function stating(statement: string, more: Partial<Settings> = {}): Case {
  return input(
    {},
    { template: template(['a'], {}, { annotations: { 'archaware.dev/architectures': statement } }), settings: more },
  );
}

/** These images under these settings, in a pod with this spec. */
function given(
  answers: Parameters<typeof input>[0],
  settings: Partial<Settings>,
  spec: Record<string, unknown> = {},
): Case {
  return input(answers, { template: template(Object.keys(answers), spec), settings });
}

/** One override, for a pattern. */
const override = (pattern: string, ...architectures: string[]) => ({ overrides: [{ pattern, architectures }] });
const open = (architectures: string) => `${architectures} (open, follows)`;
const ARM_ONLY = { schedulable: ['arm64'] };
const RELEASE = { noCommonArchitecture: 'release' } as const;
const FALLBACK = { unresolvable: 'fallback', fallback: ['arm64'] } as const;
const WAIT = { unresolvable: 'wait' } as const;
const WINDOWS = { os: { name: 'windows' } };
const NEVER = Number.POSITIVE_INFINITY;
const index = (platforms: string) => ({ ...known(platforms), isIndex: true });

describe('the decision for a pod whose images are known', () => {
  const init = (image: string, more = {}) => ({ containers: [{ image: 'a' }], initContainers: [{ image, ...more }] });
  check([
    ['one image of one architecture', input({ a: AMD }), 'amd64 (images)'],
    ['an init container narrows', given({ a: BOTH, i: ARM }, {}, init('i')), 'arm64 (images)'],
    [
      'ephemeral containers are not asked',
      given({ a: BOTH }, {}, { containers: [{ image: 'a' }], ephemeralContainers: [{ image: 'debug' }] }),
      'amd64,arm64 (images)',
    ],
  ]);

  it('asks for every image once, even if an earlier one rules everything out', () => {
    const asked: string[] = [];
    const answers = input({ a: AMD, b: ARM, c: pending });
    decideCase({
      ...answers,
      answerOf: (image) => {
        asked.push(image.image);
        return answers.answerOf(image);
      },
    });
    expect(asked).to.deep.equal(['a', 'b', 'c']);
  });

  it('names each image with its platforms when it holds the pod', () => {
    const decision = decideCase(input({ a: known('linux/amd64/v2,linux/amd64,windows/amd64'), b: ARM }));
    expect(decision).to.deep.equal({
      kind: 'hold',
      reason: 'no-common-architecture',
      images: [
        { image: 'a', platforms: ['linux/amd64', 'windows/amd64'] },
        { image: 'b', platforms: ['linux/arm64'] },
      ],
    });
  });
});

describe('the OS of a pod', () => {
  const mixed = known('linux/amd64,linux/arm64,windows/amd64');
  check([
    ['linux without a word', input({ a: mixed }), 'amd64,arm64 (images, linux)'],
    ['windows by spec.os', given({ a: mixed }, {}, WINDOWS), 'amd64 (images, windows)'],
    ['an override holds for every OS', given({ a: BOTH }, override('a', 'arm64'), WINDOWS), 'arm64 (images)'],
    ['an override of an image for several', given({ a: mixed }, override('a', 'arm64')), 'arm64 (images)'],
    ['one of two images is for several', input({ a: BOTH, b: mixed }), 'amd64,arm64 (images, linux)'],
    ['open, with an image for several', input({ a: failed(300), b: mixed }), 'amd64,arm64 (open, linux)'],
    ['fallback, with an image for several', given({ a: failed(300), b: mixed }, FALLBACK), 'arm64 (fallback, linux)'],
  ]);
});

describe('architectures.compatible', () => {
  const old = known('linux/386');
  const CHAIN = { compatible: { y: ['x'], z: ['y'] } };
  check([
    ['amd64 runs 386', input({ a: old }), '386,amd64 (images)'],
    ['386 beside amd64', input({ a: old, b: AMD }), 'amd64 (images)'],
    ['386 beside arm64', input({ a: old, b: ARM }), 'hold'],
    ['nothing is compatible', given({ a: old }, { compatible: {} }), '386 (images)'],
    ['it is not followed from one to the next', given({ a: known('linux/x') }, CHAIN), 'x,y (images)'],
    ['an override is widened too', given({ a: BOTH }, override('a', '386')), '386,amd64 (images)'],
    ['a statement is taken by its word', stating('386'), '386 (statement)'],
  ]);
});

describe('architectures.schedulable', () => {
  check([
    ['narrows the set', given({ a: BOTH }, ARM_ONLY), 'arm64 (images)'],
    ['rules everything out', given({ a: AMD }, ARM_ONLY), 'hold'],
    ['narrows a placement that nobody asked for', given({}, ARM_ONLY), 'arm64 (cluster, follows)'],
    ['narrows an open one', given({ a: failed(300) }, ARM_ONLY), 'arm64 (open, follows)'],
    ['narrows a statement', stating('amd64,arm64', ARM_ONLY), 'arm64 (statement)'],
    ['narrows the statement all', stating('all', ARM_ONLY), 'arm64 (statement, follows)'],
    ['narrows a release', given({ a: AMD }, { ...ARM_ONLY, ...RELEASE }), 'arm64 (released, follows)'],
  ]);
});

describe('images that need no lookup', () => {
  const TWO = { overrides: [...override('*', 'arm64').overrides, ...override('a', 'amd64').overrides] };
  /** Images with their pull policies, as `image=policy`. */
  const pulled = (...texts: string[]) => ({
    containers: texts.map((text) => ({ image: text.split('=')[0], imagePullPolicy: text.split('=')[1] })),
  });
  check([
    ['never pulled, and pulled elsewhere', given({ x: ARM }, {}, pulled('x=Never', 'x=')), 'arm64 (images)'],
    ['one that is never pulled', given({ a: ARM }, {}, pulled('x=Never', 'a=Always')), 'arm64 (images)'],
    ['all are never pulled', given({}, {}, pulled('x=Never', 'y=Never')), 'amd64,arm64 (cluster, follows)'],
    ['unpulled, overridden', given({}, override('x', 'arm64'), pulled('x=Never')), 'amd64,arm64 (cluster, follows)'],
    ['an override answers by the text', given({ a: AMD }, override('a', 'arm64')), 'arm64 (images)'],
    ['an override by full name', given({ 'a:1.2': AMD }, override('docker.io/library/a', 'arm64')), 'arm64 (images)'],
    ['the first override wins', given({ a: AMD }, TWO), 'arm64 (images)'],
    ['an override narrows another', given({ a: BOTH, b: BOTH }, override('b', 'arm64')), 'arm64 (images)'],
    ['a statement', stating('arm64'), 'arm64 (statement)'],
    ['a statement of all', stating(' All '), 'amd64,arm64 (statement, follows)'],
    ['a statement that is ruled out', stating('amd64', ARM_ONLY), 'hold'],
    ['a template without images', input({}), 'amd64,arm64 (cluster, follows)'],
  ]);
});

describe('an image that is not known', () => {
  const unplanned = { kind: 'pending', retryInMs: 10_000 } as const;
  check([
    ['still asked, after an hour', input({ a: pending }, { waitedMs: 3_600_000 }), 'wait a'],
    ['no lookup is planned for one', input({ a: pending, b: unplanned, c: pending }), 'wait a,b,c again in 10s'],
    ['about to be opened', input({ a: failed(115) }), 'wait a again in 5s'],
    ['being asked again', input({ a: failed(1, NEVER) }), 'wait a again in 119s'],
    ['one failed, one asked', input({ a: failed(1), b: pending }), 'wait a,b again in 10s'],
    ['one failed long ago, one asked', input({ a: failed(300), b: pending }), 'wait a,b again in 10s'],
    ['one due, one asked: only an answer helps', input({ a: failed(300, NEVER), b: pending }), 'wait a,b'],
    ['the youngest failure counts', input({ a: failed(300), b: failed(60, 90_000) }), 'wait a,b again in 10s'],
    ['the same, long retries', input({ a: failed(300, 1e6), b: failed(60, 1e6) }), 'wait a,b again in 60s'],
    ['failed at the limit', input({ a: failed(120) }), open('amd64,arm64')],
    ['no patience, but no failure yet', given({ a: pending }, { fallbackAfterMs: 0 }), 'wait a'],
    ['what is known narrows the open set', input({ a: failed(300), b: ARM }), 'arm64 (open)'],
    ['a known set beyond the cluster is kept', input({ a: failed(300), b: known('linux/s390x') }), 's390x (open)'],
    ['no node yet', input({ a: failed(300) }, { clusterArchitectures: [] }), 'nowhere (open, follows)'],
    ['wait: for ever', given({ a: failed(90_000) }, WAIT), 'wait a again in 10s'],
    ['wait: only an answer helps', given({ a: failed(90_000, NEVER) }, WAIT), 'wait a'],
    ['fallback', given({ a: failed(300) }, FALLBACK), 'arm64 (fallback)'],
    ['fallback and what is known', given({ a: failed(300), b: BOTH }, FALLBACK), 'arm64 (fallback)'],
    ['fallback that the known rules out', given({ a: failed(300), b: AMD }, FALLBACK), 'amd64 (fallback)'],
    [
      'fallback within schedulable',
      given({ a: failed(300) }, { ...FALLBACK, ...ARM_ONLY, fallback: ['amd64', 'arm64'] }),
      'arm64 (fallback)',
    ],
    ['nothing in common already', input({ a: AMD, b: ARM, c: pending }), 'hold'],
    ['nothing in common, release', given({ a: AMD, b: ARM, c: pending }, RELEASE), 'amd64,arm64 (released, follows)'],
    [
      'nothing in common, release, nodes of a third architecture',
      input({ a: AMD, b: ARM }, { settings: RELEASE, clusterArchitectures: ['s390x'] }),
      's390x (released, follows)',
    ],
  ]);

  it('names the images that were not known, and why', () =>
    expect(decideCase(input({ a: failed(300), b: failed(300), c: ARM }))).to.deep.include({
      unknown: ['a', 'b'],
      failed: ['a', 'b'].map((image) => ({
        image,
        code: 'unavailable',
        message: 'connection refused',
        registry: 'registry.example.com',
      })),
    }));
});

describe('a system pod', () => {
  const system = { namespace: 'kube-system' };
  check([
    ['waits two seconds for an answer', input({ a: pending }, system), 'wait a again in 2s'],
    ['is open after that', input({ a: pending }, { ...system, waitedMs: 2_000 }), open('amd64,arm64')],
    ['is open after the first failure', input({ a: failed(0) }, system), open('amd64,arm64')],
    ['is narrowed by what is known', input({ a: failed(0), b: ARM }, system), 'arm64 (open)'],
    [
      'is open after the first failure, though another image is still asked',
      input({ a: failed(0), b: pending }, { ...system, waitedMs: 500 }),
      open('amd64,arm64'),
    ],
    ['is open with unresolvable: wait', input({ a: failed(0) }, { ...system, settings: WAIT }), open('amd64,arm64')],
    ['is open with a fallback', input({ a: failed(0) }, { ...system, settings: FALLBACK }), open('amd64,arm64')],
  ]);
});

describe('the decision for a new or gated pod in a mode with affinity that asks for an architecture', () => {
  const MANY = index('linux/amd64,linux/arm64');
  const of = (
    asked: string,
    answers: Parameters<typeof input>[0],
    more: Partial<Settings> = {},
    mayHold: boolean | undefined = true,
  ): Case => {
    const spec = { nodeSelector: { 'kubernetes.io/arch': asked } };
    return {
      ...input(answers, { template: template(Object.keys(answers), spec), settings: more }),
      ...(mayHold ? { mayHold } : {}),
    };
  };
  const schedulable = { schedulable: ['arm64'] };
  check([
    ['that its index has', of('arm64', { a: MANY }), 'amd64,arm64 (images)'],
    ['that its index lacks', of('s390x', { a: MANY }), 'hold'],
    ['that its index lacks, to be released', of('s390x', { a: MANY }, RELEASE), 'amd64,arm64 (images)'],
    ['that its index lacks, and it cannot be held', of('s390x', { a: MANY }, {}, false), 'amd64,arm64 (images)'],
    ['that its single manifest lacks', of('s390x', { a: BOTH }), 'amd64,arm64 (images)'],
    ['that its index lacks, beside a single manifest', of('s390x', { a: AMD, b: MANY }), 'hold'],
    ['that its index lacks, while another image is not known', of('s390x', { a: MANY, b: pending }), 'hold'],
    ['that is not schedulable', of('amd64', { a: MANY }, schedulable), 'hold'],
    ['that is schedulable', of('arm64', { a: MANY }, schedulable), 'arm64 (images)'],
    ['that no node can have', of('x86_64', { a: MANY }), 'hold'],
  ]);
});

describe('an image volume', () => {
  const single = (platforms: string) => ({ ...known(platforms), isIndex: false });
  const artifact = { ...failed(0), code: 'unsupported', isSingleManifest: true };
  /** Mounts the image v beside a container with the image a. */
  const mounting = (v: ImageAnswer, settings: Partial<Settings> = {}, more: JsonObject = {}, policy = ''): Case => {
    const volumes = [{ name: 'data', image: { reference: 'v', ...more } }];
    return given({ a: BOTH, v }, settings, { containers: [{ image: 'a', imagePullPolicy: policy }], volumes });
  };
  check([
    ['of an index narrows', mounting(index('linux/arm64')), 'arm64 (images)'],
    ['of which it is not known what it is', mounting(known('linux/arm64')), 'arm64 (images)'],
    ['of a single manifest does not narrow', mounting(single('linux/arm64')), 'amd64,arm64 (images)'],
    ['of an artifact, which only some runtimes mount', mounting(artifact), 'amd64,arm64 (images)'],
    ['that could not be resolved for long', mounting(failed(300)), 'amd64,arm64 (open)'],
    ['that is never pulled', mounting(failed(300), {}, { pullPolicy: 'Never' }), 'amd64,arm64 (images)'],
    ['that an override answers', mounting(failed(300), override('v', 'amd64')), 'amd64 (images)'],
  ]);

  it('is named where it is not known', () =>
    expect(decideCase(mounting(failed(0)))).to.have.nested.property('failed[0].volume', 'data'));
});
