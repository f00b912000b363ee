import { expect } from 'chai';
import type { JsonObject } from '../../../src/kit/json.ts';
import { readDaemonSet } from '../../../src/placement/objects/daemonset.ts';
import { GUESSED, readRecord, writeRecord } from '../../../src/placement/objects/template-record.ts';
import {
  foundAgain,
  lostTolerations,
  takenBackNote,
  unrecordedNote,
  unrecordedTolerations,
} from '../../../src/placement/rollout/template.ts';
import { toleration } from '../objects.ts';

const AMD = toleration('supported-arch=amd64:NoSchedule');
const ARM = toleration('supported-arch=arm64:NoSchedule');
const OWN = { key: 'own', operator: 'Exists' };
const TAINT = { key: 'supported-arch', effect: 'NoSchedule' };
const PROVIDERS = { key: 'kubernetes.io/arch', effect: 'NoSchedule' };
const OURS = { manager: 'archaware-controller', operation: 'Update', fieldsV1: {} };

function daemonSet(
  tolerations: readonly JsonObject[],
  entries: readonly JsonObject[] = [],
  recorded?: string,
  name = 'a',
) {
  const annotations = recorded === undefined ? {} : { 'archaware.dev/tolerations': recorded };
  return readDaemonSet({
    metadata: { namespace: 'shop', name, managedFields: entries, annotations },
    spec: { template: { spec: { tolerations } } },
  });
}

describe('tolerations without a record', () => {
  const rows: [
    given: string,
    ...Parameters<typeof daemonSet>,
    unrecorded: number,
    lost: number,
    taint?: typeof TAINT,
  ][] = [
    ['none', [OWN], [OURS], undefined, 'a', 0, 0],
    ['ours', [OWN, AMD, ARM], [OURS], undefined, 'a', 2, 2],
    ['ours twice', [AMD, { ...AMD }], [OURS], undefined, 'a', 1, 1],
    ['of a DaemonSet that archaware never wrote to', [AMD, ARM], [], undefined, 'a', 2, 0],
    ['of another writer', [AMD], [{ ...OURS, manager: 'helm' }], undefined, 'a', 1, 0],
    ['beside a record of others', [AMD, ARM], [OURS], JSON.stringify([ARM]), 'a', 0, 0],
    ['under a key of Kubernetes', [{ ...AMD, key: PROVIDERS.key }], [OURS], undefined, 'a', 0, 0, PROVIDERS],
    ['of another taint', [{ ...AMD, key: 'arch' }], [OURS], undefined, 'a', 0, 0],
  ];
  for (const [given, tolerations, entries, recorded, name, unrecorded, lost, taint = TAINT] of rows) {
    it(`${given}: ${unrecorded}, of which ${lost} are archaware's`, () => {
      const found = daemonSet(tolerations, entries, recorded, name);
      expect(unrecordedTolerations(found, taint)).to.have.length(unrecorded);
      expect(lostTolerations(found, taint)).to.have.length(lost);
    });
  }

  it('are recorded for images that are not known, and the template stays as it is', () => {
    const found = daemonSet([OWN, AMD], [OURS]);
    const change = foundAgain(found, lostTolerations(found, TAINT), TAINT);
    expect(change).to.deep.include({ rolls: false, tolerations: [OWN, AMD] });
    const { past, ...record } = readRecord(change.recorded);
    const basis = { images: ['not known'], subject: '' };
    expect(record).to.deep.equal({ tolerations: [AMD], requires: [], basis });
    expect(past, 'all that archaware may have added').to.deep.include(ARM).and.not.to.deep.include(AMD);
    expect(change.recorded?.length).to.be.below(1_000);
  });

  it('are noted by name where they count as the author’s', () => {
    const authors = Array.from({ length: 7 }, (_, index) => daemonSet([AMD], [], undefined, `d${index}`));
    expect(unrecordedNote([...authors, daemonSet([AMD], [OURS])], TAINT)).to.match(
      /^7 DaemonSet\(s\) tolerate supported-arch:NoSchedule .*shop\/d0, shop\/d1, .* and 2 more\)/,
    );
    expect(unrecordedNote([daemonSet([AMD], [OURS]), daemonSet([OWN])], TAINT)).to.equal(undefined);
  });
});

const taken = (name: string, rollout: string | undefined, generation = 3) => {
  return { namespace: 'shop', name, generation, recorded: writeRecord([], [], { ...GUESSED, rollout }) };
};

describe('the note about changes of templates that were taken back', () => {
  it('names their DaemonSets, and says what to do', () =>
    expect(takenBackNote([taken('b', 'back 3'), taken('c', undefined), taken('a', 'back 3')])).to.match(
      /^2 DaemonSets stay without .* \(shop\/a, shop\/b\); allow the tolerations, then run kubectl rollout restart/,
    ));

  it('is absent without any, and once their authors have changed them', () =>
    expect(takenBackNote([taken('a', 'awaited 3'), taken('b', 'back 3', 4)])).to.equal(undefined));
});
