import { isIP } from 'node:net';
import * as z from 'zod';
import {
  ADDRESS,
  architecture,
  architectures,
  bindAddress,
  choice,
  duration,
  flag,
  inPolicy,
  leaf,
  listenAddress,
  selector,
  texts,
  whole,
} from './leaves.ts';

const QUALIFIED = /^(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?\/)?[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/;
/** 1 to 65535. */
const PORT = /[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]/.source;
const HOST = new RegExp(`^(?:\\[[0-9a-fA-F:]+\\]|[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?)(?::(?:${PORT}))?$`);

/** The components of a repository, as in image names; see `oci/endpoints/mirrors`. */
const ENDPOINT = new RegExp(`^(?:https?://)?${HOST.source.slice(1, -1)}(?:/[a-z0-9]+(?:(?:[.]|__?|-+)[a-z0-9]+)*)*$`);
const MIRRORS_EXAMPLE =
  'a map such as {docker.io: {endpoints: [mirror.example.com/hub], fallback: true, credentials: mirror, sparse: false}}';

/** The form that the API server accepts in `clientConfig.service.path`: parts that are DNS names. */
const URL_PATH = /^(?:(?:\/[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*)+)?$/;

/** Names of namespaces, with wildcards. */
const GLOB = /^[a-z0-9*?.-]+$/;

/** The global keys that a policy may override. */
const decisive = {
  noCommonArchitecture: choice(
    ['hold', 'release', 'reject'],
    'hold',
    'What happens to a pod whose images have no architecture in common, or, in modes with affinity, not the one that it asks for. reject: admission refuses the pod, if all its images are known.',
  ),
  preferred: leaf(
    z.record(architecture, z.int().min(1).max(100)).default({}),
    'Architectures that the scheduler prefers, with weights from 1 to 100, if the mode includes affinity.',
    'a map from architectures to whole numbers from 1 to 100, such as {arm64: 75, amd64: 25}',
  ),
  schedulable: architectures('Architectures that pods may be placed on; empty: all.'),
  fallback: architectures(
    'Architectures for pods whose images cannot be resolved, with images.unresolvable: fallback.',
  ),
  unresolvable: choice(['open', 'wait', 'fallback'], 'open', 'What happens to pods whose images cannot be resolved.'),
};

const policy = z.strictObject({
  name: leaf(
    z.string().regex(/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/),
    'Name of the policy, for logs and Events.',
    'a name of lower-case letters, digits and -, such as team-a',
  ),
  namespaces: leaf(
    z.array(z.string().regex(GLOB)).min(1).optional(),
    'Namespaces that the policy applies to; not set: all.',
    'a list of namespace names in which * and ? are wildcards, such as team-*',
  ),
  namespaceSelector: selector('The same, by labels of the namespace; empty: all.'),
  podSelector: selector('Pods that the policy applies to, by their labels; empty: all.'),
  schedulable: inPolicy(decisive.schedulable),
  preferred: inPolicy(decisive.preferred),
  unresolvable: inPolicy(decisive.unresolvable),
  fallback: inPolicy(decisive.fallback),
  noCommonArchitecture: inPolicy(decisive.noCommonArchitecture),
});

const policies = leaf(
  z.array(policy).check(uniqueNames).default([]),
  'Settings for some of the pods; the first policy that matches a pod wins over the global keys.',
  'a list of {name: team-a, namespaces: [team-a-*], namespaceSelector, podSelector, schedulable: [arm64], preferred: {arm64: 75}, ' +
    'unresolvable, fallback, noCommonArchitecture}',
);

const path = (description: string, expected: string) => leaf(z.string().default(''), description, expected);

const globs = (fallback: string[], description: string) =>
  texts(GLOB, fallback, description, 'a list of namespace names in which * and ? are wildcards, such as kube-*');

const networks = (description: string) =>
  leaf(z.array(z.string().refine(isNetwork)).default([]), description, 'a list of CIDRs, such as 10.0.0.0/8,fd00::/8');

/** The one place that decides a key, its default and its text. Every object refuses unknown keys. */
export const schema = z.strictObject({
  placement: z.strictObject({
    mode: choice(
      ['taints', 'affinity', 'both', 'observe'],
      'taints',
      'How pods are placed: by taints and tolerations, by node affinity at admission (with the webhook), or by both. With an autoscaler, use affinity, or add the taint to each of its pools. observe: decisions are counted and reported, and nothing is written but Events, the Lease and the status.',
    ),
    noCommonArchitecture: decisive.noCommonArchitecture,
    refused: choice(
      ['withdraw', 'keep'],
      'withdraw',
      "What happens when the API server refuses new pods for what the webhook adds. withdraw: the refused part (tolerations, node affinity or gate) is left out of their owner's next pods for a time; keep: it is only reported.",
    ),
    publish: flag(
      false,
      'Whether the leader publishes the architectures of images that it knows, so that the API server itself places new pods of them (Kubernetes 1.36 and later, with manifests/publish.yaml). For the modes taints and both.',
    ),
  }),
  taints: z.strictObject({
    manage: flag(
      true,
      'Whether nodes are tainted; false writes tolerations only, for providers that taint their own nodes.',
    ),
    key: leaf(
      z.string().regex(QUALIFIED).default('supported-arch'),
      'Key of the taint and of the tolerations.',
      'a qualified name, such as supported-arch or example.com/arch',
    ),
    effect: leaf(
      z.enum(['NoSchedule', 'PreferNoSchedule']).default('NoSchedule'),
      'Effect of the taint.',
      'one of NoSchedule, PreferNoSchedule (NoExecute would evict pods that have no toleration yet)',
    ),
    nodeSelector: selector('Nodes that are tainted; empty: all.'),
  }),
  architectures: z.strictObject({
    schedulable: decisive.schedulable,
    compatible: leaf(
      z.record(architecture, z.array(architecture)).default({ amd64: ['386'] }),
      'Other architectures whose images run on the nodes of an architecture.',
      'a map from an architecture to a list of architectures, such as {amd64: ["386"], arm64: [arm]}',
    ),
    preferred: decisive.preferred,
    fallback: decisive.fallback,
  }),
  policies,
  pods: z.strictObject({
    excludeNamespaces: globs([], 'Namespaces whose pods and DaemonSets archaware ignores.'),
    namespaceSelector: selector('Namespaces whose pods and DaemonSets archaware places, by their labels; empty: all.'),
    daemonSets: choice(['patch', 'ignore'], 'patch', 'Whether templates of DaemonSets get tolerations.'),
    matchNodeLabels: texts(
      QUALIFIED,
      [],
      'Keys of pod labels that a node must have with the same value, if the mode includes affinity.',
      'a list of label keys, such as example.com/pool',
    ),
    onWrongNode: choice(
      ['warn', 'evict'],
      'warn',
      'What happens to a pod that cannot run on its node, because its image lacks the architecture. warn: an Event; evict: an Event and an eviction.',
    ),
  }),
  systemNamespaces: globs(
    ['kube-*', 'openshift-*', 'hypershift-*', 'calico-system', 'tigera-operator'],
    'Namespaces whose pods the cluster may need before a registry can be reached. After the first failed lookup these pods are allowed on all architectures.',
  ),
  images: z.strictObject({
    unresolvable: decisive.unresolvable,
    fallbackAfter: duration('0s', '24h', '2m', 'How long after the first failure images.unresolvable applies.'),
    overrides: leaf(
      z.array(z.strictObject({ pattern: z.string().min(1), architectures: z.array(architecture).min(1) })).default([]),
      'Architectures of images that are not looked up in a registry; the first pattern that matches applies.',
      'a list of {pattern: registry.example.com/legacy/*, architectures: [amd64]}',
    ),
    cache: z.strictObject({
      maxEntries: whole(100, 10_000_000, 50_000, 'Maximum number of tags, and of digests, that are remembered.'),
      tagTtl: duration(
        '1s',
        '24h',
        '10m',
        'How long the platforms of a tag are used before the registry is asked again.',
      ),
      alwaysTagTtl: duration('1s', '24h', '10s', 'The same for imagePullPolicy: Always, and for the tag latest.'),
      failureTtl: duration(
        '1s',
        '1h',
        '30s',
        'How long an image that was refused or not found is not looked up again.',
      ),
    }),
  }),
  registries: z.strictObject({
    insecure: texts(
      HOST,
      [],
      'Registries that use plain http or a certificate that cannot be verified; loopback addresses are allowed.',
      'a list of host or host:port',
    ),
    mirrors: leaf(
      z
        .record(
          z.string().regex(HOST, { error: 'expected the host[:port] of a registry, such as docker.io' }),
          z.strictObject({
            endpoints: z.array(z.string().regex(ENDPOINT)).min(1),
            fallback: z.boolean().default(true),
            credentials: z.enum(['mirror', 'source']).default('mirror'),
            sparse: z.boolean().default(false),
          }),
        )
        .default({}),
      'Mirrors that are asked before a registry; with fallback: false the registry itself is not asked. There, sparse: true means that a mirror may lack some of the platforms of an index, so that each is asked for.',
      MIRRORS_EXAMPLE,
    ),
    sparse: texts(
      HOST,
      [],
      'Registries and mirrors that may lack some of the platforms of an index: a platform counts only if its manifest is there. Only where none that has everything is asked after them.',
      'a list of host or host:port',
    ),
    private: texts(
      /^\S+$/,
      [],
      'Images that are never looked up without credentials.',
      'a list of patterns, such as registry.example.com/*',
    ),
    containerdConfigDirectory: path(
      "Directory of containerd's hosts.toml files, read for registries that registries.mirrors does not name.",
      'the path of a directory, such as /etc/containerd/certs.d',
    ),
    containersRegistriesConf: path(
      "CRI-O's registries.conf, or the directory with it and registries.conf.d, read for registries that registries.mirrors does not name.",
      'the path of a directory or file, such as /etc/containers, without registries.containerdConfigDirectory',
    ),
    caFile: path(
      'CA certificates (PEM) for registries, token services and proxies, in addition to the built-in ones.',
      'the path of a file',
    ),
    addresses: z.strictObject({
      allow: networks(
        'Addresses of registries that are allowed in spite of the built-in rules; cloud metadata services are never allowed.',
      ),
      deny: networks('Addresses that are never allowed.'),
    }),
    maxInFlight: whole(1, 1_000, 8, 'Maximum number of concurrent requests to one host.'),
    timeout: duration('1s', '5m', '15s', 'Timeout of one request; a whole lookup gets three times as long.'),
  }),
  credentials: z.strictObject({
    pullSecrets: flag(true, "Whether the pods' imagePullSecrets are used."),
    dockerConfigFiles: texts(
      /^.+$/,
      [],
      'Docker configuration files with logins (auths, credHelpers, credsStore).',
      'a list of paths of files, such as /etc/archaware/docker/config.json',
    ),
    directory: path(
      'Directory with a TOML file for each registry, such as docker.io.toml, with user and secret.',
      'the path of a directory',
    ),
    kubelet: z.strictObject({
      config: path(
        "The kubelet's CredentialProviderConfig; its plug-ins are asked for credentials.",
        'the path of a file, or of a directory of such files, together with credentials.kubelet.binDirectory',
      ),
      binDirectory: path(
        'Directory of the plug-ins that credentials.kubelet.config names.',
        'the path of a directory, together with credentials.kubelet.config',
      ),
    }),
  }),
  webhook: z.strictObject({
    enabled: flag(
      false,
      'Whether the admission webhook runs, which places pods when they are created. Not set: true with placement.mode affinity or both, else false.',
    ),
    address: leaf(
      bindAddress.default(':9443'),
      'Address on which the webhook listens, over HTTPS.',
      'host:port or :port',
      ADDRESS,
    ),
    certificates: leaf(
      z.string().min(1).default('self'),
      'Source of the certificates. self: the leader creates them and keeps them in a Secret; or a directory with tls.crt, tls.key and ca.crt.',
      'self, or the path of a directory',
    ),
    path: leaf(
      z.string().max(200).regex(URL_PATH).default(''),
      'URL path of the webhook; empty, with webhook.certificates: self: /mutate/ and a secret that the leader creates.',
      'a path of lower-case letters, digits, - and ., such as /mutate/4f1c2d, at most 200 characters long',
    ),
    warnings: flag(
      true,
      'Whether kubectl apply prints where the pods of a workload will run, if its images are known and do not run everywhere.',
    ),
    verdictLabels: flag(
      false,
      'Whether admission sets the label archaware.dev/verdict of each pod that it reviews: placed, open, waiting or held.',
    ),
  }),
  nodeLabels: z.strictObject({
    directory: path(
      'Directory of label rules: each line of a file <namespace>/<label> is a node label, and nodes that have one of them get <namespace>/<label>=true.',
      'the path of a directory',
    ),
  }),
  report: z.strictObject({
    targets: architectures(
      'Architectures that report, and the metrics of readiness, are about; empty: those of the nodes.',
    ),
  }),
  bootstrap: z.strictObject({
    timeout: duration(
      '0s',
      '1h',
      '2m',
      'Existing nodes are tainted after this time at the latest, even if pods still wait for images; only DaemonSets that had rolled out and wait for their turn to roll again delay it further.',
    ),
  }),
  leaderElection: z.strictObject({
    enabled: flag(true, 'Whether replicas elect a leader; false: this process counts as the leader.'),
    namespace: leaf(
      z
        .string()
        .regex(/^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)?$/)
        .default(''),
      'Namespace of the Lease; empty: the namespace of the pod, else archaware.',
      'the name of a namespace',
    ),
    name: leaf(
      z
        .string()
        .regex(/^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/)
        .default('archaware-controller'),
      'Name of the Lease.',
      'a lower-case DNS name',
    ),
    leaseDuration: duration(
      '2s',
      '10m',
      '15s',
      'How long the other replicas wait until they replace a leader that does not renew the Lease.',
    ),
  }),
  loops: leaf(
    z
      .array(z.enum(['nodes', 'pods', 'daemonsets', 'labels']))
      .min(1)
      .default(['nodes', 'pods', 'daemonsets', 'labels']),
    'Which loops run. nodes: taints of nodes; pods: tolerations and affinity of pods; daemonsets: tolerations of DaemonSets; labels: labels of nodes (nodeLabels.directory).',
    'a list of nodes, pods, daemonsets, labels',
  ),
  workers: whole(1, 256, 16, 'Maximum number of objects of one kind that are processed at the same time.'),
  metrics: z.strictObject({
    address: listenAddress(':9090', 'Address on which /metrics, /healthz and /readyz are served.'),
  }),
  log: z.strictObject({
    level: choice(['debug', 'info', 'warn', 'error'], 'info', 'Lowest severity that is logged.'),
    format: choice(['json', 'pretty'], 'json', 'Format of the log on stderr.'),
  }),
});

/** The configuration with every default filled in. */
export type Config = z.infer<typeof schema>;

function isNetwork(text: string): boolean {
  const [address = '', bits, ...rest] = text.split('/');
  const family = isIP(address);
  if (family === 0 || rest.length > 0) return false;
  return bits === undefined || (/^[0-9]{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128));
}

function uniqueNames({ value, issues }: z.core.ParsePayload<{ readonly name: string }[]>): void {
  value.forEach(({ name }, index) => {
    const first = value.findIndex((policy) => policy.name === name);
    if (first === index) return;
    const message = `got ${JSON.stringify(name)}, expected a unique name (policies[${first}] has the same)`;
    issues.push({ code: 'custom', message, path: [index, 'name'], input: value });
  });
}
