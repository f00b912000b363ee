/** A policy of the cluster about the pods and DaemonSets of one namespace. */
export function refusing(
  namespace: string,
  validation: { readonly expression: string; readonly message: string },
): string {
  const metadata = { name: `refuse-in-${namespace}` };
  const resourceRules = [
    {
      apiGroups: ['', 'apps'],
      apiVersions: ['v1'],
      operations: ['CREATE', 'UPDATE'],
      resources: ['pods', 'daemonsets'],
    },
  ];
  const namespaceSelector = { matchLabels: { 'kubernetes.io/metadata.name': namespace } };
  const apiVersion = 'admissionregistration.k8s.io/v1';
  const policy = { matchConstraints: { namespaceSelector, resourceRules }, validations: [validation] };
  const binding = { policyName: metadata.name, validationActions: ['Deny'] };
  const items = [
    { apiVersion, kind: 'ValidatingAdmissionPolicy', metadata, spec: policy },
    { apiVersion, kind: 'ValidatingAdmissionPolicyBinding', metadata, spec: binding },
  ];
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
}
