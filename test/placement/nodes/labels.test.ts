import { expect } from 'chai';
import { cleanNode, decideNode } from '../../../src/placement/nodes/decide-node.ts';
import { NO_RULES, readRules } from '../../../src/placement/nodes/label-rules.ts';
import { decideLabels, labelConflictNote } from '../../../src/placement/nodes/labels.ts';
import { nodeAction, nodePatch } from '../../../src/placement/patch/patch.ts';
import { node, settings, taint } from '../objects.ts';

type Labels = Readonly<Record<string, string>>;

/** Rules by label; the label `refused` has an invalid line. */
function rulesOf(rules: Labels) {
  return readRules(Object.entries(rules).map(([label, text]) => ({ label, file: label, text }))).rules;
}

describe('a line of a label rule', () => {
  const rows: [line: string, labels: Labels, holds: boolean][] = [
    ['k', {}, false],
    ['k', { k: 'true' }, true],
    ['k', { k: '' }, true],
    ['k', { k: 'yes' }, true],
    ['k', { k: 'false' }, false],
    ['k', { k: 'False' }, true],
    ['k', { other: 'true' }, false],
    ['!k', {}, true],
    ['!k', { k: 'true' }, false],
    ['!k', { k: '' }, false],
    ['!k', { k: 'false' }, true],
    ['k=v', {}, false],
    ['k=v', { k: 'v' }, true],
    ['k=v', { k: 'V' }, false],
    ['k=v', { k: '' }, false],
    ['k=', {}, false],
    ['k=', { k: '' }, true],
    ['k=false', { k: 'false' }, true],
    ['k=false', {}, false],
    ['k!=v', {}, true],
    ['k!=v', { k: 'v' }, false],
    ['k!=v', { k: 'w' }, true],
    ['k!=v', { k: 'false' }, true],
    ['k!=false', { k: 'false' }, false],
    ['a\nb\nc', { c: 'true' }, true],
    ['a\nb\nc', { a: 'false', b: 'false' }, false],
    ['a\n!b', { b: 'true' }, false],
    ['', { k: 'true' }, false],
    ['constructor', {}, false],
    ['!constructor', {}, true],
    ['toString=x', { toString: 'x' }, true],
  ];
  for (const [line, labels, holds] of rows) {
    it(`${JSON.stringify(line)} ${holds ? 'holds' : 'does not hold'} for ${JSON.stringify(labels)}`, () => {
      const { added } = decideLabels(labels, [], rulesOf({ 'x/y': line }));
      expect(added).to.deep.equal(holds ? ['x/y'] : []);
    });
  }
});

describe('the labels of a node', () => {
  /** Labels as `k=v`; `expected`: what is added, removed and in conflict, and then recorded: `+a/b -a/c !x/y=mine; a/b`. */
  type Row = [given: string, labels: string, recorded: string, rules: Labels, expected: string];
  const X = 'x/y';
  const RULE = { [X]: 'k' };
  const rows: Row[] = [
    ['nothing, and no rules', '', '', {}, '; '],
    ['it gets one', 'k=1', '', RULE, '+x/y; x/y'],
    ['it has it', 'k=1 x/y=true', 'x/y', RULE, '; x/y'],
    ['none is left of what it needs', 'x/y=true', 'x/y', RULE, '-x/y; '],
    ['what it needs is false now', 'k=false x/y=true', 'x/y', RULE, '-x/y; '],
    ['its rule is gone', 'k=1 x/y=true', 'x/y', {}, '-x/y; '],
    ['its rule has another name', 'k=1 x/y=true', 'x/y', { 'x/z': 'k' }, '+x/z -x/y; x/z'],
    ['somebody took it away', 'k=1', 'x/y', RULE, '+x/y; x/y'],
    ['somebody took it away, and it is not needed any more', '', 'x/y', RULE, '; '],
    ['somebody took it away, and its rule is gone', '', 'x/y', {}, '; '],

    // Labels that somebody else set.
    ['somebody set it', 'k=1 x/y=mine', '', RULE, '!x/y=mine; '],
    ['somebody set it as we would have', 'k=1 x/y=true', '', RULE, '!x/y=true; '],
    ['somebody set it, and the rule says otherwise', 'x/y=true', '', RULE, '!x/y=true; '],
    ['somebody set what no rule decides', 'k=1 x/z=v', '', RULE, '+x/y; x/y'],
    ['somebody changed ours', 'k=1 x/y=false', 'x/y', RULE, '!x/y=false; '],
    ['somebody changed ours, and its rule is gone', 'k=1 x/y=', 'x/y', {}, '; '],
    ['ours under a name that nobody recorded', 'x/y=true', 'x/z', {}, '; '],

    // Invalid rules.
    ['its rule is refused', 'x/y=true', 'x/y', { [X]: '?' }, '; x/y'],
    ['its rule is refused, and it has none', 'k=1', '', { [X]: 'k\n?' }, '; '],
    ['its rule is refused, and somebody took it away', 'k=1', 'x/y', { [X]: 'k\n?' }, '; '],
    ["its rule is refused, and it is somebody's", 'x/y=v', 'x/y', { [X]: '?' }, '; '],

    // Rules that read the labels of other rules.
    ['a chain begins to hold', 'k=1', '', { 'a/c': 'a/b', 'a/b': 'a/a', 'a/a': 'k' }, '+a/a +a/b +a/c; a/a a/b a/c'],
    ['a chain with a negation', 'k=1 a/b=true', 'a/b', { 'a/a': 'k', 'a/b': '!a/a' }, '+a/a -a/b; a/a'],
    ["a rule asks for a label that is somebody's", 'a/a=v', '', { 'a/a': 'k', 'a/b': 'a/a=v' }, '+a/b !a/a=v; a/b'],
    ['a rule asks for one of ours whose rule is gone', 'a/a=true a/b=true', 'a/a a/b', { 'a/b': 'a/a' }, '-a/a -a/b; '],
    ['a rule asks for one of ours that is refused', 'a/a=true', 'a/a', { 'a/b': 'a/a', 'a/a': '?' }, '+a/b; a/a a/b'],
    ['a rule asks that it is not itself', 'k=1', '', { [X]: '!x/y' }, '; '],
    ['the same, and it is set', 'x/y=true', 'x/y', { [X]: '!x/y' }, '; x/y'],
    ['two rules exclude each other', 'a/a=true', 'a/a', { 'a/a': '!a/b', 'a/b': '!a/a' }, '; a/a'],
  ];
  const words = (text: string) => text.split(' ').filter(Boolean);
  for (const [given, had, record, rules, expected] of rows) {
    const labels: Labels = Object.fromEntries(words(had).map((pair) => pair.split('=')));
    const recorded = words(record);
    it(`are decided if ${given}`, () => {
      const decision = decideLabels(labels, recorded, rulesOf(rules));
      const { added, removed, conflicts } = decision;
      const changes = [...added.map((label) => `+${label}`), ...removed.map((label) => `-${label}`)];
      const others = conflicts.map(({ label, value }) => `!${label}=${value}`);
      expect(`${[...changes, ...others].join(' ')}; ${decision.recorded.join(' ')}`).to.equal(expected);
    });

    it(`need one decision only if ${given}`, () => {
      const { added, removed, recorded: now } = decideLabels(labels, recorded, rulesOf(rules));
      const kept = Object.entries(labels).filter(([label]) => !removed.includes(label));
      const after = { ...Object.fromEntries(kept), ...Object.fromEntries(added.map((label) => [label, 'true'])) };
      const again = decideLabels(after, now, rulesOf(rules));
      expect([again.added, again.removed, again.recorded]).to.deep.equal([[], [], now]);
    });
  }

  it('are reported with what to do', () =>
    expect(labelConflictNote({ label: 'a/b', value: 'v' })).to.match(
      /^label a\/b=v was set by another writer, so archaware does not change it/,
    ));
});

describe('the decision for a node with labels', () => {
  const ARM = taint('supported-arch=arm64:NoSchedule');
  const TAINT = 'supported-arch=arm64:NoSchedule';
  const rules = (more: Labels = { 'x/y': 'k' }) => ({ taints: settings().taints, labels: rulesOf(more) });
  const managed = (value: { taints?: string[]; labels?: string[] }) => JSON.stringify(value);

  it('decides taint and labels together', () => {
    const what = node({ labels: { k: '1' } });
    const decision = decideNode(what, rules(), true);
    expect(decision).to.deep.equal({
      kind: 'set',
      taints: [ARM],
      addedLabels: ['x/y'],
      removedLabels: [],
      managed: managed({ taints: [TAINT], labels: ['x/y'] }),
      conflicts: [],
    });
    if (decision.kind !== 'set') return;
    expect(nodeAction(what, decision)).to.equal('taint');
    expect(nodePatch(what, decision)).to.deep.equal([
      { op: 'test', path: '/metadata/uid', value: 'u1' },
      { op: 'test', path: '/status/nodeInfo/architecture', value: 'arm64' },
      { op: 'test', path: '/spec/taints', value: null },
      { op: 'add', path: '/spec/taints', value: [ARM] },
      { op: 'test', path: '/metadata/labels/x~1y', value: null },
      { op: 'add', path: '/metadata/labels/x~1y', value: 'true' },
      { op: 'test', path: '/metadata/annotations', value: null },
      { op: 'add', path: '/metadata/annotations', value: { 'archaware.dev/managed': decision.managed } },
    ]);
  });

  it('labels a node while its taint waits, and keeps what is recorded of taints', () => {
    const old = 'arch=arm64:NoSchedule';
    for (const [what, recorded] of [
      [node({ labels: { k: '1' } }), { labels: ['x/y'] }],
      [node({ labels: { k: '1' }, taints: [taint(old)], managed: [old] }), { taints: [old], labels: ['x/y'] }],
      [node({ labels: { k: '1' }, architecture: '' }), { labels: ['x/y'] }],
    ] as const) {
      const decision = decideNode(what, rules(), false);
      expect(decision).to.deep.include({ kind: 'set', addedLabels: ['x/y'], managed: JSON.stringify(recorded) });
      expect(decision)
        .to.have.property('taints')
        .deep.equal(what.taints ?? []);
      if (decision.kind === 'set') expect(nodeAction(what, decision)).to.equal('label');
    }
    const settled = node({ labels: { k: '1', 'x/y': 'true' }, managed: managed({ labels: ['x/y'] }) });
    expect(decideNode(settled, rules(), false)).to.deep.equal({ kind: 'wait', reason: 'bootstrap', conflicts: [] });
  });

  it('leaves taints alone if only labels are decided, and labels alone if only taints are', () => {
    const both = managed({ taints: [TAINT], labels: ['x/y'] });
    const what = node({ labels: { 'x/y': 'true' }, taints: [ARM], managed: both });
    const unlabelled = decideNode(what, { taints: undefined, labels: rulesOf({}) }, true);
    expect(unlabelled).to.deep.include({ kind: 'set', removedLabels: ['x/y'], managed: managed({ taints: [TAINT] }) });
    const bare = decideNode(what, { taints: { ...settings().taints, manage: false }, labels: undefined }, true);
    expect(bare).to.deep.include({ kind: 'set', taints: [], removedLabels: [], managed: managed({ labels: ['x/y'] }) });
    const neither = decideNode(what, { taints: undefined, labels: undefined }, true);
    expect(neither).to.deep.equal({ kind: 'unchanged', conflicts: [] });
  });

  it('reports conflicts with every kind of decision', () => {
    const conflicts = [{ label: 'x/y', value: 'v' }];
    const labels = { 'x/y': 'v' };
    expect(decideNode(node({ labels }), rules(), false)).to.deep.include({ kind: 'wait', conflicts });
    expect(decideNode(node({ labels }), rules(), true)).to.deep.include({ kind: 'set', conflicts });
    const done = node({ labels, taints: [ARM], managed: [TAINT] });
    expect(decideNode(done, rules(), true)).to.deep.equal({ kind: 'unchanged', conflicts });
    expect(decideNode(node({ labels, deleting: true }), rules(), true)).to.deep.include({ conflicts: [] });
  });

  it('tests each label that it writes', () => {
    const what = node({ labels: { 'x/y': 'true', b: '1' }, taints: [ARM], managed: managed({ labels: ['x/y'] }) });
    const decision = decideNode(what, { taints: undefined, labels: rulesOf({ 'a/b': 'b' }) }, true);
    expect(decision.kind).to.equal('set');
    if (decision.kind !== 'set') return;
    expect(nodeAction(what, decision)).to.equal('label');
    expect(nodePatch(what, decision).slice(2)).to.deep.equal([
      { op: 'test', path: '/metadata/labels/a~1b', value: null },
      { op: 'add', path: '/metadata/labels/a~1b', value: 'true' },
      { op: 'test', path: '/metadata/labels/x~1y', value: 'true' },
      { op: 'remove', path: '/metadata/labels/x~1y' },
      { op: 'test', path: '/metadata/annotations/archaware.dev~1managed', value: managed({ labels: ['x/y'] }) },
      { op: 'add', path: '/metadata/annotations/archaware.dev~1managed', value: managed({ labels: ['a/b'] }) },
    ]);
  });

  it('adds labels to a node without any', () => {
    const what = { ...node({ taints: [ARM], managed: [TAINT] }), hasLabels: false };
    const decision = decideNode(what, rules({ 'a/b': '!k', 'a/c': '!k' }), true);
    expect(decision.kind).to.equal('set');
    if (decision.kind !== 'set') return;
    expect(nodePatch(what, decision).slice(2, 4)).to.deep.equal([
      { op: 'test', path: '/metadata/labels', value: null },
      { op: 'add', path: '/metadata/labels', value: { 'a/b': 'true', 'a/c': 'true' } },
    ]);
  });

  it("is undone exactly: archaware's labels are removed, changed ones stay", () => {
    const what = node({
      labels: { 'x/y': 'true', 'x/z': 'v', 'x/o': 'true' },
      taints: [ARM],
      managed: managed({ taints: [TAINT], labels: ['x/y', 'x/z'] }),
    });
    const decision = cleanNode(what, settings().taints);
    expect(decision).to.deep.include({ kind: 'set', taints: [], removedLabels: ['x/y'], managed: undefined });
    const alone = node({ labels: { 'x/y': 'true' }, managed: managed({ labels: ['x/y'] }) });
    const unlabelled = cleanNode(alone, settings().taints);
    if (unlabelled.kind === 'set') expect(nodeAction(alone, unlabelled)).to.equal('unlabel');
    expect(cleanNode(node({ labels: { 'x/y': 'true' } }), settings().taints).kind).to.equal('unchanged');
    expect(decideLabels({ 'x/y': 'true' }, ['x/y'], NO_RULES).removed).to.deep.equal(['x/y']);
  });
});
