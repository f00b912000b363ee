import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseAllDocuments, stringify } from 'yaml';
import type { Cluster } from '../../../hack/cluster/cluster.ts';
import { at } from '../../../hack/cluster/json.ts';
import { stagesFile, startKwok } from '../../../hack/cluster/kwok.ts';
import { freePorts } from '../../../hack/cluster/ports.ts';
import { binaries, type Component, startComponent } from '../../../hack/cluster/spawn.ts';

// Karpenter with its kwok provider: the scheduler, consolidation and drift are real, only the machines are simulated.
// Three things differ from plain kwok, to be like a cloud: arm64 costs less, nodes register with the status and the
// taints that a kubelet sends, and they take some seconds to become Ready.

/** `build-karpenter.sh` puts it beside the binaries. */
const CRDS = 'karpenter-crds.yaml';
const CORES = [1, 2, 4, 8];
/** By the core and hour. */
const PRICES = { amd64: 0.05, arm64: 0.04 };

/** Instance types as a provider offers them: `c-2x-arm64` has two cores. Those of arm64 cost a fifth less, as on most clouds. */
export const instanceTypes = () =>
  Object.entries(PRICES).flatMap(([architecture, price]) =>
    CORES.map((cores) => ({
      name: `c-${cores}x-${architecture}`,
      architecture,
      operatingSystems: ['linux'],
      resources: { cpu: String(cores), memory: `${cores * 2}Gi`, 'ephemeral-storage': '20Gi', pods: '110' },
      offerings: [
        {
          Price: cores * price,
          Available: true,
          Requirements: [
            { key: 'karpenter.sh/capacity-type', operator: 'In', values: ['on-demand'] },
            { key: 'topology.kubernetes.io/zone', operator: 'In', values: ['zone-a'] },
          ],
        },
      ],
    })),
  );

const POLICY = 'like-a-kubelet';

/**
 * What a kubelet sends when it registers: its architecture, that it is not Ready yet, and the taints of its NodePool.
 */
const likeAKubelet = () => {
  // Map literals, because objects in JSON patches make the API server of Kubernetes 1.36.3 panic.
  const status = `[
    JSONPatch{op: "add", path: "/status/nodeInfo/architecture", value: object.metadata.labels["kubernetes.io/arch"]},
    JSONPatch{op: "add", path: "/status/nodeInfo/operatingSystem", value: "linux"},
    JSONPatch{op: "add", path: "/status/conditions", value: [
      {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "container runtime network not ready"}
    ]}
  ]`;
  const taintsOf = (list: string) => `(
    has(params.spec.template.spec.${list})
    ? params.spec.template.spec.${list}.map(taint, JSONPatch{op: "add", path: "/spec/taints/-",
        value: {"key": taint.key, "value": has(taint.value) ? taint.value : "", "effect": taint.effect}})
    : []
  )`;
  const isOfPool = 'object.metadata.labels["karpenter.sh/nodepool"] == params.metadata.name';
  const expression = `${isOfPool} ? ${status} + ${taintsOf('taints')} + ${taintsOf('startupTaints')} : []`;
  return [
    {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'MutatingAdmissionPolicy',
      metadata: { name: POLICY },
      spec: {
        reinvocationPolicy: 'Never',
        failurePolicy: 'Fail',
        paramKind: { apiVersion: 'karpenter.sh/v1', kind: 'NodePool' },
        matchConstraints: {
          resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['nodes'] }],
        },
        matchConditions: [
          {
            name: 'of-karpenter',
            expression: 'has(object.metadata.labels) && "karpenter.sh/nodepool" in object.metadata.labels',
          },
        ],
        mutations: [{ patchType: 'JSONPatch', jsonPatch: { expression } }],
      },
    },
    {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'MutatingAdmissionPolicyBinding',
      metadata: { name: POLICY },
      spec: { policyName: POLICY, paramRef: { selector: {}, parameterNotFoundAction: 'Allow' } },
    },
  ];
};

/** About the time that a kubelet needs to set up its network and become Ready. */
const UNREADY_MS = 5_000;

/**
 * Starts kwok beside a cluster that has none, with nodes that take some seconds to become Ready. By default they are
 * Ready at once, and pods would be bound before any controller could have seen the node.
 */
export async function startSlowKubelets(cluster: Cluster): Promise<Component> {
  const stages = parseAllDocuments(await readFile(stagesFile(), 'utf8')).map((document) => document.toJS());
  const slower = stages.map((stage) =>
    at(stage, 'metadata', 'name') === 'node-initialize'
      ? { ...stage, spec: { ...stage.spec, delay: { durationMilliseconds: UNREADY_MS } } }
      : stage,
  );
  const file = join(cluster.directory, 'slow-stages.yaml');
  await writeFile(file, slower.map((stage) => stringify(stage)).join('---\n'));
  return startKwok(join(cluster.directory, 'kwok.kubeconfig'), { directory: cluster.directory }, 'all', file);
}

/** Starts Karpenter beside the cluster. The log is `karpenter.out.log` in the cluster's directory. */
export async function startKarpenter(cluster: Cluster): Promise<Component> {
  const types = join(cluster.directory, 'instance-types.json');
  const [crds, [metrics = 0, health = 0]] = await Promise.all([
    readFile(join(binaries(), CRDS), 'utf8'),
    freePorts(2),
    writeFile(types, JSON.stringify(instanceTypes())),
  ]);
  await cluster.apply(crds);
  await cluster.kubectl(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=30s']);
  await cluster.apply(
    likeAKubelet()
      .map((object) => stringify(object))
      .join('---\n'),
  );
  return startComponent({
    name: 'karpenter',
    directory: cluster.directory,
    args: [],
    env: {
      KUBECONFIG: cluster.kubeconfig,
      SYSTEM_NAMESPACE: 'kube-system',
      KARPENTER_SERVICE: 'karpenter',
      DISABLE_LEADER_ELECTION: 'true',
      METRICS_PORT: String(metrics),
      HEALTH_PROBE_PORT: String(health),
      INSTANCE_TYPES_FILE_PATH: types,
    },
    ready: async () => (await fetch(`http://127.0.0.1:${health}/readyz`)).ok,
  });
}
