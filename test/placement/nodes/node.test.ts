import { expect } from 'chai';
import type { JsonObject } from '../../../src/kit/json.ts';
import { parseSelector } from '../../../src/kit/selector.ts';
import { cleanNode, decideNode } from '../../../src/placement/nodes/decide-node.ts';
import { isOurTaint, readManaged, writeManaged } from '../../../src/placement/nodes/managed.ts';
import {
  architecturesOf,
  isSameNode,
  type Node,
  nodeArchitecture,
  readNode,
} from '../../../src/placement/nodes/node.ts';
import type { Settings } from '../../../src/placement/settings.ts';
import { node, settings, taint } from '../objects.ts';

const ARM = 'supported-arch=arm64:NoSchedule';
const AMD = 'supported-arch=amd64:NoSchedule';
const OLD = 'arch=arm64:NoSchedule';
const WASI = 'supported-arch=wasm-wasi:NoSchedule';
const PROVIDER = 'kubernetes.io/arch=arm64:NoSchedule';
/** A taint of somebody else, with unknown fields. */
const FOREIGN = taint('node.kubernetes.io/unreachable:NoExecute', {
  timeAdded: '2026-01-01T00:00:00Z',
  new: { a: [1] },
});

/** Taints, and what is recorded of them. */
type Taints = { readonly taints: readonly JsonObject[]; readonly managed?: readonly string[] };
type Expected = 'unchanged' | 'deleting' | 'provider-taint' | 'bootstrap' | 'architecture-unknown' | Taints;

/** These taints, and those of archaware that are recorded. */
const has = (taints: readonly (string | JsonObject)[], ...managed: readonly string[]): Taints => ({
  taints: taints.map((entry) => (typeof entry === 'string' ? taint(entry) : entry)),
  ...(managed.length === 0 ? {} : { managed }),
});
/** Taints of archaware, all recorded. */
const ours = (...texts: readonly string[]) => has(texts, ...texts);
const recorded = (...managed: readonly string[]) => ({ managed });
const PROVIDERS = { key: 'kubernetes.io/arch' };

type Row = [
  given: string,
  node: Parameters<typeof node>[0],
  what: Partial<Settings['taints']> & { bootstrapped?: boolean },
  expected: Expected,
];

function taints(more: Partial<Settings['taints']>): Settings['taints'] {
  return { ...settings().taints, ...more };
}

function decideTaints(what: Node, more: Partial<Settings['taints']>, bootstrapped: boolean) {
  return decideNode(what, { taints: taints(more), labels: undefined }, bootstrapped);
}

const NO_LABELS = { addedLabels: [], removedLabels: [], conflicts: [] };

/** Taints that archaware never set, whatever a record says. */
const OTHERS = [
  ...['dedicated=payments:NoSchedule', 'quarantine=compromised:NoExecute', 'quarantine=arm64:NoExecute'],
  ...['node-role.kubernetes.io/control-plane:NoSchedule', 'node-role.kubernetes.io/x=arm64:NoSchedule'],
];

describe('the decision for a node', () => {
  const outside = { nodeSelector: parseSelector('pool=mixed') };
  const rows: Row[] = [
    ['no taints', {}, {}, ours(ARM)],
    ['an empty list of taints', has([]), {}, ours(ARM)],
    ['what it should have', ours(ARM), {}, 'unchanged'],
    [
      'its taint, with a field of the server',
      { taints: [taint(ARM, { timeAdded: 'x' })], managed: [ARM] },
      {},
      'unchanged',
    ],
    ['its taint, not recorded', has([ARM]), {}, ours(ARM)],
    ['a record without its taint', recorded(ARM), {}, ours(ARM)],
    ['a spelling of its own', { architecture: 'aarch64' }, {}, ours(ARM)],
    [
      'another architecture than its taint says',
      { architecture: 'amd64', ...has([ARM, FOREIGN], ARM) },
      {},
      has([FOREIGN, AMD], AMD),
    ],
    ['another architecture, and no record', { architecture: 'amd64', ...has([ARM]) }, {}, ours(AMD)],
    ['no architecture yet', { architecture: '' }, {}, 'architecture-unknown'],
    ['the architecture unknown', { architecture: 'unknown' }, {}, 'architecture-unknown'],
    ['an architecture that is not a name', { architecture: 'a/b=c:d' }, {}, 'architecture-unknown'],
    ['no architecture any more', { architecture: '', ...ours(ARM) }, {}, 'architecture-unknown'],
    ['it is being deleted', { deleting: true }, {}, 'deleting'],
    [
      'taints of others before and after ours',
      { taints: [FOREIGN, taint(ARM), taint('gpu:NoSchedule')], managed: '{"taints":[]}' },
      {},
      has([FOREIGN, ARM, 'gpu:NoSchedule'], ARM),
    ],
    ['only taints of others', has([FOREIGN, 'gpu:NoSchedule']), {}, has([FOREIGN, 'gpu:NoSchedule', ARM], ARM)],
    [
      'our key with another effect',
      has(['supported-arch=amd64:NoExecute']),
      {},
      has(['supported-arch=amd64:NoExecute', ARM], ARM),
    ],
    [
      'our key with another effect beside ours',
      has([ARM, 'supported-arch=arm64:PreferNoSchedule'], ARM),
      {},
      'unchanged',
    ],
    ['the annotation is no JSON', { taints: [taint(ARM)], managed: '{' }, {}, ours(ARM)],
    ['the annotation is a list', { taints: [taint(ARM)], managed: '[]' }, {}, ours(ARM)],
    [
      'the annotation names no taints',
      { taints: [taint(ARM), FOREIGN], managed: '{"taints":[1,null,"x","=:"]}' },
      {},
      has([ARM, FOREIGN], ARM),
    ],
    [
      'the annotation claims a taint of others',
      { taints: [taint('gpu:NoSchedule')], managed: '{"taints":"gpu=:NoSchedule"}' },
      {},
      has(['gpu:NoSchedule', ARM], ARM),
    ],

    // The kubelet of a node can write the annotation.
    [
      'a record that claims the taints of others',
      has([...OTHERS, ARM], ARM, ...OTHERS, 'node-role.kubernetes.io/control-plane=:NoSchedule'),
      {},
      has([...OTHERS, ARM], ARM),
    ],
    [
      'a record with another value than the taint of others',
      has(['dedicated=payments:NoSchedule', ARM], ARM, 'dedicated=arm64:NoSchedule'),
      {},
      has(['dedicated=payments:NoSchedule', ARM], ARM),
    ],
    [
      'a record that claims a taint with the name that the node reports',
      { architecture: 'payments', ...ours('dedicated=payments:NoSchedule') },
      {},
      has(
        ['dedicated=payments:NoSchedule', 'supported-arch=payments:NoSchedule'],
        'supported-arch=payments:NoSchedule',
      ),
    ],

    // Names that Go does not have.
    ['a name that Go does not have', { architecture: 'wasm-wasi' }, {}, ours(WASI)],
    ['a taint with such a name, which the node has left', ours(WASI), {}, ours(ARM)],
    [
      "such a name under the provider's key",
      ours('kubernetes.io/arch=wasm-wasi:NoSchedule'),
      PROVIDERS,
      ours(PROVIDER),
    ],

    // The configuration has changed.
    ['the key changed', has([ARM, FOREIGN], ARM), { key: 'arch' }, has([FOREIGN, OLD], OLD)],
    ['the key changed, and nobody recorded the old one', has([ARM]), { key: 'arch' }, has([ARM, OLD], OLD)],
    ['the effect changed', ours(ARM), { effect: 'PreferNoSchedule' }, ours('supported-arch=arm64:PreferNoSchedule')],
    ['the key changed twice before it was written', ours(ARM, OLD), { key: 'third' }, ours('third=arm64:NoSchedule')],
    ['the selector names it', { labels: { pool: 'mixed' } }, outside, ours(ARM)],
    ['the selector does not name it', has([FOREIGN]), outside, 'unchanged'],
    ['the selector does not name it any more', has([ARM, FOREIGN], ARM), outside, has([FOREIGN])],
    [
      'the selector does not name it, the architecture is unknown',
      { architecture: '', ...ours(ARM) },
      outside,
      has([]),
    ],
    ['a record without a taint, outside of the selector', recorded(ARM), outside, has([])],
    [
      'our key with another effect, outside of the selector',
      has(['supported-arch=arm64:NoExecute']),
      outside,
      'unchanged',
    ],

    // Somebody else sets the taint.
    ['manage false', {}, { manage: false }, 'unchanged'],
    ['manage false, and a taint of our key', has([ARM]), { manage: false }, 'unchanged'],
    ['manage false from now on', has([ARM, FOREIGN], ARM), { manage: false }, has([FOREIGN])],
    [
      "manage false from now on, with the provider's key",
      has([PROVIDER, ARM], ARM),
      { manage: false, ...PROVIDERS },
      has([PROVIDER]),
    ],
    ["the provider's taint, with its key", has([PROVIDER]), PROVIDERS, 'provider-taint'],
    [
      "the provider's taint for another architecture",
      { architecture: 'amd64', ...has([PROVIDER]) },
      PROVIDERS,
      'provider-taint',
    ],
    ["the provider's taint, and ours under the key before", has([ARM, PROVIDER], ARM), PROVIDERS, has([PROVIDER])],
    [
      "the provider's taint, and ours under the key before, while pods wait",
      has([ARM, PROVIDER], ARM),
      { ...PROVIDERS, bootstrapped: false },
      'bootstrap',
    ],
    ["the provider's key where the provider does not taint", {}, PROVIDERS, ours(PROVIDER)],
    [
      'a reserved key that we recorded',
      { architecture: 'amd64', ...ours(PROVIDER) },
      PROVIDERS,
      ours('kubernetes.io/arch=amd64:NoSchedule'),
    ],

    // The bootstrap is not over.
    ['no taints, before pods had their turn', {}, { bootstrapped: false }, 'bootstrap'],
    ['what it should have, before', ours(ARM), { bootstrapped: false }, 'unchanged'],
    ['the key changed, before', ours(ARM), { key: 'arch', bootstrapped: false }, 'bootstrap'],
    ['the selector does not name it any more, before', ours(ARM), { ...outside, bootstrapped: false }, has([])],
    ['no architecture yet, before', { architecture: '' }, { bootstrapped: false }, 'architecture-unknown'],
  ];
  for (const [given, what, { bootstrapped = true, ...more }, expected] of rows) {
    const saying = typeof expected === 'string' ? expected : `set ${expected.managed?.join() ?? 'nothing'}`;
    it(`${given}: ${saying}`, () => {
      const before = node(what);
      const decision = decideTaints(before, more, bootstrapped);
      if (typeof expected === 'string') {
        const { kind } = decision;
        expect(kind === 'unchanged' || kind === 'set' ? kind : decision.reason).to.equal(expected);
        return;
      }
      expect(decision).to.deep.equal({
        kind: 'set',
        ...NO_LABELS,
        taints: expected.taints,
        managed: expected.managed && JSON.stringify({ taints: expected.managed }),
      });
      if (decision.kind !== 'set') return;
      const after = { ...before, taints: decision.taints, managed: decision.managed };
      expect(decideTaints(after, more, bootstrapped).kind, 'decided again').to.be.oneOf(['unchanged', 'skip']);
    });
  }

  it('keeps the taints of others as the very objects that were read', () => {
    const before = node(has([FOREIGN, AMD, 'gpu:NoSchedule'], AMD));
    const decision = decideTaints(before, {}, true);
    expect(decision.kind).to.equal('set');
    if (decision.kind !== 'set') return;
    expect(decision.taints[0]).to.equal(before.taints?.[0]);
    expect(decision.taints[1]).to.equal(before.taints?.[2]);
  });
});

describe('cleaning a node', () => {
  const rows: [
    given: string,
    node: Parameters<typeof node>[0],
    what: Partial<Settings['taints']>,
    expected: Expected,
  ][] = [
    ['nothing of ours', has([FOREIGN]), {}, 'unchanged'],
    ['our taint', has([FOREIGN, ARM], ARM), {}, has([FOREIGN])],
    ['our taint, not recorded', has([ARM]), {}, has([])],
    ['a record alone', recorded(ARM), {}, has([])],
    ['a record that cannot be read', { managed: 'x' }, {}, has([])],
    [
      'our key with another effect',
      has(['supported-arch=arm64:NoExecute', ARM], ARM),
      {},
      has(['supported-arch=arm64:NoExecute']),
    ],
    ['a taint under the key before', ours(OLD), {}, has([])],
    ["the provider's taint", has([PROVIDER]), PROVIDERS, 'unchanged'],
    ['manage false, a taint of our key', has([ARM]), { manage: false }, 'unchanged'],
    ['manage false, recorded', ours(ARM), { manage: false }, has([])],
    ['a node outside of the selector', has([ARM]), { nodeSelector: parseSelector('a=b') }, has([])],
    ['a node that is being deleted', { deleting: true, ...has([ARM]) }, {}, has([])],
    ['a node without an architecture', { architecture: '', ...has([ARM]) }, {}, has([])],
  ];
  for (const [given, what, more, expected] of rows) {
    it(`${given}: ${typeof expected === 'string' ? expected : `leaves ${expected.taints.length} taint(s)`}`, () => {
      const decision = cleanNode(node(what), taints(more));
      if (typeof expected === 'string') expect(decision).to.deep.equal({ kind: expected, conflicts: [] });
      else expect(decision).to.deep.equal({ kind: 'set', ...NO_LABELS, ...expected, managed: undefined });
    });
  }
});

describe("the record of archaware's taints and labels on a node", () => {
  it('is read as it was written', () => {
    const managed = {
      taints: [
        { key: 'a.b/c', value: 'arm64', effect: 'NoSchedule' },
        { key: 'k', value: 'a-new-one', effect: 'PreferNoSchedule' },
      ],
      labels: [],
    };
    expect(writeManaged(managed)).to.equal('{"taints":["a.b/c=arm64:NoSchedule","k=a-new-one:PreferNoSchedule"]}');
    expect(readManaged(writeManaged(managed))).to.deep.equal(managed);
    const labels = ['example.com/a', 'example.com/b'];
    expect(writeManaged({ taints: [], labels })).to.equal('{"labels":["example.com/a","example.com/b"]}');
    const both = { ...managed, labels };
    expect(readManaged(writeManaged(both))).to.deep.equal(both);
    expect(writeManaged({ taints: [], labels: [] })).to.equal(undefined);
  });

  it('never lists a label that archaware does not set', () => {
    const labels = [
      ...'a/b kubernetes.io/os node-role.kubernetes.io/x x.k8s.io/y plain A/b a/ a/b'.split(' '),
      1,
      null,
    ];
    expect(readManaged(JSON.stringify({ labels }))).to.deep.equal({ taints: [], labels: ['a/b', 'a/b'] });
  });

  it('never lists a taint that archaware cannot have set', () => {
    const taints = [
      'k=arm64:NoExecute',
      'k=payments/x:NoSchedule',
      'k=:NoSchedule',
      'k=ARM64:NoSchedule',
      'a b=arm64:NoSchedule',
      '/k=arm64:NoSchedule',
    ];
    expect(readManaged(JSON.stringify({ taints })).taints).to.deep.equal([]);
  });

  for (const garbage of [
    '',
    'null',
    '1',
    '"x"',
    '[]',
    '{}',
    '{"taints":{}}',
    '{"taints":[{}]}',
    '{"taints":["a:b"]}',
    '{"labels":{"a/b":"true"}}',
    '{"labels":"a/b"}',
    '{',
  ]) {
    it(`counts as empty if it is ${garbage || 'empty'}`, () => {
      expect(readManaged(garbage)).to.deep.equal({ taints: [], labels: [] });
    });
  }
});

describe('a taint with the configured key and effect', () => {
  const rows: [key: string, expected: boolean][] = [
    ['supported-arch', true],
    ['example.com/arch', true],
    ['notkubernetes.io/arch', true],
    ['kubernetes.io/arch', false],
    ['node.kubernetes.io/arch', false],
    ['x.k8s.io/arch', false],
    ['k8s.io/arch', false],
  ];
  for (const [key, expected] of rows) {
    it(`${key} ${expected ? 'counts as' : 'does not count as'} archaware's unless it is recorded`, () => {
      const what = { key, effect: 'NoSchedule', value: 'x' };
      expect(isOurTaint(what, { taints: [] }, what)).to.equal(expected);
      expect(isOurTaint(what, { taints: [what] }, what)).to.equal(true);
    });
  }
});

describe("the cluster's architectures", () => {
  it('are those of its nodes, sorted, without duplicates, deleted nodes and unknown ones', () => {
    const nodes = [
      node({ architecture: 's390x', deleting: true }),
      node({ architecture: 'arm64' }),
      node({ architecture: 'x86_64' }),
      node({ architecture: '' }),
      node({ architecture: 'amd64' }),
    ];
    expect(architecturesOf(nodes)).to.deep.equal(['amd64', 'arm64']);
    expect(nodes.map(nodeArchitecture)).to.deep.equal(['s390x', 'arm64', 'amd64', undefined, 'amd64']);
  });
});

describe('two readings of a node', () => {
  const METADATA = { name: 'n', uid: 'u', resourceVersion: '1', labels: { pool: 'a' }, annotations: {} };
  const STATUS = { nodeInfo: { architecture: 'arm64' }, conditions: [{ type: 'Ready', status: 'True' }], images: [] };
  const read = ({ metadata = {}, spec = {}, status = {} }: Readonly<Record<string, JsonObject>>): Node =>
    readNode({
      metadata: { ...METADATA, ...metadata },
      spec: { taints: [taint(ARM)], ...spec },
      status: { ...STATUS, ...status },
    });
  const rows: readonly (readonly [what: string, change: Parameters<typeof read>[0], isSame: boolean])[] = [
    ['another version', { metadata: { resourceVersion: '2' } }, true],
    ['other annotations', { metadata: { annotations: { other: 'x' } } }, true],
    ['other images and conditions', { status: { images: [{}], conditions: [...STATUS.conditions, {}] } }, true],
    ['another uid', { metadata: { uid: 'v' } }, false],
    ['its deletion', { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }, false],
    ['another label', { metadata: { labels: { pool: 'b' } } }, false],
    ['no labels', { metadata: { labels: undefined } }, false],
    ['no annotations', { metadata: { annotations: undefined } }, false],
    ["archaware's record", { metadata: { annotations: { 'archaware.dev/managed': '{}' } } }, false],
    ['another taint', { spec: { taints: [taint(AMD)] } }, false],
    ['no taints', { spec: { taints: undefined } }, false],
    ['unschedulable', { spec: { unschedulable: true } }, false],
    ['not ready', { status: { conditions: [{ type: 'Ready', status: 'Unknown' }] } }, false],
    ['another architecture', { status: { nodeInfo: { architecture: 'amd64' } } }, false],
  ];
  for (const [what, change, isSame] of rows) {
    it(`${isSame ? 'are the same' : 'differ'} with ${what}`, () => {
      expect(isSameNode(read(change), read({}))).to.equal(isSame);
    });
  }
});
