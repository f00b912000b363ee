import { expect } from 'chai';
import type { JsonObject } from '../../../src/kit/json.ts';
import { readQuantity, requestsOf } from '../../../src/placement/objects/requests.ts';

const wants = (cpu: unknown, more: JsonObject = {}): JsonObject => ({ resources: { requests: { cpu } }, ...more });
const sidecar = (cpu: unknown) => wants(cpu, { restartPolicy: 'Always' });

describe('the requests of a pod', () => {
  const quantities: readonly (readonly [value: unknown, expected: number])[] = [
    ['250m', 0.25],
    ['1', 1],
    [2, 2],
    [0.5, 0.5],
    ['1.5', 1.5],
    ['.5', 0.5],
    ['500u', 5e-4],
    ['1k', 1000],
    ['1Ki', 1024],
    ['1.5Gi', 1.5 * 1024 ** 3],
    ['128M', 128e6],
    ['2e3', 2000],
    ['1E', 1e18],
    ['-1', 0],
    ['1 Gi', 0],
    ['', 0],
    [null, 0],
    [{}, 0],
  ];
  for (const [value, expected] of quantities)
    it(`reads ${JSON.stringify(value)} as ${expected}`, () => expect(readQuantity(value)).to.equal(expected));

  const specs: readonly (readonly [title: string, spec: JsonObject, cpu: number])[] = [
    ['nothing', {}, 0],
    ['the sum of the containers', { containers: [wants('1'), wants('500m')] }, 1.5],
    ['a limit where there is no request', { containers: [{ resources: { limits: { cpu: '2' } } }] }, 2],
    ['a request of 0 over a limit', { containers: [{ resources: { requests: { cpu: 0 }, limits: { cpu: '2' } } }] }, 0],
    ['a big init container', { containers: [wants('1')], initContainers: [wants('4'), wants('2')] }, 4],
    ['a small init container', { containers: [wants('3')], initContainers: [wants('2')] }, 3],
    ['a sidecar beside the containers', { containers: [wants('1')], initContainers: [sidecar('1')] }, 2],
    ['an init container after a sidecar', { containers: [wants('1')], initContainers: [sidecar('1'), wants('3')] }, 4],
    ['an init container before a sidecar', { containers: [wants('1')], initContainers: [wants('3'), sidecar('1')] }, 3],
    ['overhead', { containers: [wants('1')], overhead: { cpu: '250m' } }, 1.25],
    ["the pod's own request", { containers: [wants('1'), wants('1')], resources: { requests: { cpu: '5' } } }, 5],
  ];
  for (const [title, spec, cpu] of specs)
    it(`counts ${title}`, () => expect(requestsOf(spec)).to.deep.equal({ cpu, memory: 0 }));
});
