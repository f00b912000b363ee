import { expect } from 'chai';
import { decide, type Placement } from '../../../src/placement/decide.ts';
import type { ImageAnswer } from '../../../src/placement/images.ts';
import { asksForLevel, levelNote, NO_CPU_LEVELS } from '../../../src/placement/levels/cpu-level.ts';
import { cpuLevelsOf } from '../../../src/placement/levels/level-labels.ts';
import { withAffinity } from '../../../src/placement/patch/affinity.ts';
import { placingFor } from '../../../src/placement/placing.ts';
import type { Settings } from '../../../src/placement/settings.ts';
import { decideCase, failed, input, known, node, pending, subjectOf, taint, template } from '../objects.ts';

const label = (level: number): string => `feature.node.kubernetes.io/cpu-cpuid.X86_64_V${level}`;
const isIn = (key: string, ...values: readonly string[]) => ({ key, operator: 'In', values });
const single = (platforms: string): ImageAnswer => ({ ...known(platforms), isIndex: false }) as ImageAnswer;
const index = (platforms: string): ImageAnswer => ({ ...known(platforms), isIndex: true }) as ImageAnswer;

const V3_LABELS = { [label(2)]: 'true', [label(3)]: 'true' };
const SOME = cpuLevelsOf([
  node({ architecture: 'amd64', uid: 'a', labels: V3_LABELS }),
  node({ architecture: 'amd64', uid: 'b' }),
]);
const OLD = { v2: 'some', v3: 'none', v4: 'none' } as const;

function required(answers: Record<string, ImageAnswer>, given: Parameters<typeof input>[1] = {}): unknown {
  const of = input(answers, { cpuLevels: SOME, ...given, settings: { mode: 'affinity', ...given.settings } });
  const decision = decide(subjectOf(of), of);
  if (decision.kind !== 'place') return decision.kind;
  const all = placingFor(decision, subjectOf(of)).affinity?.required ?? [];
  return all.map(
    ({ key, values }) => `${key.replace('feature.node.kubernetes.io/cpu-cpuid.', '')}=${values.join(',')}`,
  );
}

describe('the CPU level that images need', () => {
  const V3 = ['kubernetes.io/arch=amd64', 'X86_64_V3=true'];
  const V2 = ['kubernetes.io/arch=amd64', 'X86_64_V2=true'];
  const ALONE = ['kubernetes.io/arch=amd64'];
  const windows = { template: template(['a'], { os: { name: 'windows' } }) };
  const emulated: Partial<Settings> = { compatible: { arm64: ['amd64'] } };
  const rows: readonly [string, Record<string, ImageAnswer>, unknown, Parameters<typeof input>[1]?][] = [
    ['a single manifest for v3', { a: single('linux/amd64/v3') }, V3],
    ['one for v2', { a: single('linux/amd64/v2') }, V2],
    ['several: the highest', { a: single('linux/amd64/v2'), b: single('linux/amd64/v3') }, V3],
    ['several, the highest first', { a: single('linux/amd64/v3'), b: single('linux/amd64/v2') }, V3],
    ['with an index', { a: single('linux/amd64/v3'), b: index('linux/amd64,linux/arm64') }, V3],
    ['with an image that is never pulled', { a: single('linux/amd64/v3') }, V3],
    ['a level that no node has', { a: single('linux/amd64/v4') }, ALONE],
    ['labels of a lower level only', { a: single('linux/amd64/v3') }, ALONE, { cpuLevels: OLD }],
    ['no labels at all', { a: single('linux/amd64/v3') }, ALONE, { cpuLevels: NO_CPU_LEVELS }],
    ['no level', { a: single('linux/amd64') }, ALONE],
    ['the lowest level', { a: single('linux/amd64/v1') }, ALONE],
    ['a level that nobody knows', { a: single('linux/amd64/v9') }, ALONE],
    ['an index', { a: index('linux/amd64/v3') }, ALONE],
    ['not known whether it is an index', { a: known('linux/amd64/v3') }, ALONE],
    ['another architecture', { a: single('linux/arm64/v9') }, ['kubernetes.io/arch=arm64']],
    ['power10', { a: single('linux/ppc64le/power10') }, ['kubernetes.io/arch=ppc64le']],
    ['Windows', { a: single('windows/amd64/v3') }, ALONE, windows],
    [
      'nodes that emulate it',
      { a: single('linux/amd64/v3') },
      ['kubernetes.io/arch=amd64,arm64'],
      { settings: emulated },
    ],
    [
      'nodes that emulate it, which architectures.schedulable excludes',
      { a: single('linux/amd64/v3') },
      V3,
      { settings: { ...emulated, schedulable: ['amd64'] } },
    ],
    ['an image that is not known', { a: single('linux/amd64/v3'), b: pending }, 'wait'],
    ['an image that failed for long', { a: single('linux/amd64/v3'), b: failed(999) }, ALONE],
    ['a stale answer', { a: { ...single('linux/amd64/v3'), isStale: true } as ImageAnswer }, V3],
    [
      'an override',
      { a: single('linux/amd64/v3') },
      ALONE,
      { settings: { overrides: [{ pattern: 'a', architectures: ['amd64'] }] } },
    ],
    [
      'a statement of the pod',
      { a: single('linux/amd64/v3') },
      ALONE,
      { template: template(['a'], {}, { annotations: { 'archaware.dev/architectures': 'amd64' } }) },
    ],
    ['a mode without affinity', { a: single('linux/amd64/v3') }, [], { settings: { mode: 'taints' } }],
    ['both', { a: single('linux/amd64/v3') }, V3, { settings: { mode: 'both' } }],
    ['observe', { a: single('linux/amd64/v3') }, [], { settings: { mode: 'observe' } }],
  ];
  for (const [title, answers, expected, given] of rows) {
    it(`${title}: ${JSON.stringify(expected)}`, () => {
      expect(required(answers, given)).to.deep.equal(expected);
    });
  }

  it('needs no level of an image of a volume, which does not run', () => {
    const volumes = [{ name: 'data', image: { reference: 'a' } }];
    const of = { template: template(['b'], { volumes }) };
    expect(required({ a: single('linux/amd64/v3'), b: index('linux/amd64') }, of)).to.deep.equal(ALONE);
  });
});

describe('the labels of CPU levels on nodes', () => {
  const labelled = { architecture: 'amd64', labels: V3_LABELS } as const;
  const ours = taint('supported-arch=amd64:NoSchedule');
  const gpu = taint('nvidia.com/gpu=present:NoSchedule');
  const rows: readonly [string, readonly Parameters<typeof node>[0][], string][] = [
    ['no node', [], 'none none none'],
    ['no label', [{ architecture: 'amd64' }], 'none none none'],
    ['each node', [labelled, labelled], 'all all none'],
    ['one of two', [labelled, { architecture: 'amd64' }], 'some some none'],
    ['a lesser CPU beside it', [labelled, { architecture: 'amd64', labels: { [label(2)]: 'true' } }], 'all some none'],
    ['nodes of another architecture do not count', [labelled, { architecture: 'arm64' }], 'all all none'],
    ['a label of another architecture', [{ architecture: 'arm64', labels: V3_LABELS }], 'none none none'],
    ['another value', [{ architecture: 'amd64', labels: { [label(3)]: 'false' } }], 'none none none'],
    ['a node that is being deleted', [{ ...labelled, deleting: true }], 'none none none'],
    ['a node that is not ready', [{ ...labelled, ready: false }], 'all all none'],
    [
      'a node with Windows',
      [{ ...labelled, labels: { ...V3_LABELS, 'kubernetes.io/os': 'windows' } }],
      'none none none',
    ],
    ['a node with the taint of archaware', [{ ...labelled, taints: [ours] }], 'all all none'],
    ['a node that is kept for others', [{ ...labelled, taints: [gpu] }, { architecture: 'amd64' }], 'none none none'],
    [
      'a taint that passes',
      [{ ...labelled, taints: [taint('node.kubernetes.io/unreachable:NoExecute')] }],
      'all all none',
    ],
    ['a taint that only advises', [{ ...labelled, taints: [{ ...gpu, effect: 'PreferNoSchedule' }] }], 'all all none'],
  ];
  for (const [title, nodes, expected] of rows) {
    it(`${title}: ${expected}`, () => {
      const { v2, v3, v4 } = cpuLevelsOf(nodes.map((given, at) => node({ ...given, uid: String(at) })));
      expect(`${v2} ${v3} ${v4}`).to.equal(expected);
    });
  }
});

describe('a pod that speaks of a CPU level', () => {
  const intent = { required: [isIn(label(3), 'true')] as never, preferred: [] };
  const terms = (...all: readonly unknown[]) => ({
    affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: all } } },
  });
  const term = (...matchExpressions: readonly unknown[]) => ({ matchExpressions });
  const zone = isIn('example.com/zone', 'a');
  const rows: readonly [string, object, unknown][] = [
    ['nothing', {}, terms(term(isIn(label(3), 'true'))).affinity],
    ['the same level, by its node selector', { nodeSelector: { [label(3)]: 'true' } }, undefined],
    ['a higher level, by its node selector', { nodeSelector: { [label(4)]: 'true' } }, undefined],
    ['a lower level', { nodeSelector: { [label(2)]: 'true' } }, terms(term(isIn(label(3), 'true'))).affinity],
    ['the same level, in a term', terms(term(isIn(label(3), 'true'))), undefined],
    ['the absence of the label', terms(term({ key: label(3), operator: 'DoesNotExist' })), undefined],
    [
      'the level in one of two terms',
      terms(term(zone), term(isIn(label(4), 'true'))),
      terms(term(zone, isIn(label(3), 'true')), term(isIn(label(4), 'true'))).affinity,
    ],
    ['an empty term', terms({}), undefined],
  ];
  for (const [title, spec, expected] of rows) {
    it(title, () => expect(withAffinity(spec, intent)).to.deep.equal(expected));
  }

  it('is seen in the node selector and in each term, and nowhere else', () => {
    const seen = [
      {},
      { nodeSelector: { [label(3)]: 'true' } },
      terms(term(zone), term(isIn(label(2), 'true'))),
      terms(term(zone)),
      { nodeSelector: { x: label(3) } },
      { nodeSelector: 7, affinity: [] },
    ].map(asksForLevel);
    expect(seen).to.deep.equal([false, true, true, false, false, false]);
  });
});

describe('what is said of a CPU level', () => {
  const need = (given: object) => {
    const decision = decideCase(
      input({ 'app:1': single('linux/amd64/v3') }, { cpuLevels: SOME, ...given }),
    ) as Placement;
    if (decision.level === undefined) throw new Error('no level');
    return decision.level;
  };
  const rows: readonly [string, string | undefined, RegExp | undefined][] = [
    ['the label is required', levelNote(need({}), 'yes'), undefined],
    [
      'a mode without affinity',
      levelNote(need({}), 'in-other-modes'),
      /nodeSelector ask for .*V3=true, or use placement.mode/,
    ],
    ['a DaemonSet', levelNote(need({}), 'never'), /nodeSelector ask for .*V3=true$/],
    [
      'no label',
      levelNote(need({ cpuLevels: NO_CPU_LEVELS }), 'yes'),
      /no node .* has the label .*V3=true \(node-feature-/,
    ],
    ['every node has it', levelNote(need({ cpuLevels: { v2: 'all', v3: 'all', v4: 'none' } }), 'never'), undefined],
    [
      'nodes emulate it',
      levelNote(need({ settings: { compatible: { arm64: ['amd64'] } } }), 'yes'),
      /architectures.compatible/,
    ],
  ];
  for (const [title, said, expected] of rows) {
    it(`${title}: ${expected ?? 'nothing'}`, () => {
      if (expected === undefined) expect(said).to.equal(undefined);
      else expect(said).to.match(expected);
    });
  }
});
