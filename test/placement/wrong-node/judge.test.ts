import { expect } from 'chai';
import { matchesGlob } from '../../../src/kit/glob.ts';
import type { JsonObject } from '../../../src/kit/json.ts';
import type { ImageAnswer } from '../../../src/placement/images.ts';
import { readPod } from '../../../src/placement/objects/pod.ts';
import type { Settings } from '../../../src/placement/settings.ts';
import { failsByItself, findWrongNode, whatIsKnown, whatWasPulled } from '../../../src/placement/wrong-node/judge.ts';
import { whatLies, wrongNodeNote } from '../../../src/placement/wrong-node/note.ts';
import { digest, failed, known, pending, settings } from '../objects.ts';

/** The state of a container: it runs, crashes, cannot be pulled, or ended with an exec format error. */
const STATES = {
  runs: { ready: true, state: { running: {} } },
  starts: { state: { waiting: { reason: 'ContainerCreating' } } },
  fails: { state: { waiting: { reason: 'CrashLoopBackOff' } } },
  format: { state: { terminated: { exitCode: 255, message: 'exec /app: exec format error' } } },
  pull: {
    state: { waiting: { reason: 'ErrImagePull', message: 'no match for platform in manifest sha256:4: not found' } },
  },
} as const;

/** One container: the platforms of its tag now, of the pulled image (absent: no digest in its status), and its state. */
type Container = {
  readonly is: keyof typeof STATES;
  readonly tag?: ImageAnswer;
  readonly pulled?: ImageAnswer;
  readonly stale?: true;
};
type Given = {
  readonly containers: Readonly<Record<string, Container>>;
  readonly init?: Container;
  /** What the image v of the volume data is. */
  readonly volume?: ImageAnswer;
  readonly settings?: Partial<Settings>;
  readonly statement?: string;
  readonly os?: string;
  readonly pullPolicy?: string;
  readonly runtimeClassName?: string;
};

const [AMD, ARM, BOTH] = [known('linux/amd64'), known('linux/arm64'), known('linux/amd64,linux/arm64')];

const ARM32 = known('linux/arm');
const index = (platforms: string, isIndex = true): ImageAnswer => ({ ...known(platforms), isIndex }) as ImageAnswer;
const RUNS_ARM = { compatible: { arm64: ['arm'] } };
const overriding = (architecture: string) => ({ overrides: [{ pattern: 'app:*', architectures: [architecture] }] });

/** The knowledge about a pod on an arm64 node. */
function find(given: Given) {
  const { pullPolicy: imagePullPolicy, statement, runtimeClassName } = given;
  const all = Object.entries({ ...(given.init ? { i: given.init } : {}), ...given.containers });
  const isInit = ([name]: readonly [string, unknown]) => name === 'i' && given.init !== undefined;
  const specOf = ([name]: readonly [string, unknown]): JsonObject => ({ name, image: `${name}:1`, imagePullPolicy });
  const statusOf = ([name, { is, pulled }]: readonly [string, Container]): JsonObject => ({
    name,
    imageID: pulled ? `docker.io/library/${name}@${digest(name)}` : '',
    ...STATES[is],
  });
  const pod = readPod({
    metadata: { annotations: statement === undefined ? {} : { 'archaware.dev/architectures': statement } },
    spec: {
      nodeName: 'n1',
      os: { name: given.os ?? 'linux' },
      runtimeClassName,
      initContainers: all.filter(isInit).map(specOf),
      containers: all.filter((entry) => !isInit(entry)).map(specOf),
      volumes: given.volume === undefined ? [] : [{ name: 'data', image: { reference: 'v' } }],
    },
    status: {
      initContainerStatuses: all.filter(isInit).map(statusOf),
      containerStatuses: all.filter((entry) => !isInit(entry)).map(statusOf),
    },
  });
  const asked: string[] = [];
  const answerOf = ({ image }: { image: string }): ImageAnswer => {
    asked.push(image);
    if (image === 'v') return given.volume ?? pending;
    const [name = ''] = image.split(/[:@]/);
    const container = all.find(([other]) => other === name)?.[1];
    if (image.includes('@')) return container?.pulled ?? pending;
    const tag = container?.tag ?? pending;
    return tag.kind === 'known' && container?.stale === true ? { ...tag, isStale: true } : tag;
  };
  const rules = settings(given.settings);
  const pulled = whatWasPulled(pod, rules, (image) => [image], answerOf);
  const alone = failsByItself(pod, 'arm64', pulled);
  const tags = whatIsKnown(pod, rules, (image) => [image], answerOf);
  const place = findWrongNode(pod, 'arm64', tags, pulled);
  return { pod, pulled, tags, place, asked, alone };
}

const one = (is: Container['is'], tag?: ImageAnswer, pulled?: ImageAnswer): Given => ({
  containers: { app: { is, ...(tag ? { tag } : {}), ...(pulled ? { pulled } : {}) } },
});

describe('a pod on a node of arm64', () => {
  const DIED = one('format', AMD, AMD);
  const GOOD = { is: 'runs', tag: BOTH, pulled: BOTH } as const;
  const CLAIMS = { ...GOOD, is: 'format' } as const;
  const OLD = { is: 'pull', tag: AMD, stale: true } as const;
  const DIED_ARM = one('format', ARM, ARM);
  const BAD = { is: 'fails', tag: AMD, pulled: AMD } as const;
  /** `expected`: the container, unless it is `app`; the reason, unless that is the platforms; and the verdict. */
  const rows: [given: string, what: Given, expected: string][] = [
    // A running container is never wrong, even if its tag has moved.
    ['that runs, its tag for amd64 by now', one('runs', AMD), 'right'],
    ['that runs, pulled for amd64 (emulated)', one('runs', AMD, AMD), 'right'],
    ['that starts, its tag for amd64', one('starts', AMD), 'right'],

    // The pulled image decides, not what the tag names now.
    ['that fails, pulled for amd64', one('fails', AMD, AMD), 'does-not-run'],
    ['that fails, pulled for amd64, its tag for both by now', one('fails', BOTH, AMD), 'does-not-run'],
    ['that fails, pulled for arm64, its tag for amd64 by now', one('fails', AMD, ARM), 'right'],
    ['that fails, what was pulled could not be looked up, its tag for amd64', one('fails', AMD, failed(1)), 'unproved'],
    ['that fails, its status without a digest, its tag for amd64', one('fails', AMD), 'unproved'],
    ['that fails, pulled with no platform at all', one('fails', BOTH, known('')), 'does-not-run'],
    ['that fails, pulled for arm, which its nodes run', { ...one('fails', AMD, ARM32), settings: RUNS_ARM }, 'right'],
    ['that fails, pulled for another OS there', one('fails', AMD, known('linux/amd64,windows/arm64')), 'does-not-run'],

    [
      'that fails, WebAssembly by an override, which its RuntimeClass runs',
      { ...one('fails', ARM, ARM), runtimeClassName: 'wasmtime', settings: overriding('wasm') },
      'right',
    ],

    // An exec format error alone proves nothing: a script without #! causes the same text.
    ['that died of the format, pulled for amd64', one('format', AMD, AMD), 'format does-not-run'],
    ['that died of the format, pulled for arm64: the image claims it', one('format', ARM, ARM), 'format says-it-runs'],
    ['that died of the format, without a digest, its tag for amd64', one('format', AMD), 'format unproved'],
    ['that died of the format, without a digest, its tag for arm64', one('format', ARM), 'format says-it-runs'],
    ['that died of it, by an override', { ...DIED_ARM, settings: overriding('amd64') }, 'format does-not-run'],
    ['that died of it, and states its architectures', { ...DIED, statement: 'amd64' }, 'format unproved'],
    ['that died of it, and is never pulled', { ...DIED, pullPolicy: 'Never' }, 'format unproved'],

    // "no match for platform in manifest" counts together with the tag's known platforms.
    ['that cannot be pulled, its tag for amd64', one('pull', AMD), 'does-not-run'],
    ['that cannot be pulled, its tag for both', one('pull', BOTH), 'says-it-runs'],
    ['that cannot be pulled, its tag for amd64 as of old', { containers: { app: OLD } }, 'unproved'],
    ['that cannot be pulled, and ran from what has arm64', one('pull', AMD, BOTH), 'says-it-runs'],
    ['that cannot be pulled, and states its architectures', { ...one('pull', AMD), statement: 'all' }, 'unproved'],

    // A missing platform of an image volume is reported on the container that mounts it.
    ['unpullable, its volume for amd64', { ...one('pull', BOTH, BOTH), volume: index('linux/amd64') }, 'does-not-run'],
    ['unpullable, all is for both', { ...one('pull', BOTH), volume: index('linux/amd64,linux/arm64') }, 'says-it-runs'],
    ['that cannot be pulled, nothing known of its volume', { ...one('pull', BOTH), volume: failed(1) }, 'says-it-runs'],

    // With several containers, the one with the strongest proof is named.
    ['one of whose containers runs', { containers: { good: GOOD, bad: BAD } }, 'bad does-not-run'],
    ['one of which only claims it', { containers: { claims: CLAIMS, bad: BAD } }, 'bad does-not-run'],
    ['whose init container fails', { init: BAD, containers: { app: { is: 'starts', tag: BOTH } } }, 'i does-not-run'],
  ];
  for (const [given, what, expected] of rows) {
    it(`${given}: ${expected}`, () => {
      const { place } = find(what);
      const name = place?.container.name === 'app' ? [] : [place?.container.name];
      const reason = place?.reason === 'platforms' ? [] : [place?.reason.replace('exec-format-error', 'format')];
      const text = place && [...name, ...reason, place.verdict].join(' ');
      expect(text ?? 'right').to.equal(expected);
    });
  }

  it('that fails for a reason of its own is recognised by its digest, without a lookup of its tags', () => {
    const alone = (given: Given) => find(given).alone;
    expect(alone(one('fails', AMD, ARM))).to.equal(true);
    expect(alone(one('fails', ARM, AMD))).to.equal(false);
    expect(alone(one('fails', ARM))).to.equal(false);
    expect(alone(one('format', ARM, ARM))).to.equal(false);
  });

  it('that runs causes no lookup of a digest', () => {
    const { pod, pulled } = find(one('runs', AMD, AMD));
    expect([pod.broken, pulled.pending, pulled.unknown]).to.deep.equal([undefined, [], []]);
  });

  it('whose author stated its architectures causes no lookup', () =>
    expect(find({ ...one('format', AMD, AMD), statement: 'all' }).asked).to.deep.equal([]));

  it('lists pending and failed lookups, of tags and of digests', () => {
    const { tags, pulled } = find({
      containers: {
        a: { is: 'fails', tag: pending, pulled: pending },
        b: { is: 'fails', tag: failed(1), pulled: failed(1) },
        c: { is: 'fails', tag: ARM, pulled: ARM, stale: true },
        d: { is: 'fails', tag: known('') },
      },
    });
    expect([tags.pending, tags.unknown, tags.images.map(({ image }) => image)]).to.deep.equal([
      ['a:1'],
      ['b:1', 'c:1'],
      ['d:1'],
    ]);
    expect([pulled.pending, pulled.unknown]).to.deep.equal([[`a@${digest('a')}`], [`b@${digest('b')}`]]);
  });
});

describe('the note about a pod on a wrong node', () => {
  const rows: [given: string, what: Given, expected: string][] = [
    [
      'names the container, the node, what became of the pod, what was pulled and what each image runs on',
      { containers: { a: { is: 'fails', tag: BOTH, pulled: AMD }, b: { is: 'runs', tag: BOTH } } },
      `container a fails on node n1 (arm64), for which its image has no platform; evicted; pulled a@${digest('a')} (linux/amd64); a:1 (linux/amd64, linux/arm64); b:1 (linux/amd64, linux/arm64)`,
    ],
    [
      'says where only the tag speaks against the node',
      one('fails', AMD),
      'container app fails, bound to node n1 (arm64), which does not run all of its images; evicted; app:1 (linux/amd64)',
    ],
    [
      'names the container that died, and the images of which nothing is known',
      { containers: { a: { is: 'format', tag: AMD }, b: { is: 'runs', tag: failed(1) } } },
      'container a died with an exec format error on node n1 (arm64); evicted; a:1 (linux/amd64); not known: b:1',
    ],
    [
      'has the text of the kubelet, so that it is found',
      one('pull', AMD),
      'container app has no image for node n1 (arm64): no match for platform in manifest; evicted; app:1 (linux/amd64)',
    ],
    [
      'names the volume at fault',
      { ...one('pull', BOTH), volume: index('linux/amd64') },
      'container app cannot start on node n1 (arm64): the image of volume data has no such platform; evicted; app:1 (linux/amd64, linux/arm64); volume data: v (linux/amd64)',
    ],
    [
      'leaves out a volume of a single manifest, which runs anywhere',
      { ...one('pull', AMD), volume: index('linux/amd64', false) },
      'container app has no image for node n1 (arm64): no match for platform in manifest; evicted; app:1 (linux/amd64)',
    ],
    [
      'names no image where the author stated the architectures',
      { ...one('format', AMD), statement: 'all' },
      'container app died with an exec format error on node n1 (arm64); evicted',
    ],
    [
      'does not repeat what an override says',
      { ...one('format', ARM, ARM), settings: overriding('amd64') },
      'container app died with an exec format error on node n1 (arm64); evicted; app:1 (linux/amd64)',
    ],
  ];
  for (const [given, what, expected] of rows) {
    it(given, () => {
      const { place } = find(what);
      expect(place && wrongNodeNote(place, { name: 'n1', architecture: 'arm64' }, 'evicted')).to.equal(expected);
    });
  }
});

describe('the step for a container that is refused although its image claims the architecture', () => {
  const WHY = 'but it does not (it contains files of another architecture, or starts a script without #!): rebuild it';
  const stepOf = (what: Given): string => {
    const { place } = find(what);
    return place === undefined ? '' : whatLies(place, 'arm64');
  };
  const rows: [given: string, what: Given, expected: string][] = [
    [
      'names the digest, the architecture and an entry that takes it away',
      one('format', BOTH, BOTH),
      `its image app@${digest('app')} claims to run on arm64, ${WHY}, or add to images.overrides {pattern: "app:1", architectures: [amd64]}`,
    ],
    [
      'names the tag where the status has no digest',
      one('format', BOTH),
      `its image app:1 claims to run on arm64, ${WHY}, or add to images.overrides {pattern: "app:1", architectures: [amd64]}`,
    ],
    [
      'has no entry where no architecture is left: only the author knows it',
      one('format', ARM, ARM),
      `its image app@${digest('app')} claims to run on arm64, ${WHY}, or state the architectures of "app:1" in images.overrides`,
    ],
    [
      'names the entry that states the architecture',
      { ...one('format', AMD, AMD), settings: overriding('arm64') },
      `images.overrides says that its image app:1 runs on arm64, ${WHY}, or correct the entry of images.overrides`,
    ],
  ];
  for (const [given, what, expected] of rows) it(given, () => expect(stepOf(what)).to.equal(expected));

  it('has the whole digest of a long name, and a pattern for its end', () => {
    const name = `${'path/'.repeat(40)}app`;
    const step = stepOf({ containers: { [name]: { is: 'format', tag: BOTH, pulled: BOTH } } });
    const [, pattern = ''] = /\{pattern: "(.*)", architectures: \[amd64\]\}$/.exec(step) ?? [];
    expect(step.length).to.be.lessThan(600);
    expect(step).to.include(`@${digest(name)} claims to run on arm64`);
    expect(pattern).to.match(/^\*.{150,}app:1$/);
    expect(matchesGlob(pattern, `${name}:1`)).to.equal(true);
  });
});
