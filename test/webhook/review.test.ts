import { expect } from 'chai';
import { systemClock } from '../../src/kit/clock.ts';
import { type JsonObject, objectAt, parseObject, stringAt } from '../../src/kit/json.ts';
import type { ImageAnswer } from '../../src/placement/images.ts';
import { RequestError, type Reviewed } from '../../src/webhook/body.ts';
import { createReviewer, type ReviewerOptions } from '../../src/webhook/review.ts';
import { known, pending, settings } from '../placement/objects.ts';

type Asked = { image: string; namespace: string; pullSecrets: readonly string[]; ask: boolean };

/** A reviewer, and the lookups that it started. */
function reviewer(options: Partial<ReviewerOptions> = {}, answers: Readonly<Record<string, ImageAnswer>> = {}) {
  const asked: Asked[] = [];
  const review = createReviewer({
    settings: () => settings({ mode: 'both' }),
    namespaceOf: (name) => ({ name, uid: 'n', resourceVersion: '1', labels: {}, preferred: undefined }),
    clusterArchitectures: () => ['amd64', 'arm64'],
    liveTaints: () => new Set(),
    namesOf: (image) => [image],
    answerOf(image, namespace, pullSecrets, mayStart) {
      asked.push({ image: image.image, namespace, pullSecrets, ask: mayStart() });
      return answers[image.image] ?? known('linux/arm64');
    },
    mayLookUp: () => true,
    mayGate: () => true,
    refused: () => [],
    ownNamespace: 'archaware',
    warns: false,
    clock: systemClock,
    ...options,
  });
  return { review, asked };
}

const POD: JsonObject = {
  metadata: { generateName: 'web-' },
  spec: { containers: [{ name: 'c', image: 'a' }], imagePullSecrets: [{ name: 'one' }] },
};
const SET: JsonObject = { metadata: { name: 'd' }, spec: { template: { metadata: {}, spec: POD.spec } } };
const owned = (uid: string, controller = true): JsonObject => ({
  ...POD,
  metadata: { ownerReferences: [{ kind: 'ReplicaSet', name: 'web', uid, controller }] },
});
const pods = { group: '', version: 'v1', resource: 'pods' };
const daemonSets = { group: 'apps', version: 'v1', resource: 'daemonsets' };

const REVIEW = { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview' };

function asking(request: JsonObject = {}): JsonObject {
  return {
    ...REVIEW,
    request: { uid: 'u1', resource: pods, operation: 'CREATE', namespace: 'shop', object: POD, ...request },
  };
}

/** The response in an answer. */
function responseIn({ text }: Reviewed): JsonObject {
  return objectAt(parseObject(text) ?? {}, 'response');
}

/** The operations in an answer. */
function patchIn(answer: Reviewed): unknown {
  return JSON.parse(Buffer.from(stringAt(responseIn(answer), 'patch') ?? '', 'base64').toString());
}

const ALLOWED = JSON.stringify({ ...REVIEW, response: { uid: 'u1', allowed: true } });

describe('the answer to a review of a pod', () => {
  it('names the uid of its own request, whatever is in it, also if the verdict is remembered', () => {
    const { review } = reviewer();
    for (const uid of ['u1', 'u2', '"},"allowed":false,{"', 'ä\u2028\\']) {
      const { uid: answered, allowed, patchType } = responseIn(review(asking({ uid })));
      expect({ answered, allowed, patchType }).to.deep.equal({ answered: uid, allowed: true, patchType: 'JSONPatch' });
    }
  });

  describe('leaves out what the API server refused in pods of the same owner', () => {
    const refused = (namespace: string, owner: string) =>
      namespace === 'shop' && owner === 'rs1' ? (['tolerations'] as const) : [];
    for (const [what, given, request, expected] of [
      ['of its owner', 'withdraw', { object: owned('rs1') }, false],
      ['not of another owner', 'withdraw', { object: owned('rs2') }, true],
      ['not of its uid in another namespace', 'withdraw', { object: owned('rs1'), namespace: 'mine' }, true],
      ['not of an owner that does not control it', 'withdraw', { object: owned('rs1', false) }, true],
      ['not with placement.refused: keep', 'keep', { object: owned('rs1') }, true],
    ] as const) {
      it(what, () => {
        const { review } = reviewer({ refused, settings: () => settings({ mode: 'both', refused: given }) });
        const patch = JSON.stringify(patchIn(review(asking(request))));
        expect(patch.includes('/spec/tolerations')).to.equal(expected);
        expect(patch).to.contain('/spec/affinity');
      });
    }
  });

  it('is a JSON Patch if its images are known', () => {
    const answer = reviewer().review(asking());
    expect(answer.outcome).to.equal('patched');
    const { patch, ...response } = responseIn(answer);
    expect(response).to.deep.equal({ uid: 'u1', allowed: true, patchType: 'JSONPatch' });
    expect(patchIn(answer)).to.deep.include({
      op: 'add',
      path: '/spec/tolerations',
      value: [{ key: 'supported-arch', operator: 'Equal', value: 'arm64', effect: 'NoSchedule' }],
    });
  });

  it('is the gate if they are not known', () => {
    const answer = reviewer({}, { a: pending }).review(asking());
    expect(answer.outcome).to.equal('gated');
    expect(patchIn(answer)).to.deep.equal([
      { op: 'add', path: '/spec/schedulingGates', value: [{ name: 'archaware.dev/architecture' }] },
    ]);
  });

  it('has no patch if nobody could release the pod', () => {
    const answer = reviewer({ mayGate: () => false }, { a: pending }).review(asking());
    expect(answer).to.deep.equal({ outcome: 'unchanged', text: ALLOWED });
  });

  it('rejects a pod that runs nowhere, in the mode reject, with a printable message', () => {
    const images = Array.from({ length: 9 }, (_, index) => `a\u001b[31m${index}${'x'.repeat(700)}`);
    const strict = reviewer(
      { settings: () => settings({ noCommonArchitecture: 'reject' }) },
      Object.fromEntries(images.map((image) => [image, known('windows/amd64')])),
    );
    const containers = images.map((image, index) => ({ name: `c${index}`, image }));
    const answer = strict.review(asking({ object: { ...POD, spec: { containers } } }));
    expect(answer.outcome).to.equal('rejected');
    const response = responseIn(answer);
    const { message, ...status } = objectAt(response, 'status');
    expect({ ...response, status }).to.deep.equal({
      uid: 'u1',
      allowed: false,
      status: { code: 403, reason: 'Forbidden' },
    });
    expect(message).to.match(/^no architecture for linux is common to all images: a\\u001b\[31m0x+ .*…$/);
    expect(Buffer.byteLength(String(message))).to.be.at.most(4096);
  });

  it('looks images up with the namespace and the pull secrets of the pod', () => {
    const { review, asked } = reviewer();
    review(asking());
    expect(asked).to.deep.equal([{ image: 'a', namespace: 'shop', pullSecrets: ['one'], ask: true }]);
  });

  it('starts no lookup for a dry run', () => {
    const { review, asked } = reviewer({}, { a: pending });
    expect(review(asking({ dryRun: true })).outcome).to.equal('gated');
    expect(asked.map(({ ask }) => ask)).to.deep.equal([false]);
  });

  it('starts a limited number of lookups, and counts only those that begin', () => {
    const object = (count: number): JsonObject => ({
      ...POD,
      spec: { containers: Array.from({ length: count }, (_, index) => ({ name: `c${index}`, image: `i${index}` })) },
    });
    const counted: string[] = [];
    let left = 100;
    const mayLookUp = (namespace: string) => {
      counted.push(namespace);
      return left-- > 0;
    };
    const asks = (count: number, more: JsonObject = {}) => {
      const { review, asked } = reviewer(
        { mayLookUp },
        Object.fromEntries(Array.from({ length: count }, (_, index) => [`i${index}`, pending])),
      );
      expect(review(asking({ object: object(count), ...more })).outcome).to.equal('gated');
      return asked.filter(({ ask }) => ask).length;
    };
    expect([asks(80), asks(30), asks(30), asks(1), asks(1, { dryRun: true })]).to.deep.equal([64, 30, 6, 0, 0]);
    expect(new Set(counted)).to.deep.equal(new Set(['shop']));
    expect(counted).to.have.length(64 + 30 + 30 + 1);
  });

  it('uses the present settings and the present cluster', () => {
    let mode: 'taints' | 'affinity' = 'taints';
    const { review } = reviewer({ settings: () => settings({ mode }) });
    expect(JSON.stringify(patchIn(review(asking())))).not.to.include('affinity');
    mode = 'affinity';
    expect(JSON.stringify(patchIn(review(asking())))).to.include('nodeAffinity');
  });

  it('treats an unknown namespace as one without labels', () => {
    const { review, asked } = reviewer({ namespaceOf: () => undefined });
    expect(review(asking({ namespace: 'kube-new', object: POD })).outcome).to.equal('patched');
    expect(asked.map(({ namespace }) => namespace)).to.deep.equal(['kube-new']);
    const cold = reviewer({ namespaceOf: () => undefined }, { a: pending });
    expect(cold.review(asking({ namespace: 'kube-new' })).outcome, 'a system namespace').to.equal('unchanged');
    expect(cold.review(asking({ namespace: 'shop' })).outcome, "a user's namespace").to.equal('gated');
  });

  it('skips a namespace with the label to ignore it', () => {
    const ignored = { name: 'shop', uid: 'n', resourceVersion: '1', labels: { 'archaware.dev/ignore': 'true' } };
    const { review, asked } = reviewer({ namespaceOf: () => ({ ...ignored, preferred: undefined }) });
    expect(review(asking())).to.deep.equal({ outcome: 'unchanged', text: ALLOWED });
    expect(asked).to.deep.equal([]);
  });
});

describe('the answer to a review of a DaemonSet', () => {
  const create = { resource: daemonSets, object: SET };

  it('has its tolerations and their record', () => {
    const { review, asked } = reviewer();
    const answer = review(asking(create));
    expect(answer.outcome).to.equal('patched');
    expect(JSON.stringify(patchIn(answer))).to.include('/spec/template/spec/tolerations');
    expect(asked).to.deep.equal([{ image: 'a', namespace: 'shop', pullSecrets: ['one'], ask: true }]);
  });

  it('restores tolerations that an update drops, from the object before the update', () => {
    const toleration = { key: 'supported-arch', operator: 'Equal', value: 'arm64', effect: 'NoSchedule' };
    const before = {
      metadata: { name: 'd', annotations: { 'archaware.dev/tolerations': JSON.stringify([toleration]) } },
      spec: { template: { metadata: {}, spec: { ...objectAt(POD, 'spec'), tolerations: [toleration] } } },
    };
    const { review, asked } = reviewer();
    const update = { ...create, operation: 'UPDATE', oldObject: before };
    expect(review(asking(update)).outcome).to.equal('patched');
    expect(asked, 'its images are as they were').to.deep.equal([]);
    const ours = { ...update, options: { fieldManager: 'archaware-controller' } };
    expect(review(asking(ours)).outcome, 'our own').to.equal('unchanged');
  });

  it('has no patch if nothing is missing, and never the gate', () => {
    const answer = reviewer({}, { a: pending }).review(asking(create));
    expect(answer).to.deep.equal({ outcome: 'unchanged', text: ALLOWED });
  });
});

describe('the answer to a review of a Job in a queue of Kueue', () => {
  const object = { ...SET, metadata: { name: 'j', labels: { 'kueue.x-k8s.io/queue-name': 'main' } } };
  const create = { resource: { group: 'batch', version: 'v1', resource: 'jobs' }, object };

  it('is a patch of its template if its images are known, from memory', () => {
    const { review, asked } = reviewer();
    const answer = review(asking(create));
    expect(answer.outcome).to.equal('patched');
    expect(JSON.stringify(patchIn(answer))).to.include('/spec/template/spec/affinity');
    expect(asked).to.deep.equal([{ image: 'a', namespace: 'shop', pullSecrets: ['one'], ask: true }]);
  });

  it('has no patch if they are not, and starts their lookups for the next Job', () => {
    const { review, asked } = reviewer({}, { a: pending });
    expect(review(asking(create))).to.deep.equal({ outcome: 'unchanged', text: ALLOWED });
    expect(asked.map(({ ask }) => ask)).to.deep.equal([true]);
    review(asking({ ...create, dryRun: true }));
    expect(asked.map(({ ask }) => ask)).to.deep.equal([true, false]);
  });

  it('has no patch for an update, with which Kueue starts it, or without a queue', () => {
    const { review, asked } = reviewer();
    for (const other of [{ operation: 'UPDATE', oldObject: object }, { object: SET }]) {
      expect(review(asking({ ...create, ...other }))).to.deep.equal({ outcome: 'unchanged', text: ALLOWED });
    }
    expect(asked).to.deep.equal([]);
  });
});

describe('a review of another kind or operation', () => {
  const rows: [given: string, request: JsonObject][] = [
    ['an update of a pod', { operation: 'UPDATE', oldObject: POD }],
    ['the end of a pod, which has no object', { operation: 'DELETE', object: null, oldObject: POD }],
    ['a connection', { operation: 'CONNECT', object: null }],
    ['the binding of a pod', { subResource: 'binding' }],
    ['the eviction of a pod', { subResource: 'eviction', object: { kind: 'Eviction' } }],
    ['an ephemeral container', { subResource: 'ephemeralcontainers', operation: 'UPDATE' }],
    ['the status of a DaemonSet', { resource: daemonSets, subResource: 'status', operation: 'UPDATE' }],
    ['another kind', { resource: { group: 'apps', version: 'v1', resource: 'deployments' } }],
    ['pods of another group', { resource: { group: 'metrics.k8s.io', version: 'v1beta1', resource: 'pods' } }],
    ['another version', { resource: { group: '', version: 'v2', resource: 'pods' } }],
    ['nothing at all', { resource: undefined, operation: undefined, object: undefined }],
    ['other types', { resource: 'pods', operation: {}, subResource: 5 }],
  ];
  for (const [given, request] of rows) {
    it(`is allowed as it is: ${given}`, () => {
      const { review, asked } = reviewer();
      expect(review(asking(request))).to.deep.equal({ outcome: 'unchanged', text: ALLOWED });
      expect(asked).to.deep.equal([]);
    });
  }
});

describe('a body that is not a review', () => {
  const BETA = 'admission.k8s.io/v1beta1';
  const deep = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`);
  const rows: [given: string, body: unknown, message: string][] = [
    ['nothing', undefined, 'the body: expected an AdmissionReview of admission.k8s.io/v1'],
    ['a list', [], 'the body: expected an AdmissionReview of admission.k8s.io/v1'],
    ['an empty object', {}, 'apiVersion: got nothing, expected "admission.k8s.io/v1"'],
    ['another version', { ...asking(), apiVersion: BETA }, `apiVersion: got "${BETA}", expected "admission.k8s.io/v1"`],
    ['another kind', { ...asking(), kind: 'Other' }, 'kind: got "Other", expected "AdmissionReview"'],
    ['no request', { ...asking(), request: undefined }, 'request: got nothing, expected an object'],
    ['a request that is a list', { ...asking(), request: deep }, 'request: got a list, expected an object'],
    ['no uid', asking({ uid: undefined }), 'request.uid: got nothing, expected a text'],
    ['an empty uid', asking({ uid: '' }), 'request.uid: got "", expected a text'],
    ['a uid of another type', asking({ uid: 7 }), 'request.uid: got 7, expected a text'],
    ['a uid that is an object', asking({ uid: { deep } }), 'request.uid: got an object, expected a text'],
    ['no object', asking({ object: null }), 'request.object: got null, expected an object'],
    ['an object that is a text', asking({ object: '\u001b' }), 'request.object: got "\\u001b", expected an object'],
    [
      'an update without the object before it',
      asking({ resource: daemonSets, operation: 'UPDATE', object: SET }),
      'request.oldObject: got nothing, expected an object',
    ],
  ];
  for (const [given, body, message] of rows) {
    it(`is refused with 400: ${given}`, () => {
      const { review } = reviewer();
      expect(() => review(body))
        .to.throw(RequestError, message)
        .that.includes({ status: 400, message });
    });
  }

  it('is shown in part only', () => {
    const { review } = reviewer();
    expect(() => review({ ...asking(), kind: 'x'.repeat(3_000_000) })).to.throw(/^kind: got "x{60,80}…, expected/);
  });
});

describe('the warnings in an answer', () => {
  const answers = { a: known('linux/amd64') };
  const template = { metadata: {}, spec: POD.spec };
  const text = 'image a runs on amd64 only; the pods will run on amd64 nodes';
  const warned = (request: JsonObject, options: Partial<ReviewerOptions> = { warns: true }) => {
    const { review, asked } = reviewer(options, answers);
    return { warnings: responseIn(review(asking(request))).warnings, asked };
  };
  const workload = { metadata: { name: 'w' }, spec: { template } };
  const rows: [group: string, resource: string, object: JsonObject][] = [
    ['', 'pods', POD],
    ['apps', 'deployments', workload],
    ['apps', 'statefulsets', workload],
    ['apps', 'daemonsets', workload],
    ['batch', 'jobs', workload],
    ['batch', 'cronjobs', { metadata: {}, spec: { jobTemplate: { spec: { template } } } }],
  ];
  for (const [group, resource, object] of rows) {
    it(`are for the author of ${resource}`, () => {
      const { warnings } = warned({ resource: { group, version: 'v1', resource }, operation: 'CREATE', object });
      expect(warnings).to.deep.equal([text]);
    });
  }

  const deployments = { resource: { group: 'apps', version: 'v1', resource: 'deployments' }, object: workload };

  it('start no lookup, and use what the pull secrets of the pods may see', () => {
    const { asked } = warned(deployments);
    expect(asked).to.deep.equal([{ image: 'a', namespace: 'shop', pullSecrets: ['one'], ask: false }]);
  });

  it('are left out for updates of something else, for what a controller made, for a rejected pod, and if they are off', () => {
    expect(warned({ ...deployments, operation: 'UPDATE', oldObject: workload }).warnings).to.equal(undefined);
    expect(warned({ object: owned('rs1') }).warnings).to.equal(undefined);
    expect(warned(deployments, {}).warnings).to.equal(undefined);
    const rejecting = settings({ mode: 'both', noCommonArchitecture: 'reject', schedulable: ['arm64'] });
    expect(warned({}, { warns: true, settings: () => rejecting }).warnings).to.equal(undefined);
  });
});
