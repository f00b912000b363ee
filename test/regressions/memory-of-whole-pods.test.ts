import { expect } from 'chai';
import type { JsonObject } from '../../src/kit/json.ts';
import { readPod } from '../../src/placement/objects/pod.ts';

// archaware-controller (2022) kept every object whole: 158 MB. This controller keeps only the fields that it reads;
// `npm run bench` measures that.
describe('the memory for a pod', () => {
  const pod = (padding: JsonObject): JsonObject => ({
    metadata: { name: 'p', namespace: 'default', uid: 'u', resourceVersion: '1', ...padding },
    spec: { containers: [{ name: 'c', image: 'app:1', env: [{ name: 'A', value: 'x'.repeat(1_000) }] }] },
    status: { phase: 'Running', conditions: [{ type: 'Ready', message: 'x'.repeat(1_000) }] },
  });

  it('does not grow with its annotations, managed fields, environment or status', () => {
    const small = JSON.stringify(readPod(pod({})));
    const annotations = { 'example.com/note': 'x'.repeat(10_000) };
    const managedFields = [{ manager: 'm', fieldsV1: { 'f:spec': 'x'.repeat(10_000) } }];
    expect(JSON.stringify(readPod(pod({ annotations, managedFields })))).to.equal(small);
    expect(small).to.not.contain('xxx');
  });
});
