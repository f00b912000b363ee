import { expect } from 'chai';
import type { JsonObject } from '../../../src/kit/json.ts';
import { architecturesOf, reportedBy } from '../../../src/placement/nodes/node.ts';
import {
  architectureChangeNote,
  countsAt,
  runsOnlyBeforeTaint,
  type Witness,
  waitsToBeReady,
  witnessOf,
} from '../../../src/placement/nodes/witness.ts';
import { node, taint, toleration } from '../objects.ts';

/** What a word says of a node; any other one names its architecture. */
const SEEN: Readonly<Record<string, Parameters<typeof node>[0]>> = {
  ready: {},
  away: { ready: false },
  going: { deleting: true },
  none: { architecture: '' },
  tainted: { taints: [taint('supported-arch=arm64:NoSchedule')] },
  'tainted-amd64': { taints: [taint('supported-arch=amd64:NoSchedule')] },
};

/** `sights`: what is seen of a node after so many seconds: `0 away tainted; 60 ready`. */
function witnessAfter(sights: string, isFirst: boolean): Witness | undefined {
  return sights.split('; ').reduce<Witness | undefined>((before, sight, index) => {
    const [seconds, ...words] = sight.split(' ');
    const seen = Object.assign({}, ...words.map((word) => SEEN[word] ?? { architecture: word }));
    return witnessOf(before, node(seen), Number(seconds) * 1000, isFirst && index === 0);
  }, undefined);
}

describe('a node as a witness for its architecture', () => {
  const rows: [given: string, isFirst: boolean, sights: string, counts: string | undefined][] = [
    ['it is ready when the process starts', true, '0 ready', 'arm64'],
    ['it is away when the process starts', true, '0 away', undefined],
    ['it is away when the process starts, with a taint', true, '0 away tainted', 'arm64'],
    ['it is away when the process starts, tainted for another architecture', true, '0 away tainted-amd64', undefined],
    ['it has been ready for a minute since then', true, '0 away; 5 ready; 65 ready', 'arm64'],
    ['it has just joined, with a taint', false, '0 away tainted', undefined],
    ['it has been ready for 59 s', false, '0 ready; 59 ready', undefined],
    ['it has been ready for a minute', false, '0 ready; 60 ready', 'arm64'],
    ['it was away in that minute', false, '0 ready; 30 away; 40 ready; 60 ready', undefined],
    ['it is away after that minute', false, '0 ready; 60 ready; 61 away', 'arm64'],
    ['it reported no architecture at first', false, '0 none; 50 ready; 60 ready; 110 ready', 'arm64'],
    ['it reports another architecture after a minute', false, '0 ready; 60 ready; 61 amd64; 300 amd64', 'arm64'],
    ['it changed its architecture before it counted', false, '0 ready; 30 amd64; 300 amd64', undefined],
    ['it reports a name that Go does not have', true, '0 evil-1', undefined],
    ['it reports such a name for a minute', false, '0 evil-1; 60 evil-1', undefined],
    ['it reports another spelling', true, '0 aarch64', 'arm64'],
    ['it is being deleted', true, '0 ready; 1 going', undefined],
  ];
  for (const [given, isFirst, sights, counts] of rows) {
    it(`counts for ${counts ?? 'nothing'} if ${given}`, () => {
      const witness = witnessAfter(sights, isFirst);
      expect(witness?.counts ? witness.architecture : undefined).to.equal(counts);
    });
  }

  it('says when it will count', () => {
    const times = ['5 ready', '5 away', '5 ready; 65 ready'].map((sights) => {
      const witness = witnessAfter(sights, false);
      return witness && countsAt(witness);
    });
    expect(times).to.deep.equal([65_000, undefined, undefined]);
  });
});

describe("the cluster's architectures at one moment", () => {
  const nodes = [
    node({ architecture: 's390x', ready: false }),
    node({ architecture: 'ppc64le', ready: false, taints: [taint('any=ppc64le:NoSchedule')] }),
    node({ architecture: 'arm64' }),
    node({ architecture: 'aarch64' }),
    node({ architecture: '' }),
    node({ architecture: 'amd64' }),
    node({ architecture: 'evil-1' }),
    node({ architecture: 'riscv64', deleting: true }),
  ];
  it('are those that count, sorted, without duplicates', () =>
    expect(architecturesOf(nodes)).to.deep.equal(['amd64', 'arm64', 'ppc64le']));
  it('are fewer than those that nodes report', () =>
    expect(reportedBy(nodes)).to.deep.equal(['amd64', 'arm64', 'evil-1', 'ppc64le', 's390x']));
});

describe('a node that is not ready', () => {
  const rows: [
    given: string,
    node: Parameters<typeof node>[0],
    counting: string[],
    isNeeded: boolean,
    waits: boolean,
  ][] = [
    ['no DaemonSet needs it', { ready: false }, [], false, false],
    ['a DaemonSet does, and its architecture does not count', { ready: false }, ['amd64'], true, true],
    ['a DaemonSet does, and its architecture counts', { ready: false }, ['arm64'], true, false],
    ['Go does not have its architecture', { ready: false, architecture: 'evil-1' }, [], true, false],
    ['it reported no architecture', { ready: false, architecture: '' }, [], true, false],
    ['it is ready after all', {}, [], true, false],
  ];
  for (const [given, what, counting, isNeeded, waits] of rows)
    it(`${waits ? 'waits for its taint' : 'gets its taint'} if ${given}`, () =>
      expect(waitsToBeReady(node(what), counting, () => isNeeded)).to.equal(waits));
});

describe('daemon pods', () => {
  const notReady = { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoSchedule' };
  const rows: [tolerations: JsonObject[], runs: boolean][] = [
    [[], false],
    [[{ ...notReady, effect: 'NoExecute' }], false],
    [[notReady], true],
    [[notReady, toleration('supported-arch=amd64:NoSchedule')], true],
    [[notReady, toleration('supported-arch=arm64:NoSchedule')], false],
    [[{ operator: 'Exists' }], false],
    [[{ operator: 'Exists', effect: 'NoSchedule' }], false],
  ];
  for (const [tolerations, runs] of rows) {
    it(`${runs ? 'need' : 'do not need'} a node without the taint before it is ready: ${JSON.stringify(tolerations)}`, () => {
      const ours = { key: 'supported-arch', value: 'arm64', effect: 'NoSchedule' };
      expect(runsOnlyBeforeTaint(tolerations, ours)).to.equal(runs);
    });
  }
});

describe('the note about a changed architecture', () => {
  const rows: [before: string, now: string, isNoted: boolean][] = [
    ['amd64', 'arm64', true],
    ['amd64', 'evil-1', true],
    ['amd64', 'x86_64', false],
    ['', 'amd64', false],
    ['amd64', '', false],
    ['amd64', 'a b', false],
  ];
  for (const [before, now, isNoted] of rows) {
    it(`${isNoted ? 'is written' : 'is not written'} for "${before}" and then "${now}"`, () => {
      const note = architectureChangeNote(node({ architecture: before }), node({ architecture: now }));
      if (isNoted) expect(note).to.include(`${before} before and reports ${now} now`);
      else expect(note).to.equal(undefined);
    });
  }
  it('is not written for another node of the same name', () =>
    expect(architectureChangeNote(node({ uid: 'a' }), node({ uid: 'b', architecture: 'amd64' }))).to.equal(undefined));
});
