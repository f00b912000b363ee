/** The objects of a big cluster as the API server sends them, as texts in which `@name@` stands for a field. */
import { MANAGED_ANNOTATION } from '../../../src/names.ts';

/** The fields of all texts, with their digits. `mm` and `ss` are a time that changes with each status update. */
export const FIELDS = {
  version: 10,
  mm: 2,
  ss: 2,
  index: 7,
  app: 6,
  space: 4,
  node: 6,
  image: 4,
} as const;
const WIDTHS: Readonly<Record<string, number>> = FIELDS;

/** What a pod or a node is made of. */
export type Numbers = Readonly<Record<Exclude<keyof typeof FIELDS, 'version' | 'mm' | 'ss'>, number>>;

/** Fills in the fields of a text that have a value, and leaves the others. `parts`: the text, split at its fields. */
export function filledIn(parts: readonly string[], values: Partial<Record<string, number>>): string {
  let text = parts[0] ?? '';
  for (let index = 1; index < parts.length; index += 2) {
    const name = parts[index] ?? '';
    const value = values[name];
    text += value === undefined ? `@${name}@` : String(value).padStart(WIDTHS[name] ?? 0, '0');
    text += parts[index + 1];
  }
  return text;
}

/** Splits a text at its fields: their names have the odd places. */
export function splitAtFields(text: string): readonly string[] {
  return text.split(/@([a-z]+)@/);
}

/** The number of namespaces. */
export const NAMESPACES = 200;
/** The number of pods of a ReplicaSet. */
export const PODS_OF_APP = 20;

/** The sizes of a cluster, and where its images are. */
export type Shape = {
  readonly pods: number;
  readonly nodes: number;
  readonly images: number;
  /** host:port and repository. */
  readonly repository: string;
};

/** The numbers of a pod. Running pods of one ReplicaSet have one image; new pods have one image after the other. */
export function podNumbers(index: number, { pods, nodes, images }: Omit<Shape, 'repository'>): Numbers {
  const app = Math.floor(index / PODS_OF_APP);
  const image = (index < pods ? app : index) % images;
  return { index, app, space: app % NAMESPACES, node: index % nodes, image };
}

/** The numbers of a node, DaemonSet or namespace. */
export function plainNumbers(index: number): Numbers {
  return { index, app: index, space: index % NAMESPACES, node: index, image: 0 };
}

/** Every fifth node is arm64, the others amd64. */
export function architectureOf(index: number): string {
  return index % 5 === 0 ? 'arm64' : 'amd64';
}

const NOW = '2026-11-22T10:@mm@:@ss@Z';
const CREATED = '2026-11-20T08:00:00Z';

const toleration = (value: string) => ({ key: 'supported-arch', operator: 'Equal', value, effect: 'NoSchedule' });
const DEFAULT_TOLERATIONS = ['not-ready', 'unreachable'].map((name) => ({
  key: `node.kubernetes.io/${name}`,
  operator: 'Exists',
  effect: 'NoExecute',
  tolerationSeconds: 300,
}));

/** `managedFields` of a writer that set as many fields as a controller usually does. */
function written(manager: string, groups: Readonly<Record<string, readonly string[]>>, time = CREATED) {
  const fieldsV1 = Object.fromEntries(
    Object.entries(groups).map(([group, fields]) => [
      `f:${group}`,
      Object.fromEntries(fields.map((field) => [`f:${field}`, { '.': {}, 'f:name': {}, 'f:value': {} }])),
    ]),
  );
  return { manager, operation: 'Update', apiVersion: 'v1', time, fieldsType: 'FieldsV1', fieldsV1 };
}

function containers({ repository }: Shape) {
  return ['web', 'proxy'].map((name) => ({
    name,
    image: `${repository}:t${name === 'web' ? '@image@' : '0000'}`,
    ports: [{ name: 'http', containerPort: 8080, protocol: 'TCP' }],
    env: Array.from({ length: 6 }, (_, index) => ({ name: `SETTING_${index}`, value: `value of setting ${index}` })),
    resources: { limits: { cpu: '1', memory: '512Mi' }, requests: { cpu: '100m', memory: '128Mi' } },
    volumeMounts: [
      { name: 'kube-api-access', readOnly: true, mountPath: '/var/run/secrets/kubernetes.io/serviceaccount' },
    ],
    readinessProbe: { httpGet: { path: '/ready', port: 8080, scheme: 'HTTP' }, timeoutSeconds: 1, periodSeconds: 10 },
    terminationMessagePath: '/dev/termination-log',
    terminationMessagePolicy: 'File',
    imagePullPolicy: 'IfNotPresent',
  }));
}

function podOf(shape: Shape, isBound: boolean) {
  const fields = { 'k:web': ['name', 'image', 'env', 'ports', 'resources'], 'k:proxy': ['name', 'image', 'env'] };
  const conditions = ['PodReadyToStartContainers', 'Initialized', 'Ready', 'ContainersReady', 'PodScheduled'];
  return {
    metadata: {
      name: 'app-@app@-5d4f8c7b9d-@index@',
      generateName: 'app-@app@-5d4f8c7b9d-',
      namespace: 'space-@space@',
      uid: '00000000-0000-4000-8000-00000@index@',
      resourceVersion: '@version@',
      generation: isBound ? '@generation@' : 1,
      creationTimestamp: CREATED,
      labels: { app: 'app-@app@', 'pod-template-hash': 'h@app@', 'app.kubernetes.io/part-of': 'shop' },
      annotations: { 'prometheus.io/scrape': 'true', 'checksum/config': 'c'.repeat(64) },
      ownerReferences: [
        {
          apiVersion: 'apps/v1',
          kind: 'ReplicaSet',
          name: 'app-@app@-5d4f8c7b9d',
          uid: '00000000-0000-4000-9000-000000@app@',
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
      managedFields: [
        written('kube-controller-manager', fields),
        ...(isBound ? [written('kubelet', { status: conditions }, NOW)] : []),
      ],
    },
    spec: {
      volumes: [{ name: 'kube-api-access', projected: { sources: [{ serviceAccountToken: { path: 'token' } }] } }],
      containers: containers(shape),
      restartPolicy: 'Always',
      terminationGracePeriodSeconds: 30,
      dnsPolicy: 'ClusterFirst',
      serviceAccountName: 'default',
      ...(isBound ? { nodeName: 'node-@node@' } : {}),
      securityContext: {},
      schedulerName: 'default-scheduler',
      tolerations: [...DEFAULT_TOLERATIONS, ...(isBound ? [toleration('amd64'), toleration('arm64')] : [])],
      priority: 0,
      enableServiceLinks: true,
      preemptionPolicy: 'PreemptLowerPriority',
    },
    status: isBound ? runningStatus(shape, conditions) : { phase: 'Pending', qosClass: 'Burstable' },
  };
}

function runningStatus({ repository }: Shape, conditions: readonly string[]) {
  return {
    phase: 'Running',
    conditions: conditions.map((type) => ({ type, status: 'True', lastProbeTime: null, lastTransitionTime: NOW })),
    hostIP: '10.0.0.1',
    podIP: '10.1.0.1',
    startTime: CREATED,
    containerStatuses: ['proxy', 'web'].map((name) => ({
      name,
      state: { running: { startedAt: NOW } },
      lastState: {},
      ready: true,
      restartCount: 0,
      image: `${repository}:t${name === 'web' ? '@image@' : '0000'}`,
      imageID: `${repository}@sha256:${'a'.repeat(64)}`,
      containerID: `containerd://${'b'.repeat(64)}`,
      started: true,
    })),
    qosClass: 'Burstable',
  };
}

/** A bound pod that runs and has its tolerations, or one that was just created. */
export function podText(shape: Shape, isBound: boolean): string {
  return JSON.stringify(podOf(shape, isBound)).replace('"@generation@"', '2');
}

/** A node with 50 images, about 10 KB. `isTainted`: it has the taint of archaware. */
export function nodeText(architecture: string, isTainted: boolean): string {
  const conditions = ['MemoryPressure', 'DiskPressure', 'PIDPressure', 'Ready'];
  const taint = { key: 'supported-arch', value: architecture, effect: 'NoSchedule' };
  const managed = { [MANAGED_ANNOTATION]: JSON.stringify({ taints: [`supported-arch=${architecture}:NoSchedule`] }) };
  return JSON.stringify({
    metadata: {
      name: 'node-@node@',
      uid: '00000000-0000-4000-a000-000000@node@',
      resourceVersion: '@version@',
      creationTimestamp: CREATED,
      labels: {
        'kubernetes.io/arch': architecture,
        'kubernetes.io/os': 'linux',
        'kubernetes.io/hostname': 'node-@node@',
        'node.kubernetes.io/instance-type': 'm6i.4xlarge',
        'topology.kubernetes.io/region': 'eu-central-1',
        'topology.kubernetes.io/zone': 'eu-central-1a',
      },
      annotations: { 'volumes.kubernetes.io/controller-managed-attach-detach': 'true', ...(isTainted ? managed : {}) },
      managedFields: [written('kubelet', { status: conditions, metadata: ['labels', 'annotations'] }, NOW)],
    },
    spec: {
      podCIDR: '10.1.0.0/24',
      providerID: 'aws:///eu-central-1a/i-@node@',
      ...(isTainted ? { taints: [taint] } : {}),
    },
    status: {
      capacity: { cpu: '16', memory: '64Gi', pods: '110' },
      allocatable: { cpu: '15', memory: '60Gi', pods: '110' },
      conditions: conditions.map((type) => ({
        type,
        status: type === 'Ready' ? 'True' : 'False',
        lastHeartbeatTime: NOW,
        lastTransitionTime: CREATED,
        reason: 'KubeletReportsIt',
        message: 'kubelet has reported this condition',
      })),
      addresses: [{ type: 'InternalIP', address: '10.0.0.1' }],
      nodeInfo: {
        architecture,
        operatingSystem: 'linux',
        kernelVersion: '6.12.0',
        osImage: 'Debian GNU/Linux 13 (trixie)',
        containerRuntimeVersion: 'containerd://2.1.0',
        kubeletVersion: 'v1.37.2',
      },
      images: Array.from({ length: 50 }, (_, index) => ({
        names: [
          `registry.example.com/team/image-${index}@sha256:${'c'.repeat(64)}`,
          `registry.example.com/team/image-${index}:1.2.3`,
        ],
        sizeBytes: 123_456_789,
      })),
    },
  });
}

/** A namespace. */
export function namespaceText(): string {
  return JSON.stringify({
    metadata: {
      name: 'space-@space@',
      uid: '00000000-0000-4000-b000-00000000@space@',
      resourceVersion: '@version@',
      creationTimestamp: CREATED,
      labels: { 'kubernetes.io/metadata.name': 'space-@space@' },
    },
    spec: { finalizers: ['kubernetes'] },
    status: { phase: 'Active' },
  });
}

/** A DaemonSet that tolerates everything and is rolled out. */
export function daemonSetText(shape: Shape): string {
  const { nodes } = shape;
  const labels = { app: 'agent-@index@' };
  return JSON.stringify({
    metadata: {
      name: 'agent-@index@',
      namespace: 'space-@space@',
      uid: '00000000-0000-4000-c000-00000@index@',
      resourceVersion: '@version@',
      generation: 1,
      creationTimestamp: CREATED,
      labels,
    },
    spec: {
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: { containers: containers(shape), tolerations: [{ operator: 'Exists' }], serviceAccountName: 'default' },
      },
      updateStrategy: { type: 'RollingUpdate' },
    },
    status: {
      observedGeneration: 1,
      desiredNumberScheduled: nodes,
      currentNumberScheduled: nodes,
      updatedNumberScheduled: nodes,
      numberAvailable: nodes,
      numberReady: nodes,
      numberMisscheduled: 0,
    },
  });
}
