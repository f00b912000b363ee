import { expect } from 'chai';
import { type JsonObject, objectAt } from '../../../src/kit/json.ts';
import { admitJob } from '../../../src/placement/admission/job.ts';
import type { ImageAnswer } from '../../../src/placement/images.ts';
import type { Settings } from '../../../src/placement/settings.ts';
import type { SubjectNamespace } from '../../../src/placement/subject.ts';
import { jsonPatch } from '../../simulator/objects/patch.ts';
import { requires, shown, term } from '../affinities.ts';
import { failed, input, known, pending, settings, toleration } from '../objects.ts';

const answers: Record<string, ImageAnswer> = {
  arm: known('linux/arm64'),
  amd: known('linux/amd64'),
  both: known('linux/amd64,linux/arm64'),
  cold: pending,
  denied: failed(9999),
};

type Given = {
  readonly images?: readonly string[];
  readonly labels?: unknown;
  readonly suspend?: boolean;
  readonly template?: JsonObject;
  readonly spec?: JsonObject;
};

/** A Job that waits in the queue `main`, which Kueue has suspended. */
function job({ images = ['arm'], labels = QUEUED, suspend = true, template = {}, spec = {} }: Given = {}): JsonObject {
  const containers = images.map((image, index) => ({ name: `c${index}`, image }));
  const pods = { metadata: template, spec: { containers, restartPolicy: 'Never', ...spec } };
  return { metadata: { name: 'train', labels }, spec: { suspend, template: pods } };
}

const QUEUED = { 'kueue.x-k8s.io/queue-name': 'main' };

/** Returns the pod spec of a Job after its review. */
function admitted(object: JsonObject, mode: Settings['mode'] = 'both', more: Partial<Settings> = {}) {
  const namespace: SubjectNamespace = { name: 'team', labels: {}, preferred: 'arm64=75' };
  const { clusterArchitectures, namesOf, answerOf } = input(answers);
  const all = settings({ mode, ...more });
  const patch = admitJob({ object, namespace, settings: all, clusterArchitectures, namesOf, answerOf });
  const after = jsonPatch(object, JSON.stringify(patch));
  return { patch, after, spec: objectAt(objectAt(objectAt(after, 'spec'), 'template'), 'spec') };
}

/** Returns what a Job's template requires and tolerates: `arch in (arm64); tolerates arm64`. */
function said({ spec }: ReturnType<typeof admitted>): string {
  const tolerated = (Array.isArray(spec.tolerations) ? spec.tolerations : []).map(({ value }) => value);
  const parts = [shown(spec), tolerated.length === 0 ? '' : `tolerates ${tolerated.join()}`];
  return parts.filter((part) => part !== '').join('; ');
}

const SELECTS_AMD = { nodeSelector: { 'kubernetes.io/arch': 'amd64' } };
const asks = (text: string) => ({ affinity: requires(term(text)) });
const X = toleration('x=y:NoSchedule');

describe('a new Job that waits in a queue of Kueue', () => {
  const modes: readonly [mode: Settings['mode'], expected: string][] = [
    ['taints', 'tolerates arm64'],
    ['affinity', 'arch In arm64'],
    ['both', 'arch In arm64; tolerates arm64'],
    ['observe', ''],
  ];
  for (const [mode, expected] of modes)
    it(`gets in its template what the mode ${mode} gives to its pods: ${expected || 'nothing'}`, () =>
      expect(said(admitted(job(), mode))).to.equal(expected));

  const FIRST = 'arch In arm64; tolerates arm64';
  const rows: readonly [given: string, given: Given, expected: string, more?: Partial<Settings>][] = [
    ['an image for two architectures', { images: ['both'] }, 'arch In amd64,arm64; tolerates amd64,arm64'],
    ['that Kueue has not suspended yet', { suspend: false }, FIRST],
    ['an image that is not known yet', { images: ['arm', 'cold'] }, ''],
    ['an image that cannot be looked up, for however long', { images: ['arm', 'denied'] }, ''],
    ['images without a common architecture', { images: ['arm', 'amd'] }, ''],
    ['the same, released', { images: ['arm', 'amd'] }, '', { noCommonArchitecture: 'release' }],
    ['a node of its own', { spec: { nodeName: 'n1' } }, ''],
    ['an architecture by its selector', { spec: SELECTS_AMD }, 'tolerates arm64'],
    ['a requirement of its own', { spec: asks('arch In amd64') }, 'arch In amd64; tolerates arm64'],
    ['a toleration of its own', { spec: { tolerations: [X] } }, 'arch In arm64; tolerates y,arm64'],
    ['no queue', { labels: { app: 'x' } }, ''],
    ['no labels', { labels: null }, ''],
    ['the label to ignore it', { labels: { ...QUEUED, 'archaware.dev/ignore': 'true' } }, ''],
    ['a template with that label', { template: { labels: { 'archaware.dev/ignore': 'true' } } }, ''],
    ['a namespace that is excluded', {}, '', { excludeNamespaces: ['te*'] }],
  ];
  for (const [given, of, expected, more] of rows)
    it(`with ${given}: ${expected || 'is left alone'}`, () =>
      expect(said(admitted(job(of), 'both', more))).to.equal(expected));

  it('keeps everything else, and a second review adds nothing', () => {
    const { patch, after } = admitted(job());
    expect(patch.map(({ op, path }) => `${op} ${path}`)).to.deep.equal([
      'add /spec/template/spec/tolerations',
      'add /spec/template/spec/affinity',
    ]);
    expect(admitted(after).patch).to.deep.equal([]);
  });

  it('has no object of the expected form', () => {
    const bodies = [{}, { metadata: { labels: QUEUED } }, { metadata: { labels: QUEUED }, spec: { template: 5 } }];
    for (const body of bodies) expect(admitted(body, 'affinity').patch).to.deep.equal([]);
  });
});
