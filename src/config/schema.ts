import { isIP } from 'node:net';
import * as z from 'zod';
import {
  ADDRESS,
  architecture,
  bindAddress,
  choice,
  duration,
  flag,
  leaf,
  listenAddress,
  selector,
  texts,
  whole,
} from './leaves.ts';
import { decisive, GLOB, policies } from './policies.ts';

const QUALIFIED = /^(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?\/)?[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/;
/** 1 to 65535. */
const PORT = /[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]/.source;
const HOST = new RegExp(`^(?:\\[[0-9a-fA-F:]+\\]|[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?)(?::(?:${PORT}))?$`);

/** The components of a repository, as in image names; see `oci/endpoints/mirrors`. */
const ENDPOINT = new RegExp(`^(?:https?://)?${HOST.source.slice(1, -1)}(?:/[a-z0-9]+(?:(?:[.]|__?|-+)[a-z0-9]+)*)*$`);
const MIRRORS_EXAMPLE =
  'a map as {docker.io: {endpoints: [mirror.example.com/hub], fallback: true, credentials: mirror}}';

/** The form that the API server accepts in `clientConfig.service.path`: parts that are DNS names. */
const URL_PATH = /^(?:(?:\/[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*)+)?$/;

const path = (description: string, expected: string) => leaf(z.string().default(''), description, expected);

const globs = (fallback: string[], description: string) =>
  texts(GLOB, fallback, description, 'a list of namespace names in which * and ? are wildcards, as kube-*');

const networks = (description: string) =>
  leaf(z.array(z.string().refine(isNetwork)).default([]), description, 'a list of CIDRs, as 10.0.0.0/8,fd00::/8');

/** The one place that decides a key, its default and its text. Every object refuses unknown keys. */
export const schema = z.strictObject({
  placement: z.strictObject({
    mode: choice(
      ['taints', 'affinity', 'both'],
      'taints',
      'How pods are placed: by taints and tolerations, by node affinity at admission (with the webhook), or by both. Where an autoscaler starts nodes: affinity, or the taint in every one of its pools.',
    ),
    noCommonArchitecture: decisive.noCommonArchitecture,
  }),
  taints: z.strictObject({
    manage: flag(
      true,
      'Whether nodes are tainted; false writes tolerations only, for providers that taint their own nodes.',
    ),
    key: leaf(
      z.string().regex(QUALIFIED).default('supported-arch'),
      'Key of the taint and of the tolerations.',
      'a qualified name, as supported-arch or example.com/arch',
    ),
    effect: leaf(
      z.enum(['NoSchedule', 'PreferNoSchedule']).default('NoSchedule'),
      'Effect of the taint.',
      'one of NoSchedule, PreferNoSchedule (NoExecute would evict whatever is not served yet)',
    ),
    nodeSelector: selector('Nodes that are tainted; empty: all.'),
  }),
  architectures: z.strictObject({
    schedulable: decisive.schedulable,
    compatible: leaf(
      z.record(architecture, z.array(architecture)).default({ amd64: ['386'] }),
      'What else nodes of an architecture run.',
      'a map from an architecture to a list of them, as {amd64: ["386"], arm64: [arm]}',
    ),
    preferred: decisive.preferred,
    fallback: decisive.fallback,
  }),
  policies,
  pods: z.strictObject({
    excludeNamespaces: globs([], 'Namespaces whose pods and DaemonSets are left alone.'),
    namespaceSelector: selector('Namespaces that are served, by their labels; empty: all.'),
    daemonSets: choice(['patch', 'ignore'], 'patch', 'Whether templates of DaemonSets get tolerations.'),
    matchNodeLabels: texts(
      QUALIFIED,
      [],
      'Labels of pods that become required labels of nodes, where the mode includes affinity.',
      'a list of label keys, as example.com/pool',
    ),
    onWrongNode: choice(
      ['warn', 'evict'],
      'warn',
      'What becomes of pods on nodes whose architecture their images lack: an Event, or an eviction besides.',
    ),
  }),
  systemNamespaces: globs(
    ['kube-*', 'openshift-*', 'hypershift-*', 'calico-system', 'tigera-operator'],
    'Namespaces whose pods the cluster may need before any registry can be reached: placed openly after the first failure.',
  ),
  images: z.strictObject({
    unresolvable: decisive.unresolvable,
    fallbackAfter: duration('0s', '24h', '2m', 'How long after the first failure images.unresolvable applies.'),
    overrides: leaf(
      z.array(z.strictObject({ pattern: z.string().min(1), architectures: z.array(architecture).min(1) })).default([]),
      'Architectures of images that no registry is asked about; the first pattern that matches.',
      'a list of {pattern: registry.example.com/legacy/*, architectures: [amd64]}',
    ),
    cache: z.strictObject({
      file: path('Where what is known of images outlives the process; empty: nowhere.', 'the path of a file'),
      maxEntries: whole(100, 10_000_000, 50_000, 'How many tags and how many digests are remembered.'),
      tagTtl: duration('1s', '24h', '10m', 'After this a known tag is checked again when a pod names it.'),
      alwaysTagTtl: duration('1s', '24h', '10s', 'The same for imagePullPolicy: Always, and for the tag latest.'),
      failureTtl: duration(
        '1s',
        '1h',
        '30s',
        'No image that was refused or not found is asked for again within this time.',
      ),
    }),
  }),
  registries: z.strictObject({
    insecure: texts(
      HOST,
      [],
      'Registries that speak plain http or show a certificate that cannot be verified; may be loopback addresses.',
      'a list of host or host:port',
    ),
    mirrors: leaf(
      z
        .record(
          z.string().regex(HOST, { error: 'expected the host[:port] of a registry, as docker.io' }),
          z.strictObject({
            endpoints: z.array(z.string().regex(ENDPOINT)).min(1),
            fallback: z.boolean().default(true),
            credentials: z.enum(['mirror', 'source']).default('mirror'),
          }),
        )
        .default({}),
      'Where images of a registry are asked for first; fallback: false: there only.',
      MIRRORS_EXAMPLE,
    ),
    private: texts(
      /^\S+$/,
      [],
      'Images that are never asked for without credentials.',
      'a list of patterns, as registry.example.com/*',
    ),
    containerdConfigDirectory: path(
      "Directory of containerd's hosts.toml files, read for registries that registries.mirrors does not name.",
      'the path of a directory, as /etc/containerd/certs.d',
    ),
    caFile: path(
      'Certificates (PEM) that registries, token services and proxies are verified by, over the built-in ones.',
      'the path of a file',
    ),
    addresses: z.strictObject({
      allow: networks('Addresses that may be connected to, over the built-in rules; never cloud metadata.'),
      deny: networks('Addresses that are never connected to.'),
    }),
    maxInFlight: whole(1, 1_000, 8, 'Requests at once to one host.'),
    timeout: duration('1s', '5m', '15s', 'Limit of one request; a whole look-up gets three times that.'),
  }),
  credentials: z.strictObject({
    pullSecrets: flag(true, "Whether the pods' imagePullSecrets are used."),
    dockerConfigFiles: texts(
      /^.+$/,
      [],
      "Docker's configuration files, with auths, credHelpers and credsStore.",
      'a list of paths of files, as /etc/archaware/docker/config.json',
    ),
    directory: path(
      'Directory of a TOML file for each registry, as docker.io.toml with user and secret.',
      'the path of a directory',
    ),
    kubelet: z.strictObject({
      config: path(
        "The kubelet's CredentialProviderConfig, whose plug-ins are asked.",
        'the path of a file, together with credentials.kubelet.binDirectory',
      ),
      binDirectory: path(
        'Directory of these plug-ins.',
        'the path of a directory, together with credentials.kubelet.config',
      ),
    }),
  }),
  webhook: z.strictObject({
    enabled: flag(
      false,
      'Whether admission reviews are answered, so that pods are placed at admission. Not set: as placement.mode needs it, so true with affinity and both.',
    ),
    address: leaf(bindAddress.default(':9443'), 'Where it is served, over HTTPS.', 'host:port or :port', ADDRESS),
    certificates: leaf(
      z.string().min(1).default('self'),
      'Made by the leader and kept in a Secret, or read from a directory with tls.crt, tls.key and ca.crt.',
      'self, or the path of a directory',
    ),
    path: leaf(
      z.string().max(200).regex(URL_PATH).default(''),
      'Path of the URL at which reviews are answered; empty: /mutate/ and a secret that the leader makes, with self-made certificates.',
      'a path of lower-case letters, digits, - and ., as /mutate/4f1c2d, at most 200 characters long',
    ),
  }),
  nodeLabels: z.strictObject({
    directory: path(
      'Directory of label rules: files <namespace>/<label>, each line the label of a node that then gets <namespace>/<label>=true.',
      'the path of a directory',
    ),
  }),
  bootstrap: z.strictObject({
    timeout: duration(
      '0s',
      '1h',
      '2m',
      'Existing nodes are tainted after this at the latest, whatever pods still wait for; DaemonSets that wait for their turn to roll are waited for beyond it.',
    ),
  }),
  leaderElection: z.strictObject({
    enabled: flag(true, 'Whether replicas elect a leader; false: this process counts as the leader.'),
    namespace: leaf(
      z
        .string()
        .regex(/^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)?$/)
        .default(''),
      'Namespace of the Lease; empty: our own, else archaware.',
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
    leaseDuration: duration('2s', '10m', '15s', 'How long a leader that fell silent keeps the others out.'),
  }),
  loops: leaf(
    z
      .array(z.enum(['nodes', 'pods', 'daemonsets', 'labels']))
      .min(1)
      .default(['nodes', 'pods', 'daemonsets', 'labels']),
    'Which loops run: taints of nodes, tolerations and affinity of pods, DaemonSets, labels of nodes by nodeLabels.directory.',
    'a list of nodes, pods, daemonsets, labels',
  ),
  workers: whole(1, 256, 16, 'Objects of a kind that are worked on at once.'),
  metrics: z.strictObject({
    address: listenAddress(':9090', 'Where /metrics, /healthz and /readyz are served.'),
  }),
  log: z.strictObject({
    level: choice(['debug', 'info', 'warn', 'error'], 'info', 'Least severity that is logged.'),
    format: choice(['json', 'pretty'], 'json', 'Form of the log on stderr.'),
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
