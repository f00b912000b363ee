import { expect } from 'chai';
import type { JsonObject } from '../../../src/kit/json.ts';
import { parseSelector } from '../../../src/kit/label-syntax.ts';
import { cleanNode, decideNode } from '../../../src/placement/nodes/decide-node.ts';
import { isOurTaint, readManaged, writeManaged } from '../../../src/placement/nodes/managed.ts';
import { isSameNode, type Node, readNode } from '../../../src/placement/nodes/node.ts';
import type { Settings } from '../../../src/placement/settings.ts';
import { node, settings, taint } from '../objects.ts';

const ARM = 'supported-arch=arm64:NoSchedule';
const AMD = 'supported-arch=amd64:NoSchedule';
const PROVIDER = 'kubernetes.io/arch=arm64:NoSchedule';
/** A taint of somebody else, with unknown fields. */
const FOREIGN = taint('node.kubernetes.io/unreachable:NoExecute', { timeAdded: '2026-01-01', new: { a: [1] } });
const NAMED: Readonly<Record<string, JsonObject>> = {
  arm: taint(ARM),
  'arm,seen': taint(ARM, { timeAdded: 'x' }),
  amd: taint(AMD),
  old: taint('arch=arm64:NoSchedule'),
  provider: taint(PROVIDER),
  foreign: FOREIGN,
  gpu: taint('gpu:NoSchedule'),
};
const PROVIDERS = { key: 'kubernetes.io/arch' };

const keyed = ({ key, value = '', effect }: JsonObject) => `${key}=${value}:${effect}`;
const taintOf = (name: string) => NAMED[name] ?? taint(name);

/** Taints by their names: those that are recorded with `!`, and what is recorded without a taint in brackets. */
function has(text: string): { taints: JsonObject[]; managed?: string[] } {
  const words = text.split(' ').filter((word) => word !== '');
  const managed = words
    .filter((word) => /[!)]$/.test(word))
    .map((word) => keyed(taintOf(word.replaceAll(/[(!)]/g, ''))));
  const taints = words.filter((word) => !word.startsWith('(')).map((word) => taintOf(word.replace('!', '')));
  return { taints, ...(managed.length === 0 ? {} : { managed }) };
}

/** The other way round. */
function told(taints: readonly unknown[], managed: string | undefined): string {
  const recorded: string[] = managed === undefined ? [] : JSON.parse(managed).taints;
  const names = new Map(Object.entries(NAMED).map(([name, each]) => [JSON.stringify(each), name]));
  const texts = taints.map((each) => keyed(Object(each)));
  const named = taints.map((each, index) => {
    const name = names.get(JSON.stringify(each)) ?? texts[index];
    return recorded.includes(texts[index] ?? '') ? `${name}!` : name;
  });
  return [...named, ...recorded.filter((each) => !texts.includes(each)).map((each) => `(${each})`)].join(' ');
}

type What = Omit<Parameters<typeof node>[0], 'taints'> &
  Partial<Settings['taints']> & { readonly bootstrapped?: boolean };
type Row = [given: string, taints: string | undefined, what: What, expected: string];

/** The node of a row, and its settings. */
function split(text: string | undefined, { bootstrapped = true, key, effect, manage, nodeSelector, ...what }: What) {
  const more = Object.fromEntries(
    Object.entries({ key, effect, manage, nodeSelector }).filter(([, value]) => value !== undefined),
  );
  return { before: node({ ...(text === undefined ? {} : has(text)), ...what }), more, bootstrapped };
}

function taints(more: Partial<Settings['taints']>): Settings['taints'] {
  return { ...settings().taints, ...more };
}

function decideTaints(what: Node, more: Partial<Settings['taints']>, bootstrapped: boolean) {
  return decideNode(what, { taints: taints(more), labels: undefined }, bootstrapped);
}

const NO_LABELS = { addedLabels: [], removedLabels: [], conflicts: [] };

/** Taints that archaware never set, whatever a record says. */
const OTHERS =
  'dedicated=payments:NoSchedule quarantine=compromised:NoExecute quarantine=arm64:NoExecute node-role.kubernetes.io/x=arm64:NoSchedule';

describe('the decision for a node', () => {
  const outside = { nodeSelector: parseSelector('pool=mixed') };
  const early = { bootstrapped: false };
  const AMD_NODE = { architecture: 'amd64' };
  const rows: Row[] = [
    ['no taints', undefined, {}, 'arm!'],
    ['an empty list of taints', '', {}, 'arm!'],
    ['what it should have', 'arm!', {}, 'unchanged'],
    ['its taint, with a field of the server', 'arm,seen!', {}, 'unchanged'],
    ['its taint, not recorded', 'arm', {}, 'arm!'],
    ['a spelling of its own', undefined, { architecture: 'aarch64' }, 'arm!'],
    ['another architecture than its taint says', 'arm! foreign', AMD_NODE, 'foreign amd!'],
    ['no architecture yet', undefined, { architecture: '' }, 'architecture-unknown'],
    ['the architecture unknown', undefined, { architecture: 'unknown' }, 'architecture-unknown'],
    ['an architecture that is not a name', undefined, { architecture: 'a/b=c:d' }, 'architecture-unknown'],
    ['no architecture any more', 'arm!', { architecture: '' }, 'architecture-unknown'],
    ['it is being deleted', undefined, { deleting: true }, 'deleting'],
    ['taints of others before and after ours', 'foreign arm gpu', { managed: '{"taints":[]}' }, 'foreign arm! gpu'],
    ['our key with another effect beside ours', 'arm! supported-arch=arm64:PreferNoSchedule', {}, 'unchanged'],
    ['the annotation names no taints', 'arm foreign', { managed: '{"taints":[1,null,"x","=:"]}' }, 'arm! foreign'],

    // The kubelet of a node can write the annotation.
    ['a record that claims the taints of others', `${OTHERS.replaceAll(/ |$/g, '! ')}arm!`, {}, `${OTHERS} arm!`],
    ['a record with another value', 'gpu=x:NoSchedule arm! (gpu=arm64:NoSchedule)', {}, 'gpu=x:NoSchedule arm!'],
    [
      'a record that claims a taint with the name that the node reports',
      'dedicated=x:NoSchedule!',
      { architecture: 'x' },
      'dedicated=x:NoSchedule supported-arch=x:NoSchedule!',
    ],

    // Names that Go does not have.
    ['a name that Go does not have', undefined, { architecture: 'wasm-wasi' }, 'supported-arch=wasm-wasi:NoSchedule!'],
    ['a taint with such a name, which the node has left', 'supported-arch=wasm-wasi:NoSchedule!', {}, 'arm!'],
    ["such a name under the provider's key", 'kubernetes.io/arch=wasm-wasi:NoSchedule!', PROVIDERS, 'provider!'],

    // The configuration has changed.
    ['the key changed', 'arm! foreign', { key: 'arch' }, 'foreign old!'],
    ['the key changed, and nobody recorded the old one', 'arm', { key: 'arch' }, 'arm old!'],
    ['the effect changed', 'arm!', { effect: 'PreferNoSchedule' }, 'supported-arch=arm64:PreferNoSchedule!'],
    ['the selector names it', undefined, { labels: { pool: 'mixed' }, ...outside }, 'arm!'],
    ['the selector does not name it any more', 'arm! foreign', outside, 'foreign'],
    ['the selector does not name it, the architecture is unknown', 'arm!', { architecture: '', ...outside }, ''],
    ['our key with another effect, outside of the selector', 'supported-arch=arm64:NoExecute', outside, 'unchanged'],

    // Somebody else sets the taint.
    ['manage false, and a taint of our key', 'arm', { manage: false }, 'unchanged'],
    ['manage false from now on', 'arm! foreign', { manage: false }, 'foreign'],
    ["the provider's taint, with its key", 'provider', PROVIDERS, 'provider-taint'],
    ["the provider's taint for another architecture", 'provider', { ...AMD_NODE, ...PROVIDERS }, 'provider-taint'],
    ["the provider's taint, and ours under the key before", 'arm! provider', PROVIDERS, 'provider'],
    ["the provider's taint and ours, while pods wait", 'arm! provider', { ...PROVIDERS, ...early }, 'bootstrap'],
    ['a reserved key of ours', 'provider!', { ...AMD_NODE, ...PROVIDERS }, 'kubernetes.io/arch=amd64:NoSchedule!'],

    // The bootstrap is not over.
    ['no taints, before pods had their turn', undefined, early, 'bootstrap'],
    ['what it should have, before', 'arm!', early, 'unchanged'],
    ['the key changed, before', 'arm!', { key: 'arch', ...early }, 'bootstrap'],
    ['the selector does not name it any more, before', 'arm!', { ...outside, ...early }, ''],
  ];
  for (const [given, text, what, expected] of rows) {
    it(`${given}: ${expected || 'nothing'}`, () => {
      const { before, more, bootstrapped } = split(text, what);
      const decision = decideTaints(before, more, bootstrapped);
      if (decision.kind !== 'set') {
        expect(decision.kind === 'unchanged' ? decision.kind : decision.reason).to.equal(expected);
        return;
      }
      const { taints: set, managed } = decision;
      expect(told(set, managed)).to.equal(expected);
      expect(decision).to.deep.include(NO_LABELS);
      expect(decideTaints({ ...before, taints: set, managed }, more, bootstrapped).kind).to.be.oneOf([
        'unchanged',
        'skip',
      ]);
    });
  }
});

describe('cleaning a node', () => {
  const rows: Row[] = [
    ['nothing of ours', 'foreign', {}, 'unchanged'],
    ['our taint, not recorded', 'arm', {}, ''],
    ['a record that cannot be read', undefined, { managed: 'x' }, ''],
    ['our key with another effect', 'supported-arch=arm64:NoExecute arm!', {}, 'supported-arch=arm64:NoExecute'],
    ['a taint under the key before', 'old!', {}, ''],
    ["the provider's taint", 'provider', PROVIDERS, 'unchanged'],
    ['manage false, a taint of our key', 'arm', { manage: false }, 'unchanged'],
    ['manage false, recorded', 'arm!', { manage: false }, ''],
    ['a node outside of the selector', 'arm', { nodeSelector: parseSelector('a=b') }, ''],
    ['a node that is being deleted', 'arm', { deleting: true }, ''],
    ['a node without an architecture', 'arm', { architecture: '' }, ''],
  ];
  for (const [given, text, what, expected] of rows) {
    it(`${given}: ${expected || 'nothing is left'}`, () => {
      const { before, more } = split(text, what);
      const decision = cleanNode(before, taints(more));
      if (decision.kind !== 'set') expect(decision).to.deep.equal({ kind: expected, conflicts: [] });
      else
        expect(decision).to.deep.equal({ kind: 'set', ...NO_LABELS, taints: has(expected).taints, managed: undefined });
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
    const effects = ['k=payments/x', 'k=', 'k=ARM64', 'a b=arm64', '/k=arm64'].map((each) => `${each}:NoSchedule`);
    const taints = ['k=arm64:NoExecute', ...effects];
    expect(readManaged(JSON.stringify({ taints })).taints).to.deep.equal([]);
  });

  const lists = ['{"taints":[{}]}', '{"taints":["a:b"]}', '{"labels":{"a/b":"true"}}', '{"labels":"a/b"}'];
  for (const garbage of ['', 'null', '1', '"x"', '[]', '{}', '{', ...lists])
    it(`counts as empty if it is ${garbage || 'empty'}`, () =>
      expect(readManaged(garbage)).to.deep.equal({ taints: [], labels: [] }));
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
    ['no annotations', { metadata: { annotations: undefined } }, false],
    ["archaware's record", { metadata: { annotations: { 'archaware.dev/managed': '{}' } } }, false],
    ['another taint', { spec: { taints: [taint(AMD)] } }, false],
    ['no taints', { spec: { taints: undefined } }, false],
    ['unschedulable', { spec: { unschedulable: true } }, false],
    ['not ready', { status: { conditions: [{ type: 'Ready', status: 'Unknown' }] } }, false],
    ['another architecture', { status: { nodeInfo: { architecture: 'amd64' } } }, false],
  ];
  for (const [what, change, isSame] of rows)
    it(`${isSame ? 'are the same' : 'differ'} with ${what}`, () =>
      expect(isSameNode(read(change), read({}))).to.equal(isSame));
});
