import { kubeletClient } from './control-plane.ts';
import { nodeAddresses, registryName } from './node-config.ts';
import { nodeImages } from './node-images.ts';

const rbac = 'rbac.authorization.k8s.io/v1';
const admission = 'admissionregistration.k8s.io/v1';

/** Lets the API server ask the kubelet for logs, and to run a command. */
const kubeletAccess = [
  {
    apiVersion: rbac,
    kind: 'ClusterRoleBinding',
    metadata: { name: kubeletClient },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'system:kubelet-api-admin' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: kubeletClient }],
  },
];

/**
 * Sends pods of the namespace `archaware` to the real node: its Deployment spreads its replicas, and nothing really
 * runs on a node of kwok. JSONPatch, because ApplyConfiguration refuses to set a node selector, which is an atomic map.
 */
function steering(node: string) {
  const name = 'real-node';
  const value = `{"kubernetes.io/hostname": "${node}"}`;
  const expression = `[JSONPatch{op: "add", path: "/spec/nodeSelector", value: ${value}}]`;
  const spec = {
    failurePolicy: 'Fail',
    reinvocationPolicy: 'Never',
    matchConstraints: {
      namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'archaware' } },
      resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
    },
    mutations: [{ patchType: 'JSONPatch', jsonPatch: { expression } }],
  };
  return [
    { apiVersion: admission, kind: 'MutatingAdmissionPolicy', metadata: { name }, spec },
    { apiVersion: admission, kind: 'MutatingAdmissionPolicyBinding', metadata: { name }, spec: { policyName: name } },
  ];
}

/** It resolves the names of Services and the registry's; no others exist. */
const corefile = `.:53 {
  errors
  ready
  kubernetes cluster.local in-addr.arpa
  hosts {
    ${nodeAddresses.node} ${registryName}
    fallthrough
  }
  template ANY ANY {
    rcode NXDOMAIN
  }
}
`;

function dns(node: string) {
  const metadata = { name: 'coredns', namespace: 'kube-system' };
  const labels = { 'k8s-app': 'kube-dns' };
  const spec = {
    serviceAccountName: 'coredns',
    priorityClassName: 'system-cluster-critical',
    nodeSelector: { 'kubernetes.io/hostname': node },
    containers: [
      {
        name: 'coredns',
        image: nodeImages.coredns,
        imagePullPolicy: 'Never',
        args: ['-conf', '/etc/coredns/Corefile'],
        readinessProbe: { httpGet: { path: '/ready', port: 8181 }, periodSeconds: 1 },
        volumeMounts: [{ name: 'config', mountPath: '/etc/coredns' }],
      },
    ],
    volumes: [{ name: 'config', configMap: { name: 'coredns' } }],
  };
  const watched = [
    { apiGroups: [''], resources: ['services', 'namespaces'], verbs: ['list', 'watch'] },
    { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list', 'watch'] },
  ];
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata },
    { apiVersion: rbac, kind: 'ClusterRole', metadata: { name: 'system:coredns' }, rules: watched },
    {
      apiVersion: rbac,
      kind: 'ClusterRoleBinding',
      metadata: { name: 'system:coredns' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'system:coredns' },
      subjects: [{ kind: 'ServiceAccount', ...metadata }],
    },
    { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { Corefile: corefile } },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { ...metadata, labels },
      spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { ...metadata, name: 'kube-dns' },
      spec: {
        clusterIP: nodeAddresses.dns,
        selector: labels,
        ports: ['UDP', 'TCP'].map((protocol) => ({ name: `dns-${protocol.toLowerCase()}`, port: 53, protocol })),
      },
    },
  ];
}

/** Returns the objects that a cluster with a real node begins with. */
export const nodeObjects = (node: string) => [...kubeletAccess, ...steering(node), ...dns(node)];
