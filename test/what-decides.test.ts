/**
 * Shows from outside what a decision depends on. If any part of the program forgets a field or a setting, the decision in one of these
 * rows is the same with it and without it.
 */
import { expect } from 'chai';
import { systemClock } from '../src/kit/clock.ts';
import { type JsonObject, listAt, objectAt, parseObject, stringAt } from '../src/kit/json.ts';
import { parseSelector } from '../src/kit/label-syntax.ts';
import type { ImageAnswer } from '../src/placement/images.ts';
import type { Policy, Settings } from '../src/placement/settings.ts';
import { createReviewer } from '../src/webhook/review.ts';
import { pod } from './placement/admissions.ts';
import { requires, shown, term } from './placement/affinities.ts';
import { failed, known, pending, settings } from './placement/objects.ts';
import { jsonPatch } from './simulator/objects/patch.ts';
import { tolerated } from './support/product.ts';

const GATE = { name: 'archaware.dev/architecture' };
const ANSWERS: Readonly<Record<string, ImageAnswer>> = {
  both: known('linux/amd64,linux/arm64'),
  mixed: known('linux/arm64,windows/amd64'),
  failing: failed(0),
  wasm: known('wasi/wasm'),
  model: { ...known('linux/arm64'), isIndex: true } as ImageAnswer,
};

function reviewer(given: Partial<Settings> = {}) {
  const all = settings({ mode: 'both', ...given });
  const review = createReviewer({
    settings: () => all,
    namespaceOf: (name) => ({ name, uid: 'n', resourceVersion: '1', labels: {}, preferred: undefined }),
    clusterArchitectures: () => ['amd64', 'arm64'],
    liveTaints: () => new Set(),
    namesOf: (image) => [image],
    answerOf: ({ image }) => ANSWERS[image] ?? pending,
    mayLookUp: () => true,
    mayGate: () => true,
    refused: () => [],
    ownNamespace: 'archaware',
    warns: false,
    clock: systemClock,
  });
  return (object: JsonObject): string => {
    const resource = { group: '', version: 'v1', resource: 'pods' };
    const request = { uid: 'u', resource, operation: 'CREATE', namespace: 'shop', object };
    const { text } = review({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request });
    const response = objectAt(parseObject(text) ?? {}, 'response');
    if (response.allowed !== true) return 'rejected';
    const patch = Buffer.from(stringAt(response, 'patch') ?? '', 'base64').toString();
    if (patch === '') return 'unchanged';
    const spec = objectAt(jsonPatch({ ...object }, patch), 'spec');
    const gated = listAt(spec, 'schedulingGates')?.some(({ name }) => name === GATE.name);
    return [
      ...(gated ? ['gated'] : []),
      `tolerates ${tolerated(spec).join() || 'nothing'}`,
      `requires ${shown(spec) || 'nothing'}`,
    ].join('; ');
  };
}

describe('the review of a pod depends on', () => {
  type Change = (object: JsonObject) => JsonObject;
  const within = (part: 'spec' | 'metadata', more: JsonObject): Change => {
    return (object) => ({ ...object, [part]: { ...objectAt(object, part), ...more } });
  };
  const spec = (more: JsonObject) => within('spec', more);
  const metadata = (more: JsonObject) => within('metadata', more);
  const owner = { apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'd', uid: 'd', controller: true };
  const gold: Policy = {
    name: 'gold',
    namespaces: undefined,
    namespaceSelector: parseSelector(''),
    podSelector: parseSelector('tier=gold'),
    settings: settings({ mode: 'both', schedulable: ['arm64'] }),
  };
  const volume = { name: 'v', image: { reference: 'model' } };
  const BOTH = 'tolerates amd64,arm64; requires arch In amd64,arm64';
  const ARM = 'tolerates arm64; requires arch In arm64';
  const ANYWHERE = 'tolerates amd64,arm64; requires nothing';
  const GATED = 'gated; tolerates nothing; requires nothing';
  const selecting = (label: string, value = '') => spec({ nodeSelector: { [label]: value } });
  const labelled = (label: string, value: string) => metadata({ labels: { [label]: value } });
  const UNTOLERATED = 'tolerates nothing; requires arch In amd64,arm64';
  const OWN = 'tolerates amd64,arm64; requires arch In arm64';
  const never = { name: 'c0', image: 'cold', imagePullPolicy: 'Never' };
  const WINDOWS = 'tolerates amd64; requires arch In amd64 & os In windows';
  const rows: readonly [what: string, image: string, before: string, change: Change, after: string][] = [
    ['its node', 'both', BOTH, spec({ nodeName: 'n1' }), 'unchanged'],
    // It gets no second requirement.
    ['the architecture that it selects', 'both', BOTH, selecting('kubernetes.io/arch', 'arm64'), ANYWHERE],
    ['the control plane', 'cold', GATED, selecting('node-role.kubernetes.io/control-plane'), 'unchanged'],
    // A pod of the system does not wait like others.
    ['its priority class', 'failing', GATED, spec({ priorityClassName: 'system-node-critical' }), ANYWHERE],
    ['its operating system', 'mixed', `${ARM} & os In linux`, spec({ os: { name: 'windows' } }), WINDOWS],
    ['its RuntimeClass', 'wasm', GATED, spec({ runtimeClassName: 'wasmtime' }), ANYWHERE],
    ['its tolerations', 'both', BOTH, spec({ tolerations: [{ operator: 'Exists' }] }), UNTOLERATED],
    ['its affinity', 'both', BOTH, spec({ affinity: requires(term('arch In arm64')) }), OWN],
    ['its gates', 'cold', GATED, spec({ schedulingGates: [GATE] }), 'unchanged'],
    ['its init containers', 'both', BOTH, spec({ initContainers: [{ name: 'i', image: 'model' }] }), ARM],
    ['its image volumes', 'both', BOTH, spec({ volumes: [volume] }), ARM],
    ['the pull policies of its images', 'cold', GATED, spec({ containers: [never] }), ANYWHERE],
    ['its owner', 'both', BOTH, metadata({ ownerReferences: [owner] }), 'unchanged'],
    ['what it states', 'both', BOTH, metadata({ annotations: { 'archaware.dev/architectures': 'arm64' } }), ARM],
    ['the label archaware.dev/ignore', 'both', BOTH, labelled('archaware.dev/ignore', 'true'), 'unchanged'],
    ['the labels that a policy selects', 'both', BOTH, labelled('tier', 'gold'), ARM],
    ['its deletion', 'both', BOTH, metadata({ deletionTimestamp: '2026-01-01T00:00:00Z' }), 'unchanged'],
    ['its phase', 'both', BOTH, (object) => ({ ...object, status: { phase: 'Succeeded' } }), 'unchanged'],
  ];
  for (const [what, image, before, change, after] of rows) {
    it(what, () => {
      const review = reviewer({ daemonSets: 'ignore', policies: [gold] });
      const base = pod({}, {}, [image]);
      expect(review(base), 'before').to.equal(before);
      expect(review(change(base)), 'after').to.equal(after);
    });
  }
});
