import { expect } from 'chai';
import { refusedParts } from '../../src/placement/refused-parts.ts';

describe('the parts that a refusal names', () => {
  for (const [message, expected] of [
    // As Kubernetes 1.37 and its plug-ins say it.
    [
      "pods \"web-1\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: tolerations are not allowed in this namespace",
      'tolerations',
    ],
    [
      'pod tolerations (possibly merged with namespace default tolerations) conflict with its namespace whitelist',
      'tolerations',
    ],
    ['denied request: scheduling gates are not allowed in this namespace', 'gate'],
    ['denied request: failed expression: !has(object.spec.schedulingGates)', 'gate'],
    [
      'denied request: failed expression: !has(object.spec.tolerations) || object.spec.tolerations.all(t, has(t.key))',
      'tolerations',
    ],
    ['denied request: node affinity is set by the platform', 'affinity'],
    ['denied request: only archaware may use supported-arch', 'tolerations'],
    ['denied request: archaware.dev/architecture is not known here', 'gate'],
    ['denied request: kubernetes.io/arch belongs to the platform', 'affinity'],
    ['denied request: neither tolerations nor schedulingGates', 'tolerations gate'],
    // Nothing about what archaware adds.
    ['pods "web-1" is forbidden: exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2', ''],
    ['violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false', ''],
    ['denied request: kubernetes.io/archive is not supported-architecture', ''],
    // An outage, and a rejection of archaware itself.
    ['Internal error occurred: failed calling webhook "tolerations.example.com": no endpoints', ''],
    ['admission webhook "pods.archaware.dev" denied the request: no common architecture, no toleration helps', ''],
  ] as const) {
    it(`in "${message.slice(0, 100)}": ${expected || 'none'}`, () =>
      expect(refusedParts(message, 'supported-arch').join(' ')).to.equal(expected));
  }

  it('include the tolerations where the message has the configured key', () => {
    expect(refusedParts('denied request: example.com/arch', 'example.com/arch')).to.deep.equal(['tolerations']);
    expect(refusedParts('denied request: supported-arch', 'example.com/arch')).to.deep.equal([]);
  });
});
