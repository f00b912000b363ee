import { expect } from 'chai';
import type { JsonObject } from '../../src/kit/json.ts';
import { parseSelector } from '../../src/kit/label-syntax.ts';
import { isSystemPod, type SkipReason, settingsFor, skipPod } from '../../src/placement/eligibility.ts';
import { readNamespace } from '../../src/placement/objects/namespace.ts';
import { readPod } from '../../src/placement/objects/pod.ts';
import type { Policy, Settings } from '../../src/placement/settings.ts';
import { settings } from './objects.ts';

type Row = [
  given: string,
  what: {
    metadata?: JsonObject;
    spec?: JsonObject;
    phase?: string;
    namespace?: JsonObject;
    settings?: Partial<Settings>;
  },
  expected: SkipReason | undefined,
];

const IGNORE = { 'archaware.dev/ignore': 'true' };
const DAEMON = { ownerReferences: [{ kind: 'DaemonSet', controller: true }] };
const ofGroup = (apiVersion: string) => ({ ownerReferences: [{ apiVersion, kind: 'DaemonSet', controller: true }] });
const DELETED = { deletionTimestamp: '2026-01-01T00:00:00Z' };

describe('a pod', () => {
  const rows: Row[] = [
    ['that is like any other', {}, undefined],
    ['that is bound', { spec: { nodeName: 'n' } }, undefined],
    ['that is being deleted', { metadata: DELETED }, 'deleting'],
    ['that has succeeded', { phase: 'Succeeded' }, 'terminal'],
    ['that has failed', { phase: 'Failed' }, 'terminal'],
    ['that mirrors a static one', { metadata: { annotations: { 'kubernetes.io/config.mirror': 'x' } } }, 'mirror'],
    ['that mirrors, by an empty hash', { metadata: { annotations: { 'kubernetes.io/config.mirror': '' } } }, 'mirror'],
    ['of a DaemonSet that is bound', { metadata: DAEMON, spec: { nodeName: 'n' } }, 'daemon-pod'],
    ['of a DaemonSet that is not', { metadata: DAEMON }, undefined],
    ["of OpenKruise's DaemonSet", { metadata: ofGroup('apps.kruise.io/v1alpha1'), spec: { nodeName: 'n' } }, undefined],
    ['labelled ignore', { metadata: { labels: IGNORE } }, 'ignored'],
    ['labelled ignore: yes', { metadata: { labels: { 'archaware.dev/ignore': 'yes' } } }, undefined],
    ['annotated ignore', { metadata: { annotations: IGNORE } }, undefined],
    ['in a namespace labelled ignore', { namespace: IGNORE }, 'namespace-ignored'],
    ['in an excluded namespace', { settings: { excludeNamespaces: ['sh?p'] } }, 'namespace-excluded'],
    ['in a namespace that is selected', { namespace: { a: 'b' }, settings: selecting('a=b') }, undefined],
    ['in a namespace that is not', { namespace: { a: 'c' }, settings: selecting('a=b') }, 'namespace-not-selected'],
    ['of the system', { settings: { systemNamespaces: ['shop'] } }, undefined],
  ];
  for (const [given, { metadata = {}, spec = {}, phase, namespace = {}, settings: more = {} }, expected] of rows) {
    it(`${given} is ${expected ?? 'served'}`, () => {
      const pod = readPod({ metadata, spec, status: { phase } });
      expect(skipPod(pod, { name: 'shop', labels: namespaceLabels(namespace) }, settings(more))).to.equal(expected);
    });
  }
});

describe('a pod of the system', () => {
  const rows: [namespace: string, priorityClassName: string | undefined, expected: boolean][] = [
    ['kube-system', undefined, true],
    ['kube-', undefined, true],
    ['kubernetes', undefined, false],
    ['shop', undefined, false],
    ['shop', 'system-cluster-critical', true],
    ['shop', 'system-', true],
    ['shop', 'system', false],
    ['shop', 'high-system-', false],
  ];
  for (const [namespace, priorityClassName, expected] of rows)
    it(`${expected ? 'is' : 'is not'} one in ${namespace} of class ${priorityClassName ?? 'none'}`, () =>
      expect(isSystemPod({ priorityClassName }, namespace, settings())).to.equal(expected));
});

function selecting(text: string): Partial<Settings> {
  return { namespaceSelector: parseSelector(text) };
}

function namespaceLabels(labels: JsonObject) {
  return readNamespace({ metadata: { labels } }).labels;
}

type PolicyGiven = { namespaces?: readonly string[]; namespaceSelector?: string; podSelector?: string };

function policy(name: string, { namespaces, namespaceSelector = '', podSelector = '' }: PolicyGiven = {}): Policy {
  return {
    name,
    namespaces,
    namespaceSelector: parseSelector(namespaceSelector),
    podSelector: parseSelector(podSelector),
    settings: settings({ policy: name }),
  };
}

describe('the policy of a pod', () => {
  const subject = { namespace: { name: 'team-a', labels: { tier: 'gold' } }, labels: { app: 'web' } };
  const rows: [policies: readonly Policy[], expected: string | undefined][] = [
    [[], undefined],
    [[policy('all')], 'all'],
    [[policy('glob', { namespaces: ['x', 'team-*'] })], 'glob'],
    [[policy('other', { namespaces: ['team-b', 'team'] })], undefined],
    [[policy('namespace', { namespaceSelector: 'tier in (gold,silver)' })], 'namespace'],
    [[policy('namespace', { namespaceSelector: 'tier=silver' })], undefined],
    [[policy('not-its-label', { namespaceSelector: 'app=web' })], undefined],
    [[policy('pod', { podSelector: 'app=web' })], 'pod'],
    [[policy('pod', { podSelector: 'app!=web' })], undefined],
    [[policy('whole', { namespaces: ['team-a'], namespaceSelector: 'tier', podSelector: 'app=web' })], 'whole'],
    [[policy('not-the-name', { namespaces: ['b'], namespaceSelector: 'tier', podSelector: 'app' })], undefined],
    [[policy('elsewhere', { namespaces: ['team-a'], namespaceSelector: '!tier', podSelector: 'app' })], undefined],
    [[policy('not-the-pod', { namespaces: ['team-a'], namespaceSelector: 'tier', podSelector: '!app' })], undefined],
    [[policy('first'), policy('second')], 'first'],
    [[policy('first', { namespaces: ['b'] }), policy('second', { podSelector: 'app' }), policy('third')], 'second'],
  ];
  for (const [policies, expected] of rows) {
    it(`is ${expected ?? 'none'} of ${policies.map(({ name }) => name).join(', ') || 'none'}`, () => {
      const global = settings({ policies });
      const found = settingsFor(global, subject);
      expect(found.policy).to.equal(expected);
      // The object is created once, because remembered decisions compare it by identity.
      expect(found).to.equal(policies.find(({ name }) => name === expected)?.settings ?? global);
    });
  }
});
