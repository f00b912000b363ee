import { expect } from 'chai';
import { type JsonObject, objectAt } from '../../../src/kit/json.ts';
import { admitDaemonSet } from '../../../src/placement/admission/daemonset.ts';
import { readDaemonSet } from '../../../src/placement/objects/daemonset.ts';
import { isKept, keepProbes } from '../../../src/placement/patch/keep-probe.ts';
import type { Settings } from '../../../src/placement/settings.ts';
import { jsonPatch } from '../../simulator/objects/patch.ts';
import { input, known, settings, toleration } from '../objects.ts';

const AMD64 = toleration('supported-arch=amd64:NoSchedule');
const ARM64 = toleration('supported-arch=arm64:NoSchedule');
const OWN = { key: 'example.com/own', operator: 'Exists' };
const record = (...tolerations: readonly object[]) =>
  JSON.stringify({ images: ['app:1'], subject: 'aabb', tolerations });

type Given = {
  readonly namespace?: string;
  readonly recorded?: string | undefined;
  readonly tolerations?: readonly JsonObject[];
  readonly labels?: JsonObject;
  readonly deleting?: boolean;
};

function daemonSetOf(given: Given = {}): JsonObject {
  const recorded = 'recorded' in given ? given.recorded : record(AMD64, ARM64);
  return {
    metadata: {
      ...{ namespace: given.namespace ?? 'shop', name: 'agent', uid: 'u1', labels: given.labels ?? {} },
      annotations: { other: 'stays', ...(recorded === undefined ? {} : { 'archaware.dev/tolerations': recorded }) },
      ...(given.deleting ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
    },
    spec: {
      template: { spec: { containers: [{ image: 'app:1' }], tolerations: given.tolerations ?? [OWN, AMD64, ARM64] } },
    },
  };
}

const probesOf = (
  objects: readonly JsonObject[],
  given: Partial<Settings> = {},
  labels: Readonly<Record<string, string>> = {},
) => keepProbes(objects.map(readDaemonSet), (name) => ({ name, labels }), settings(given));

describe('an update that drops the tolerations of a DaemonSet, to see whether they come back', () => {
  it("takes archaware's tolerations and their record, and nothing else", () => {
    const object = daemonSetOf();
    const [probe] = probesOf([object]);
    expect(probe?.dropped).to.deep.equal([AMD64, ARM64]);
    const after = jsonPatch(object, JSON.stringify(probe?.patch));
    expect(after).to.deep.equal(daemonSetOf({ recorded: undefined, tolerations: [OWN] }));
  });

  it('fails where the DaemonSet has changed', () => {
    const [probe] = probesOf([daemonSetOf()]);
    for (const changed of [{ tolerations: [AMD64, ARM64] }, { recorded: record(AMD64) }])
      expect(() => jsonPatch(daemonSetOf(changed), JSON.stringify(probe?.patch))).to.throw();
  });

  const rows: readonly (readonly [what: string, given: Given, settings?: Partial<Settings>])[] = [
    ['has no record', { recorded: undefined }],
    ['has a record without its tolerations', { tolerations: [OWN] }],
    ['would tolerate the taint anyway', { tolerations: [{ operator: 'Exists' }, AMD64, ARM64] }],
    ['has a record that a tenant wrote in another form', { recorded: record(AMD64).replace('"key":', '"key": ') }],
    ['has a record of tolerations that are not those of archaware', { recorded: record(OWN) }],
    ['has so many tolerations that the policy may exceed its limit', { tolerations: [AMD64, ...Array(40).fill(OWN)] }],
    ['has the label archaware.dev/ignore', { labels: { 'archaware.dev/ignore': 'true' } }],
    ['is being deleted', { deleting: true }],
    ['is in an excluded namespace', {}, { excludeNamespaces: ['shop'] }],
    ['is left to others by the configuration', {}, { daemonSets: 'ignore' }],
    ['needs no tolerations in this mode', {}, { mode: 'affinity' }],
  ];
  for (const [what, given, changed] of rows)
    it(`is not made of a DaemonSet that ${what}`, () =>
      expect(probesOf([daemonSetOf(given)], changed)).to.deep.equal([]));

  it('is not made of a DaemonSet in a namespace that archaware ignores, or that is not listed yet', () => {
    expect(probesOf([daemonSetOf()], {}, { 'archaware.dev/ignore': 'true' })).to.deep.equal([]);
    expect(keepProbes([readDaemonSet(daemonSetOf())], () => undefined, settings())).to.deep.equal([]);
  });

  it('is made of three DaemonSets at most, each of another namespace, system namespaces first', () => {
    const namespaces = ['a', 'b', 'a', 'c', 'kube-system', 'd'];
    const found = probesOf(namespaces.map((namespace) => daemonSetOf({ namespace })));
    expect(found.map(({ namespace }) => namespace)).to.deep.equal(['kube-system', 'a', 'b']);
  });

  it('is corrected by the webhook, whatever else the DaemonSet has', () => {
    const objects = [
      daemonSetOf(),
      daemonSetOf({ recorded: record(AMD64), tolerations: [AMD64] }),
      // Before 0.2 the record was the list alone.
      daemonSetOf({ recorded: JSON.stringify([ARM64]), tolerations: [ARM64, OWN] }),
    ];
    for (const before of objects) {
      const [probe] = probesOf([before]);
      if (probe === undefined) throw new Error('no probe');
      const object = jsonPatch(before, JSON.stringify(probe.patch));
      expect(isKept(object, probe), 'without the webhook').to.equal(false);
      const given = { ...input({ 'app:1': known('linux/amd64') }), settings: settings() };
      const answer = { object, before, writer: 'archaware-probe', liveTaints: new Set<string>() };
      const namespace = { name: 'shop', labels: {} };
      const corrected = jsonPatch(object, JSON.stringify(admitDaemonSet({ ...given, ...answer, namespace })));
      expect(isKept(corrected, probe)).to.equal(true);
    }
  });
});

describe('the answer to such an update', () => {
  const [probe] = probesOf([daemonSetOf()]);
  const answers: readonly (readonly [what: string, given: Given, kept: boolean])[] = [
    ['has everything', {}, true],
    ['has it in another order', { tolerations: [ARM64, OWN, AMD64] }, true],
    ['lacks one toleration', { tolerations: [OWN, AMD64] }, false],
    ['lacks the record, so that the tolerations would count as those of the author', { recorded: undefined }, false],
    ['tolerates the taint in another way', { tolerations: [{ operator: 'Exists' }] }, true],
  ];
  for (const [what, given, kept] of answers)
    it(`${kept ? 'shows' : 'does not show'} that they come back if it ${what}`, () =>
      expect(probe !== undefined && isKept(daemonSetOf(given), probe)).to.equal(kept));

  it('that is no DaemonSet does not show it', () =>
    expect(probe !== undefined && isKept(objectAt({}, 'none'), probe)).to.equal(false));
});
