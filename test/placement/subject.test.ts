import { expect } from 'chai';
import type { JsonObject } from '../../src/kit/json.ts';
import { readNamespace } from '../../src/placement/objects/namespace.ts';
import { readPod } from '../../src/placement/objects/pod.ts';
import { readPodSubject } from '../../src/placement/subject.ts';
import { settings } from './objects.ts';

const NAMESPACE = readNamespace({ metadata: { name: 'shop' } });
const SETTINGS = settings();

function subjectOf(spec: JsonObject, metadata: JsonObject = {}) {
  return readPodSubject(readPod({ metadata, spec: { containers: [{ image: 'a' }], ...spec } }), NAMESPACE, SETTINGS);
}

describe('the key of a subject', () => {
  it('is the same for the pods of a template', () => {
    const [one, other] = ['1', '2'].map((uid) => subjectOf({}, { uid, name: `web-${uid}`, resourceVersion: uid }));
    expect(one).to.equal(other);
  });

  it('changes with what decides', () => {
    expect(subjectOf({}).key).not.to.equal(subjectOf({ containers: [{ image: 'b' }] }).key);
  });
});
