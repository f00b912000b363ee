import type { ConfigKey } from '../../src/config/keys.ts';

type Sample = readonly [text: string, value: unknown];

/** For keys that hold other than words, numbers and durations: a text as a flag has it, and the value that it stands for. */
const OTHERS: Readonly<Record<string, Sample>> = {
  'placement.mode': ['observe', 'observe'],
  'taints.key': ['example.com/arch', 'example.com/arch'],
  'taints.nodeSelector': ['a=b,c in (d,e)', 'a=b,c in (d,e)'],
  'architectures.schedulable': ['amd64,arm64', ['amd64', 'arm64']],
  'architectures.compatible': ['{arm64: [arm], amd64: ["386"]}', { arm64: ['arm'], amd64: ['386'] }],
  'architectures.preferred': ['{arm64: 75, amd64: 25}', { arm64: 75, amd64: 25 }],
  'architectures.fallback': ['amd64', ['amd64']],
  policies: [
    '[{"name": "a", "podSelector": "app=b", "noCommonArchitecture": "release"}]',
    [{ name: 'a', namespaceSelector: '', podSelector: 'app=b', noCommonArchitecture: 'release' }],
  ],
  'pods.excludeNamespaces': ['a-*, b?', ['a-*', 'b?']],
  'pods.namespaceSelector': ['!a', '!a'],
  'pods.matchNodeLabels': ['example.com/pool,zone', ['example.com/pool', 'zone']],
  systemNamespaces: ['', []],
  'images.overrides': [
    '[{"pattern": "r.example.com/*", "architectures": ["amd64"]}]',
    [{ pattern: 'r.example.com/*', architectures: ['amd64'] }],
  ],
  'registries.insecure': ['localhost:5000,[::1]', ['localhost:5000', '[::1]']],
  'registries.mirrors': [
    '{docker.io: {endpoints: ["mirror.example.com:5000/hub"], fallback: false, credentials: source, sparse: true}}',
    {
      'docker.io': { endpoints: ['mirror.example.com:5000/hub'], fallback: false, credentials: 'source', sparse: true },
    },
  ],
  'registries.sparse': ['quay.example.com,mirror.example.com:5000', ['quay.example.com', 'mirror.example.com:5000']],
  'registries.private': ['r.example.com/*,quay.io/team/*', ['r.example.com/*', 'quay.io/team/*']],
  'registries.containerdConfigDirectory': ['/etc/containerd/certs.d', '/etc/containerd/certs.d'],
  'registries.containersRegistriesConf': ['/etc/containers', '/etc/containers'],
  'registries.caFile': ['/etc/ca.pem', '/etc/ca.pem'],
  'registries.addresses.allow': ['10.0.0.0/8,fd00::/8', ['10.0.0.0/8', 'fd00::/8']],
  'registries.addresses.deny': ['192.0.2.1', ['192.0.2.1']],
  'credentials.dockerConfigFiles': ['/a/config.json,/b/config.json', ['/a/config.json', '/b/config.json']],
  'credentials.directory': ['/credentials', '/credentials'],
  'credentials.kubelet.config': ['/etc/providers.yaml', '/etc/providers.yaml'],
  'credentials.kubelet.binDirectory': ['/opt/providers', '/opt/providers'],
  'webhook.address': ['127.0.0.1:8443', '127.0.0.1:8443'],
  'webhook.certificates': ['/tls', '/tls'],
  'webhook.path': ['/mutate/4f1c2d', '/mutate/4f1c2d'],
  'nodeLabels.directory': ['/labels', '/labels'],
  'report.targets': ['arm64,amd64', ['arm64', 'amd64']],
  'leaderElection.namespace': ['ops', 'ops'],
  'leaderElection.name': ['other', 'other'],
  loops: ['nodes,pods', ['nodes', 'pods']],
  'metrics.address': ['[::1]:0', '[::1]:0'],
};

/** Returns a text for a key as a flag has it, and the value that it stands for, which is not the default. Throws if there is none. */
export function sampleOf({ path, choices, form, fallback, expected }: ConfigKey): Sample {
  const own = OTHERS[path];
  if (own !== undefined) return own;
  if (form === 'boolean') return [String(!fallback), !fallback];
  if (expected.startsWith('a duration')) return ['3m', '3m'];
  const other = form === 'number' ? /to ([0-9]+)$/.exec(expected)?.[1] : choices.find((word) => word !== fallback);
  if (other === undefined) throw new Error(`add ${path} to test/config/samples.ts`);
  return [other, form === 'number' ? Number(other) : other];
}
