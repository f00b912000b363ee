import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { parse, stringify } from 'yaml';
import { type Cluster, startCluster } from '../../hack/cluster/cluster.ts';
import { at, listAt } from '../../hack/cluster/json.ts';
import { kustomize, type ManifestObject } from '../../hack/manifests/kustomize.ts';
import { readConfigFile } from '../../src/config/config-file.ts';
import { loadConfig } from '../../src/config/load.ts';
import { CRDS } from './support/chart-crds.ts';
import { COMBINATIONS } from './support/chart-values.ts';
import { comparable } from './support/comparable.ts';
import { arrangeHelm, CHART_PATH, type Helm, needsHelm } from './support/helm.ts';
import { withComponent } from './support/overlay.ts';

const OVERLAYS = new URL('../../manifests/kustomize/overlays/', import.meta.url);
const WITHOUT_HOOKS = ['--no-hooks', '--skip-tests'];

/** The overlays do not know the configuration, so their policies recognise archaware's entries by their form. */
const BY_FORM = { guard: { pinned: false } };
/** The values with which the chart renders the same as an overlay, in addition to the overlay's configuration. */
const SAME: readonly (readonly [overlay: string, values: Readonly<Record<string, unknown>>])[] = [
  ['taints', {}],
  ['taints-1.30', { keep: { enabled: false } }],
  ['affinity', { keep: { enabled: false } }],
  ['both', { keep: { enabled: false } }],
  ['provider-taints', { keep: { enabled: false } }],
  ['cert-manager', { keep: { enabled: false }, webhook: { certManager: { enabled: true } } }],
  ['labels', { nodeLabels: { shipped: true } }],
  ['observe', {}],
];

/** What takes away loops and rights that have nothing to do any more. */
const WITHOUT = { affinity: 'without-taints', 'provider-taints': 'without-node-taints' } as const;

const LOOPS = ['nodes', 'pods', 'daemonsets', 'labels'];

const REFUSED: readonly (readonly [what: string, values: unknown, said: RegExp])[] = [
  ['an effect that there is not', { config: { taints: { effect: 'NoExecute' } } }, /\/config\/taints\/effect/],
  ['a tag with a line break', { image: { repository: 'r.example.com/a', tag: '1\nx: y' } }, /\/image\/tag/],
  ['a repository with a space', { image: { repository: 'r.example.com/a b' } }, /\/image\/repository/],
  ['an unknown key', { config: { taint: {} } }, /\/config': .*'taint'/],
  ['an unknown value', { replica: 1 }, /'replica'/],
  ['a negative number of replicas', { replicas: -1 }, /\/replicas/],
  ['a digest that is none', { image: { digest: 'latest' } }, /\/image\/digest/],
  ['the label by which the Deployment selects', { labels: { 'app.kubernetes.io/name': 'x' } }, /\/labels\/app/],
  ['an address without its length', { networkPolicy: { apiServerCidrs: ['10.0.0.1'] } }, /apiServerCidrs\/0/],
  ['a path that the API server does not take', { config: { webhook: { path: 'mutate' } } }, /\/config\/webhook\/path/],
  ['a relative path of a node', { nodePaths: { containerd: 'certs.d' } }, /\/nodePaths\/containerd/],
  ['a domain of labels that is none', { nodeLabels: { rules: { 'Example.com': {} } } }, /\/nodeLabels\/rules/],
  ['no taints in a mode that has them', { withoutTaints: true }, /withoutTaints: got true.*placement.mode: taints/],
  ['two answers to which loops run', { withoutTaints: true, config: { loops: ['pods'] } }, /withoutTaints: got true/],
  [
    'the webhook in the mode that writes nothing',
    { config: { placement: { mode: 'observe' }, webhook: { enabled: true } } },
    /webhook.enabled: got true, expected false, or not set, with config.placement.mode: observe/,
  ],
  [
    'published images in a mode without taints',
    { config: { placement: { mode: 'affinity', publish: true } } },
    /placement.publish: got true, expected false with config.placement.mode: affinity/,
  ],
  [
    'evictions in the mode that writes nothing',
    { config: { placement: { mode: 'observe' }, pods: { onWrongNode: 'evict' } } },
    /pods.onWrongNode: got "evict", expected warn, or not set, with config.placement.mode: observe/,
  ],
  [
    'no loop that decides in the mode that writes nothing',
    { config: { placement: { mode: 'observe' }, loops: ['nodes'] } },
    /config.loops: expected pods or daemonsets/,
  ],
  [
    'loops without rights in the mode that writes nothing',
    { withoutTaints: true, config: { placement: { mode: 'observe' } } },
    /withoutTaints: got true, expected false with config.placement.mode: observe/,
  ],
  [
    'a mode without its webhook',
    { config: { placement: { mode: 'both' }, webhook: { enabled: false } } },
    /config\.webhook\.enabled: got false, expected true, or not set, with config\.placement\.mode: both/,
  ],
  [
    'a webhook that nobody would call',
    { config: { loops: ['pods'], webhook: { enabled: true } } },
    /config\.webhook\.enabled: got true/,
  ],
  [
    'certificates that nobody mounts',
    { config: { webhook: { enabled: true, certificates: '/certificates' } } },
    /config\.webhook\.certificates: got "\/certificates"/,
  ],
  [
    'a path that the chart mounts elsewhere',
    { config: { registries: { caFile: '/ca.crt' } }, caConfigMap: 'ca' },
    /config\.registries\.caFile: got "\/ca\.crt"/,
  ],
  ['several that all lead', { config: { leaderElection: { enabled: false } } }, /^Error.*replicas: got 2/s],
  [
    'the files of two container runtimes',
    { nodePaths: { containerd: '/etc/containerd/certs.d', containers: '/etc/containers' } },
    /nodePaths\.containers/,
  ],
  ['plug-ins without their directory', { nodePaths: { kubelet: { config: '/etc/x.yaml' } } }, /nodePaths\.kubelet/],
];

describe('the Helm chart', () => {
  let helm: Helm;
  before(async function () {
    needsHelm(this);
    helm = await arrangeHelm();
  });
  after(() => helm?.remove());

  it('passes helm lint --strict', async () => {
    for (const values of [COMBINATIONS.defaults, COMBINATIONS.everything])
      await helm.must(['lint', '--strict', CHART_PATH], values);
  });

  it('requires the name of an image, and says where one comes from', async () => {
    for (const repository of [[], ['--set', 'image.repository=']]) {
      const { code, stderr } = await helm.run(['template', 'archaware', CHART_PATH, ...repository]);
      expect(code).to.equal(1);
      expect(stderr).to.include('image.repository: not set').and.include('hack/build.sh');
    }
    const [set, digest] = ['registry.example.com/you/archaware-controller', `sha256:${'0'.repeat(64)}`];
    for (const [values, name] of [
      [{ repository: set }, /^registry.example.com\/you\/archaware-controller:[0-9.]+$/],
      [{ repository: set, tag: '1' }, /:1$/],
      [{ repository: set, tag: '1', digest }, /archaware-controller@sha256:0+$/],
    ] as const) {
      expect(at(containerOf(await helm.render({ image: values })), 'image')).to.match(name);
    }
  });

  for (const [what, values, said] of REFUSED) {
    it(`refuses ${what}`, async () => {
      const { code, stderr } = await helm.run(['template', 'archaware', CHART_PATH], values);
      expect(code).to.equal(1);
      expect(stderr).to.match(said);
    });
  }

  for (const [overlay, values] of SAME) {
    it(`makes the objects of the overlay ${overlay}`, async () => {
      const config: unknown = parse(await readFile(new URL(`${overlay}/config.yaml`, OVERLAYS), 'utf8'));
      const made = await helm.render({ ...BY_FORM, ...values, config }, ...WITHOUT_HOOKS);
      expect(comparable(made)).to.deep.equal(comparable(await kustomize(new URL(`${overlay}/`, OVERLAYS))));
    });
  }

  for (const [overlay, component] of Object.entries(WITHOUT)) {
    it(`makes by withoutTaints the objects of the overlay ${overlay} with the component ${component}`, async () => {
      const config: unknown = parse(await readFile(new URL(`${overlay}/config.yaml`, OVERLAYS), 'utf8'));
      const values = { ...BY_FORM, keep: { enabled: false }, withoutTaints: true, config };
      const made = await helm.render(values, ...WITHOUT_HOOKS);
      const objects = await withComponent(overlay, component);
      const [expected, got] = [comparable(objects), comparable(made)];
      // kustomize says by a variable which loops run.
      const loops = listAt(at(parse(configOf(made)), 'loops')).join();
      expect(listAt(containerOf(objects), 'env')).to.deep.include({ name: 'ARCHAWARE_LOOPS', value: loops });
      for (const object of ['Deployment archaware-controller', 'ConfigMap archaware-controller']) {
        delete expected[object];
        delete got[object];
      }
      expect(got).to.deep.equal(expected);
    });
  }

  it('gives the policies the account, the taint, the labels and the domains of the values', async () => {
    const objects = await helm.render(COMBINATIONS.everything);
    const variables = (name: string, of = objects, kind = 'ValidatingAdmissionPolicy') =>
      Object.fromEntries(
        listAt(find(of, kind, name), 'spec', 'variables').map((one) => [at(one, 'name'), at(one, 'expression')]),
      );
    expect(variables('archaware-guard-pods')).to.include({
      taints: "['example.com/arch:PreferNoSchedule']",
      nodeLabels: "['kubernetes.io/arch', 'kubernetes.io/os', 'example.com/pool']",
    });
    const place = Object.values(variables('archaware-place', objects, 'MutatingAdmissionPolicy'));
    expect(place.slice(0, 2)).to.deep.equal(["'example.com/arch'", "'PreferNoSchedule'"]);
    expect(variables('archaware-guard-nodes')).to.include({
      taints: "['example.com/arch:PreferNoSchedule']",
      labels: "['accelerators', 'example.com']",
    });
    const elsewhere = await helm.render(COMBINATIONS['no replica, a Lease elsewhere']);
    expect(variables('archaware-guard-leases', elsewhere)).to.include({ lease: "'other'" });
    const other = await helm.render({ serviceAccount: { name: 'other' } }, '--namespace', 'elsewhere');
    for (const policy of other.filter(({ kind }) => kind === 'ValidatingAdmissionPolicy')) {
      expect(stringify(policy)).to.include("'system:serviceaccount:elsewhere:other'");
    }
    expect(stringify(other)).not.to.match(/namespace: archaware$/m);
    const bindings = other.filter(({ kind }) => kind === 'ClusterRoleBinding');
    const subject = { kind: 'ServiceAccount', name: 'other', namespace: 'elsewhere' };
    expect(bindings.map((binding) => at(binding, 'subjects'))).to.deep.equal(bindings.map(() => [subject]));
  });

  it('has extra labels and annotations on every object', async () => {
    for (const { kind, metadata } of await helm.render(COMBINATIONS.everything)) {
      expect(at(metadata, 'labels', 'example.com/team'), `${kind} ${metadata.name}`).to.equal('platform');
      expect(at(metadata, 'annotations', 'example.com/owner'), `${kind} ${metadata.name}`).to.equal('platform');
    }
  });

  it('restarts pods for keys that need it, and for no others', async () => {
    const sum = async (config: unknown) => {
      const deployment = find(await helm.render({ config }), 'Deployment', 'archaware-controller');
      return String(at(deployment, 'spec', 'template', 'metadata', 'annotations', 'archaware.dev/restart'));
    };
    const before = await sum({});
    for (const same of [{ log: { level: 'debug' } }, { taints: { key: 'supported-arch' } }, { loops: LOOPS }]) {
      expect(await sum(same), JSON.stringify(same)).to.equal(before);
    }
    for (const other of [
      { taints: { key: 'arch' } },
      { systemNamespaces: [] },
      { images: { cache: { maxEntries: 100 } } },
    ]) {
      expect(await sum(other), JSON.stringify(other)).not.to.equal(before);
    }
  });

  it('lets in the API server and the scraper alone, once it is said from where the API server calls', async () => {
    const webhook = { config: { webhook: { enabled: true } } };
    const ingress = async (values: object) => {
      const policies = (await helm.render({ ...webhook, ...values })).filter(({ kind }) => kind === 'NetworkPolicy');
      return policies.map((policy) =>
        listAt(policy, 'spec', 'ingress').map((rule) => [at(listAt(rule, 'ports')[0], 'port'), at(rule, 'from')]),
      );
    };
    const apiServerCidrs = ['10.0.0.10/32', '2001:db8::/64'];
    const scraper = [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } } }];
    const test = { podSelector: { matchLabels: { 'app.kubernetes.io/name': 'archaware-controller-test' } } };
    const blocks = apiServerCidrs.map((cidr) => ({ ipBlock: { cidr } }));
    expect(await ingress({}), 'nothing is guessed').to.deep.equal([]);
    expect(await ingress({ networkPolicy: { apiServerCidrs, metricsFrom: scraper } })).to.deep.equal([
      [
        [9090, [...scraper, test]],
        [9443, blocks],
      ],
    ]);
    expect(await ingress({ networkPolicy: { apiServerCidrs, enabled: false } })).to.deep.equal([]);
    expect(await ingress({ networkPolicy: { enabled: true } })).to.deep.equal([
      [
        [9090, undefined],
        [9443, undefined],
      ],
    ]);
  });

  it("limits V8's heap to five eighths of the memory limit, unless the values say otherwise", async () => {
    const heap = async (values: object) => {
      const options = listAt(containerOf(await helm.render(values)), 'env').filter(
        (entry) => at(entry, 'name') === 'NODE_OPTIONS',
      );
      return options.map((entry) => at(entry, 'value')).join();
    };
    const limited = (memory: unknown) => heap({ resources: { limits: { memory } } });
    expect(await heap({})).to.equal('--max-old-space-size=160');
    expect(await limited('1Gi')).to.equal('--max-old-space-size=640');
    expect(await limited('512M')).to.equal('--max-old-space-size=304');
    expect(await limited(null)).to.equal('');
    expect(await heap({ env: [{ name: 'NODE_OPTIONS', value: '--inspect' }] })).to.equal('--inspect');
  });

  it("names no path of the webhook, but the operator's where cert-manager makes the certificates", async () => {
    const paths = async (certManager: boolean, path: string) => {
      const config = { placement: { mode: 'both' }, webhook: { enabled: true, path } };
      const objects = await helm.render({ config, webhook: { certManager: { enabled: certManager } } });
      const configuration = find(objects, 'MutatingWebhookConfiguration', 'archaware-controller');
      return listAt(configuration, 'webhooks').map((each) => at(each, 'clientConfig', 'service', 'path'));
    };
    const none = Array.from({ length: 4 }, () => undefined);
    for (const each of [paths(false, ''), paths(false, '/mutate/abc'), paths(true, '')])
      expect(await each).to.deep.equal(none);
    expect(await paths(true, '/mutate/abc')).to.deep.equal(none.map(() => '/mutate/abc'));
  });

  it('writes the paths of what it mounts into the configuration', async () => {
    const config = parse(configOf(await helm.render(COMBINATIONS.everything)));
    expect(at(config, 'credentials')).to.deep.equal({
      dockerConfigFiles: [
        '/elsewhere/config.json',
        '/etc/archaware-credentials/docker/hub/.dockerconfigjson',
        '/etc/archaware-credentials/docker/quay/.dockerconfigjson',
      ],
      directory: '/etc/archaware-credentials/registries',
      kubelet: { config: '/etc/archaware-node/kubelet/config.yaml', binDirectory: '/etc/archaware-node/kubelet/bin' },
    });
    expect(at(config, 'registries')).to.deep.equal({
      caFile: '/etc/archaware-ca/ca.crt',
      containerdConfigDirectory: '/etc/archaware-node/containerd',
    });
  });

  it("mounts CRI-O's directory and writes its path into the configuration", async () => {
    const objects = await helm.render({ nodePaths: { containers: '/etc/containers' } });
    expect(at(parse(configOf(objects)), 'registries')).to.deep.equal({
      containersRegistriesConf: '/etc/archaware-node/containers',
    });
    const pod = at(find(objects, 'Deployment', 'archaware-controller'), 'spec', 'template', 'spec');
    expect(listAt(pod, 'volumes')).to.deep.include({
      name: 'containers',
      hostPath: { path: '/etc/containers', type: 'Directory' },
    });
  });

  it('gives a configuration that the program takes, whatever the values are', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'archaware-chart-'));
    try {
      for (const [name, values] of Object.entries(COMBINATIONS)) {
        const file = join(directory, 'config.yaml');
        await writeFile(file, configOf(await helm.render(values)));
        expect(() => loadConfig({ file: readConfigFile(file), environment: {}, flags: {} }), name).not.to.throw();
      }
    } finally {
      await rm(directory, { recursive: true });
    }
  });

  describe('on the real API server', () => {
    let cluster: Cluster;
    before(async () => {
      cluster = await startCluster({ kwok: false, schedulerAndManager: false });
      await cluster.apply([CRDS, ...SURROUNDINGS.map((object) => stringify(object))].join('---\n'));
      const established = ['wait', '--for=condition=Established', 'crd', '--all', '--timeout=30s'];
      expect((await cluster.kubectl(established)).code).to.equal(0);
    });
    after(() => cluster?.stop());

    const tried = (items: readonly ManifestObject[]) =>
      cluster.kubectl(['apply', '--dry-run=server', '--validate=strict', '-f', '-'], {
        input: JSON.stringify({ apiVersion: 'v1', kind: 'List', items }),
      });

    for (const [name, values] of Object.entries(COMBINATIONS)) {
      it(`is accepted: ${name}`, async () => {
        const { code, stderr } = await tried(await helm.render(values));
        expect(code, stderr).to.equal(0);
      });
    }

    it('is refused where a field is wrong, so that the above says something', async () => {
      const objects = await helm.render(COMBINATIONS.everything);
      for (const kind of ['ServiceMonitor', 'PrometheusRule', 'Deployment']) {
        const wrong = objects
          .filter((object) => object.kind === kind)
          .map((object) => ({ ...object, spec: { nothing: 1 } }));
        const { code } = await tried(wrong);
        expect(code, kind).to.equal(1);
      }
    });
  });
});

/** What a cluster has before the chart comes. Nobody else makes the account here. */
const SURROUNDINGS = [
  { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'archaware' } },
  { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default', namespace: 'archaware' } },
];

function find(objects: readonly ManifestObject[], kind: string, name: string): ManifestObject {
  const found = objects.find((object) => object.kind === kind && object.metadata.name === name);
  if (!found) throw new Error(`no ${kind} ${name}`);
  return found;
}

const containerOf = (objects: readonly ManifestObject[]) =>
  listAt(find(objects, 'Deployment', 'archaware-controller'), 'spec', 'template', 'spec', 'containers')[0];

/** The text of config.yaml. */
const configOf = (objects: readonly ManifestObject[]) =>
  String(at(find(objects, 'ConfigMap', 'archaware-controller'), 'data', 'config.yaml'));
