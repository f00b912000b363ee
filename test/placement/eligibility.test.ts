import { expect } from 'chai';
import type { JsonObject } from '../../src/kit/json.ts';
import { parseSelector } from '../../src/kit/label-syntax.ts';
import { isSystemPod, type SkipReason, skipPod } from '../../src/placement/eligibility.ts';
import { readNamespace } from '../../src/placement/objects/namespace.ts';
import { readPod } from '../../src/placement/objects/pod.ts';
import type { Settings } from '../../src/placement/settings.ts';
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
    [
      'that mirrors, with an empty hash',
      { metadata: { annotations: { 'kubernetes.io/config.mirror': '' } } },
      'mirror',
    ],
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
  for (const [namespace, priorityClassName, expected] of rows) {
    it(`${expected ? 'is' : 'is not'} one in ${namespace} of class ${priorityClassName ?? 'none'}`, () => {
      expect(isSystemPod({ priorityClassName }, namespace, settings())).to.equal(expected);
    });
  }
});

function selecting(text: string): Partial<Settings> {
  return { namespaceSelector: parseSelector(text) };
}

function namespaceLabels(labels: JsonObject) {
  return readNamespace({ metadata: { labels } }).labels;
}
