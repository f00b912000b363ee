import { expect } from 'chai';
import { parseConfig } from '../../src/config/config-file.ts';
import { allKeys, variableName } from '../../src/config/keys.ts';
import { type Loaded, loadConfig, REMOVED, unknownFlag } from '../../src/config/load.ts';
import { compareConfig } from '../../src/config/reload.ts';
import { schema } from '../../src/config/schema.ts';
import { ConfigurationError } from '../../src/config/shown-problems.ts';
import { isObject } from '../../src/kit/json.ts';
import { sampleOf } from './samples.ts';

type Given = { file?: string; environment?: Record<string, string>; flags?: Record<string, string> };
/** What is expected, in the words of several keys. */
const MAP = 'a map from an architecture to a list of architectures, such as {amd64: ["386"], arm64: [arm]}';
const WEIGHTS = 'a map from architectures to whole numbers from 1 to 100, such as {arm64: 75, amd64: 25}';
const OVERRIDES = 'a list of {pattern: registry.example.com/legacy/*, architectures: [amd64]}';
const POLICIES =
  'a list of {name: team-a, namespaces: [team-a-*], namespaceSelector, podSelector, schedulable: [arm64], preferred: {arm64: 75}, unresolvable, fallback, noCommonArchitecture}';
const NAMESPACES = 'a list of namespace names in which * and ? are wildcards, such as team-*';
const SCHEDULABLE = 'only architectures of architectures.schedulable (amd64)';
const FALLBACK = 'at least one architecture with images.unresolvable: fallback';

/** What is given, and the problems that are told. */
type Row = readonly [given: Given | string, ...problems: string[]];

/** A text is a file, or else one flag (`--workers=1`) or one variable (`ARCHAWARE_WORKERS=1`). */
function load(given: Given | string): Loaded {
  if (typeof given === 'string') {
    const [, isFlag, name = '', value = ''] = /^(--|)((?<=--).*?|ARCHAWARE_.*?)=(.*)$/s.exec(given) ?? [];
    const one = { [name]: value };
    return load(name === '' ? { file: given } : isFlag ? { flags: one } : { environment: one });
  }
  const { file, environment = {}, flags = {} } = given;
  return loadConfig({ file: file === undefined ? undefined : parseConfig('config.yaml', file), environment, flags });
}

function problems(given: Given | string): readonly string[] {
  try {
    load(given);
    return [];
  } catch (error) {
    if (error instanceof ConfigurationError) return error.problems;
    throw error;
  }
}

function check(rows: readonly Row[]): void {
  for (const [given, ...expected] of rows)
    it(`${JSON.stringify(given).slice(0, 200)} is ${expected.length === 0 ? 'accepted' : 'refused'}`, () =>
      expect(problems(given)).to.deep.equal(expected));
}

function valueAt({ config }: Loaded, path: string): unknown {
  return path.split('.').reduce<unknown>((group, name) => (isObject(group) ? group[name] : undefined), config);
}

/** A file that sets one key, written as nested maps. */
function fileWith(path: string, value: string): string {
  const parts = path.split('.');
  return parts
    .map((part, index) => `${'  '.repeat(index)}${part}:${index === parts.length - 1 ? ` ${value}` : ''}`)
    .join('\n');
}

describe('the layers of the configuration', () => {
  const file = 'taints:\n  key: from-file\n';
  const environment = { ARCHAWARE_TAINTS__KEY: 'from-variable' };
  const flags = { 'taints.key': 'from-flag' };
  const rows: [given: string, what: Given, key: string, source: string][] = [
    ['nothing', {}, 'supported-arch', 'default'],
    ['a file that leaves the group empty', { file: 'taints:\n' }, 'supported-arch', 'default'],
    ['a file', { file }, 'from-file', 'config.yaml:2'],
    ['a variable', { environment }, 'from-variable', 'ARCHAWARE_TAINTS__KEY'],
    ['a flag', { flags }, 'from-flag', '--taints.key'],
    ['a variable over a file', { file, environment }, 'from-variable', 'ARCHAWARE_TAINTS__KEY'],
    ['a flag over a file', { file, flags }, 'from-flag', '--taints.key'],
    ['a flag over a variable', { environment, flags }, 'from-flag', '--taints.key'],
    ['a file without a value for it', { file: 'taints:\n  key:\n' }, 'supported-arch', 'config.yaml:2'],
  ];
  for (const [given, what, key, source] of rows) {
    it(`${given} gives ${key} from ${source}`, () => {
      const loaded = load(what);
      expect(loaded.config.taints.key).to.equal(key);
      expect(loaded.sources.get('taints.key')).to.equal(source);
      expect(loaded.sources.get('taints.effect')).to.equal('default');
    });
  }

  it('replace a list instead of merging it', () => {
    const loaded = load({ file: 'systemNamespaces: [a, b]', flags: { systemNamespaces: 'c' } });
    expect(loaded.config.systemNamespaces).to.deep.equal(['c']);
  });

  it('replace a map instead of merging it', () =>
    expect(load({ file: 'architectures: {compatible: {arm64: [arm]}}' }).config.architectures.compatible).to.deep.equal(
      { arm64: ['arm'] },
    ));

  it('name a source for every key', () => {
    const { sources } = load({ file, environment: { ARCHAWARE_WORKERS: '3' } });
    expect([...sources.keys()]).to.deep.equal(allKeys().map(({ path }) => path));
    expect([...sources].filter(([, source]) => source !== 'default')).to.deep.equal([
      ['taints.key', 'config.yaml:2'],
      ['workers', 'ARCHAWARE_WORKERS'],
    ]);
  });
});

describe('every key', () => {
  /** Invalid alone. */
  const together = { 'credentials.kubelet.config': '/etc/providers.yaml', 'credentials.kubelet.binDirectory': '/opt' };

  it('credentials.kubelet.config needs the directory of the plug-ins', () => {
    expect(valueAt(load({ flags: together }), 'credentials.kubelet.config')).to.equal('/etc/providers.yaml');
    const { 'credentials.kubelet.config': config } = together;
    expect(problems({ flags: { 'credentials.kubelet.config': config } })).to.deep.equal([
      'credentials.kubelet.binDirectory: got "", expected the directory of the plug-ins that "/etc/providers.yaml" ' +
        'names (--credentials.kubelet.config)',
    ]);
  });

  it('registries.containersRegistriesConf and registries.containerdConfigDirectory exclude each other', () => {
    const flags = {
      'registries.containersRegistriesConf': '/etc/containers',
      'registries.containerdConfigDirectory': '/etc/containerd/certs.d',
    };
    expect(problems({ flags })).to.deep.equal([
      'registries.containersRegistriesConf: got "/etc/containers" (--registries.containersRegistriesConf), expected no value ' +
        'together with registries.containerdConfigDirectory (--registries.containerdConfigDirectory)',
    ]);
  });

  for (const mirrors of [
    '{docker.io: {endpoints: []}}',
    '{docker.io: {endpoints: ["ftp://mirror.example.com"]}}',
    '{docker.io: {endpoints: ["mirror.example.com/../hub"]}}',
    '{docker.io: {endpoints: ["user:secret@mirror.example.com"]}}',
    '{docker.io: {endpoints: ["mirror.example.com"], credentials: none}}',
    '{docker.io: {endpoints: ["mirror.example.com"], sparse: sometimes}}',
    '{docker.io: {endpoints: ["mirror.example.com"], sparse: true}}',
    '{docker.io: [mirror.example.com]}',
    '{"docker.io/library": {endpoints: ["mirror.example.com"]}}',
    '{docker.io: {endpoint: mirror.example.com}}',
  ]) {
    it(`registries.mirrors is never ${mirrors}`, () => {
      const [problem] = problems({ flags: { 'registries.mirrors': mirrors } });
      expect(problem).to.match(/^registries\.mirrors[^ ]*: .*expected .*\(--registries\.mirrors\)$/);
    });
  }

  for (const [what, mirrors] of [
    ['an endpoint', '{docker.io: {endpoints: ["https://user:se@cr\\"/et@mirror.example.com"]}}'],
    ['an endpoint without a scheme', '{docker.io: {endpoints: ["user:secr\\"et@mirror.example.com"]}}'],
    ['a registry', '{"user:secret@mirror.example.com": {endpoints: ["mirror.example.com"]}}'],
    ['a key', '{docker.io: {"user:secret@mirror.example.com": 1}}'],
    ['a text that is not an endpoint', '{docker.io: {endpoints: {"user:secret@mirror.example.com": 1}}}'],
    ['a list', '["https://user:secret@mirror.example.com"]'],
    ['a text', 'https://user:secret@mirror.example.com'],
    ['a text that is not YAML', '{docker.io: {endpoints: ["https://user:secret@mirror.example.com"'],
  ] as const) {
    for (const given of [
      { flags: { 'registries.mirrors': mirrors } },
      { environment: { ARCHAWARE_REGISTRIES__MIRRORS: mirrors } },
    ]) {
      it(`registries.mirrors shows no password of ${what}, from ${Object.keys(given)}`, () => {
        const told = problems(given).join('\n');
        expect(told)
          .to.contain('registries.mirrors')
          .and.contain('***@')
          .and.not.match(/user|se@|secr|et@/);
      });
    }
  }

  it('registries.mirrors shows the endpoint without its password', () => {
    const mirrors = '{docker.io: {endpoints: ["https://user:secret@mirror.example.com"]}}';
    expect(problems({ flags: { 'registries.mirrors': mirrors } })[0]).to.contain(
      'registries.mirrors.docker.io.endpoints[0]: got "https://***@mirror.example.com", expected ',
    );
  });

  for (const host of ['reg.lab:65536', 'reg.lab:99999', 'reg.lab:0', '[::1]:70000']) {
    it(`no registry is at ${host}`, () => {
      expect(problems({ flags: { 'registries.insecure': host } })).to.have.length(1);
      for (const mirrors of [{ [host]: { endpoints: ['m.test'] } }, { 'm.test': { endpoints: [host] } }])
        expect(problems({ flags: { 'registries.mirrors': JSON.stringify(mirrors) } })).to.have.length(1);
    });
  }
  for (const host of ['https://quay.example.com', 'quay.example.com/team', 'quay.example.com:0', '*.example.com']) {
    it(`registries.sparse is never ${host}`, () =>
      expect(problems({ flags: { 'registries.sparse': host } })).to.deep.equal([
        `registries.sparse[0]: got "${host}", expected a list of host or host:port (--registries.sparse)`,
      ]));
  }
  it('a mirror is not sparse unless it says so', () => {
    const { registries } = load({ file: 'registries: {mirrors: {docker.io: {endpoints: [m.test]}}}' }).config;
    expect(registries.sparse).to.deep.equal([]);
    expect(registries.mirrors['docker.io']?.sparse).to.equal(false);
  });
  it('a registry may be at the highest port', () =>
    expect(problems({ flags: { 'registries.insecure': 'reg.lab:65535,reg.lab:1,[::1]:60999' } })).to.deep.equal([]));

  for (const key of allKeys().filter(({ path }) => path !== 'credentials.kubelet.config')) {
    const { path } = key;
    const [text, value] = sampleOf(key);
    it(`${path} is a flag, the variable ${variableName(path)} and a key of the file`, () => {
      expect(valueAt(load({ flags: { [path]: text } }), path)).to.deep.equal(value);
      expect(valueAt(load({ environment: { [variableName(path)]: text } }), path)).to.deep.equal(value);
      const loaded = load({ file: fileWith(path, JSON.stringify(value)) });
      expect(valueAt(loaded, path)).to.deep.equal(value);
      expect(loaded.sources.get(path)).to.equal(`config.yaml:${path.split('.').length}`);
    });
  }

  it('has a default that the schema accepts, a text, and what it expects', () => {
    for (const { path, schema: part, fallback, description, expected } of allKeys()) {
      expect(part.safeParse(fallback).success, path).to.equal(true);
      expect(description, path).to.match(/^[A-Z].*[.]$/);
      expect(expected, path).not.to.equal('undefined');
    }
    expect(schema.safeParse(load({}).config).success).to.equal(true);
  });

  it('has a unique variable name', () => {
    expect(variableName('taints.nodeSelector')).to.equal('ARCHAWARE_TAINTS__NODE_SELECTOR');
    expect(variableName('images.cache.alwaysTagTtl')).to.equal('ARCHAWARE_IMAGES__CACHE__ALWAYS_TAG_TTL');
    expect(variableName('registries.maxInFlight')).to.equal('ARCHAWARE_REGISTRIES__MAX_IN_FLIGHT');
    const names = allKeys().map(({ path }) => variableName(path));
    expect(new Set(names).size).to.equal(names.length);
  });
});

describe('an unknown key', () => {
  const rows: Row[] = [
    ['taints:\n  efect: NoSchedule\n', 'taints.efect: unknown key; did you mean taints.effect? (config.yaml:2)'],
    ['Taints:\n  key: a\n', 'Taints: unknown key; did you mean taints? (config.yaml:1)'],
    ['taint:\n  key: a\n', 'taint: unknown key; did you mean taints? (config.yaml:1)'],
    ['images:\n  cach: {}\n', 'images.cach: unknown key; did you mean images.cache? (config.yaml:2)'],
    ['somethingElse: 1\n', 'somethingElse: unknown key (config.yaml:1)'],
    [
      'constructor: 1\n__proto__: 2\n',
      'constructor: unknown key (config.yaml:1)',
      '__proto__: unknown key (config.yaml:2)',
    ],
    ['taints.key: a\n', 'taints.key: unknown key; in a file the parts of a name are nested maps (config.yaml:1)'],
    ['workers:\n  count: 1\n', 'workers: got {"count":1}, expected a whole number from 1 to 256 (config.yaml:1)'],
    [
      'images:\n  overrides:\n    - pattern: a\n      architectures: [amd64]\n      arch: x\n',
      `images.overrides[0]: unknown key arch; expected ${OVERRIDES} (config.yaml:3)`,
    ],
    ['ARCHAWARE_TAINTS__KEYS=a', 'ARCHAWARE_TAINTS__KEYS: unknown variable; did you mean ARCHAWARE_TAINTS__KEY?'],
    ['ARCHAWARE_LOG_LEVEL=debug', 'ARCHAWARE_LOG_LEVEL: unknown variable; did you mean ARCHAWARE_LOG__LEVEL?'],
    ['ARCHAWARE_X__Y__Z=a', 'ARCHAWARE_X__Y__Z: unknown variable'],
    // Kubernetes sets these for a Service.
    [
      {
        environment: {
          ARCHAWARE_METRICS_PORT: 'tcp://10.0.0.1:9090',
          ARCHAWARE_METRICS_PORT_9090_TCP_ADDR: '10.0.0.1',
          ARCHAWARE_CONTROLLER_SERVICE_HOST: '10.0.0.1',
          ARCHAWARE_SERVICE_PORT: '9090',
          ARCHAWARE: 'x',
          PATH: '/bin',
        },
      },
    ],
    [
      'policies:\n  - name: a\n    fallbak: [arm64]\n    preferred: {arm64: 75}\n',
      `policies[0]: unknown key fallbak; expected ${POLICIES}; did you mean fallback? (config.yaml:2)`,
    ],
    [
      'registries:\n  mirrors:\n    docker.io: {endpoints: [a], spars: true, fall: true}\n',
      'registries.mirrors.docker.io: unknown key spars, fall; expected a map such as {docker.io: {endpoints: ' +
        '[mirror.example.com/hub], fallback: true, credentials: mirror, sparse: false}}; did you mean sparse? (config.yaml:3)',
    ],
  ];
  check(rows);

  it('is refused as a flag, with the nearest', () => {
    const known = ['taints.key', 'taints.effect', 'yes'];
    expect(unknownFlag('taints.kee', known)).to.equal('--taints.kee: unknown flag; did you mean --taints.key?');
    expect(unknownFlag('yess', known)).to.equal('--yess: unknown flag; did you mean --yes?');
    expect(unknownFlag('q'.repeat(100_000), known)).to.match(/unknown flag/);
  });
});

describe('a key that an earlier version had', () => {
  for (const [path, advice] of REMOVED) {
    it(`${path} says what to do now, from the file, a variable and a flag`, () => {
      const [variable, known] = [variableName(path), allKeys().map((key) => key.path)];
      expect(known).not.to.contain(path);
      const said = `this key was removed; ${advice}`;
      const line = path.split('.').length;
      expect(problems({ file: fileWith(path, '1') })).to.deep.equal([`${path}: ${said} (config.yaml:${line})`]);
      expect(problems({ environment: { [variable]: 'a' } })).to.deep.equal([`${variable}: ${said}`]);
      expect(unknownFlag(path, known)).to.equal(`--${path}: ${said}`);
    });
  }
});

describe('whether the webhook is served', () => {
  const rows: [given: Given | string, enabled: boolean, source: string][] = [
    [{}, false, 'default'],
    ['placement: {mode: taints}', false, 'default'],
    ['placement: {mode: both}', true, 'placement.mode, config.yaml:1'],
    ['placement: {mode: affinity}\nwebhook: {enabled: null}', true, 'placement.mode, config.yaml:1'],
    ['--placement.mode=affinity', true, 'placement.mode, --placement.mode'],
    ['placement: {mode: both}\nwebhook: {enabled: true}', true, 'config.yaml:2'],
    ['webhook: {enabled: true}', true, 'config.yaml:1'],
    ['placement: {mode: observe}', false, 'default'],
    ['placement: {mode: observe}\nwebhook: {enabled: false}', false, 'config.yaml:2'],
  ];
  for (const [given, enabled, source] of rows) {
    it(`follows from ${JSON.stringify(given)}: ${enabled}`, () => {
      const { config, sources } = load(given);
      expect([config.webhook.enabled, sources.get('webhook.enabled')]).to.deep.equal([enabled, source]);
    });
  }

  it('follows the mode of a configuration that is read again, which needs a restart', () => {
    const [before, after] = ['taints', 'both'].map((mode) => load({ flags: { 'placement.mode': mode } }).config);
    if (before === undefined || after === undefined) throw new Error('there are two');
    expect(compareConfig(before, after).needsRestart).to.deep.equal(['placement.mode', 'webhook.enabled']);
  });
});

describe('a value that is not allowed', () => {
  const EXPECTED = 'expected an architecture as nodes report it (amd64, arm64, arm, 386, ppc64le, riscv64, s390x, …)';
  const rows: Row[] = [
    [
      'placement: {mode: taints}\ntaints:\n  effect: noschedule\n',
      'taints.effect: got "noschedule", expected one of NoSchedule, PreferNoSchedule (NoExecute would evict pods that have no toleration yet) (config.yaml:3)',
    ],
    [
      'placement:\n  mode: gates\n  noCommonArchitecture: drop\n',
      'placement.mode: got "gates", expected one of taints, affinity, both, observe (config.yaml:2)',
      'placement.noCommonArchitecture: got "drop", expected one of hold, release, reject (config.yaml:3)',
    ],
    [
      'placement: {mode: both}\nwebhook: {enabled: false}\n',
      'webhook.enabled: got false (config.yaml:2), expected true, or not set, with placement.mode: both (config.yaml:1)',
    ],
    [
      {
        file: 'placement: {mode: observe}\nwebhook: {enabled: true}\npods: {onWrongNode: evict}\n',
        flags: { loops: 'nodes,labels' },
      },
      'webhook.enabled: got true (config.yaml:2), expected false, or not set, with placement.mode: observe (config.yaml:1)',
      'pods.onWrongNode: got "evict" (config.yaml:3), expected warn, or not set, with placement.mode: observe (config.yaml:1)',
      'loops: got ["nodes","labels"] (--loops), expected pods or daemonsets in it with placement.mode: observe (config.yaml:1)',
    ],
    [
      'architectures:\n  preferred: {arm64: 101, x86_64: 1}\n',
      `architectures.preferred.arm64: got 101, expected ${WEIGHTS} (config.yaml:2)`,
      `architectures.preferred.x86_64: got "x86_64", ${EXPECTED}; did you mean amd64? (config.yaml:2)`,
    ],
    [
      'registries:\n  mirrors:\n    quay.io: {endpoints: [m.test], sparse: true, fallback: false}\n    docker.io:\n      endpoints: [m.test]\n      sparse: true\n',
      'registries.mirrors.docker.io.sparse: got true, expected false, or fallback: false beside it, because the registry has what its mirrors lack (config.yaml:6)',
    ],
    [
      'architectures:\n  schedulable: [amd64]\n  preferred: {arm64: 75}\npolicies:\n  - {name: a, preferred: {s390x: 1}}\n',
      `architectures.preferred: got ["arm64"], expected ${SCHEDULABLE} (config.yaml:3)`,
      `policies[0].preferred: got ["s390x"], expected ${SCHEDULABLE} (config.yaml:5)`,
    ],
    [
      'taints: {key: 5}',
      'taints.key: got 5, expected a qualified name, such as supported-arch or example.com/arch (config.yaml:1)',
    ],
    ['taints: {manage: "no"}', 'taints.manage: got "no", expected true or false (config.yaml:1)'],
    ['ARCHAWARE_TAINTS__MANAGE=', 'taints.manage: got "", expected true or false (ARCHAWARE_TAINTS__MANAGE)'],
    ['workers: 1.5', 'workers: got 1.5, expected a whole number from 1 to 256 (config.yaml:1)'],
    [
      'bootstrap: {timeout: 30}',
      'bootstrap.timeout: got 30, expected a duration from 0s to 1h, such as 30s or 10m (config.yaml:1)',
    ],
    [
      'architectures:\n  schedulable:\n    - amd64\n    - aarch64\n',
      `architectures.schedulable[1]: got "aarch64", ${EXPECTED}; did you mean arm64? (config.yaml:4)`,
    ],
    // Every key that takes an architecture, and every place in it.
    ...[
      ['architectures: {schedulable: [amd]}', 'architectures.schedulable[0]: got "amd"', 'amd64'],
      ['architectures: {schedulable: [x86]}', 'architectures.schedulable[0]: got "x86"', 'amd64, or 386 for 32 bits'],
      ['architectures: {fallback: [foo]}', 'architectures.fallback[0]: got "foo"', undefined],
      ['architectures: {preferred: {armv8: 5}}', 'architectures.preferred.armv8: got "armv8"', 'arm64'],
      ['architectures: {compatible: {x64: ["386"]}}', 'architectures.compatible.x64: got "x64"', 'amd64'],
      ['architectures: {compatible: {arm64: [armv7l]}}', 'architectures.compatible.arm64[0]: got "armv7l"', 'arm'],
      [
        'images: {overrides: [{pattern: a, architectures: [riscv]}]}',
        'images.overrides[0].architectures[0]: got "riscv"',
        'riscv64',
      ],
      ['policies: [{name: a, schedulable: [arm64v8]}]', 'policies[0].schedulable[0]: got "arm64v8"', 'arm64'],
      ['policies: [{name: a, preferred: {intel: 5}}]', 'policies[0].preferred.intel: got "intel"', 'amd64'],
    ].map(
      ([file = '', got, meant]): Row => [
        file,
        `${got}, ${EXPECTED}${meant === undefined ? '' : `; did you mean ${meant}?`} (config.yaml:1)`,
      ],
    ),
    [
      '--architectures.schedulable=amd64/v2',
      `architectures.schedulable[0]: got "amd64/v2", ${EXPECTED}; did you mean amd64? (--architectures.schedulable)`,
    ],
    [
      'architectures:\n  compatible:\n    amd64: [386]\n',
      `architectures.compatible.amd64[0]: got 386, expected ${MAP} (config.yaml:3)`,
    ],
    [
      '--architectures.compatible=[a]',
      `architectures.compatible: got ["a"], expected ${MAP} (--architectures.compatible)`,
    ],
    [
      'ARCHAWARE_ARCHITECTURES__COMPATIBLE={a: [',
      `architectures.compatible: got "{a: [", expected ${MAP} (ARCHAWARE_ARCHITECTURES__COMPATIBLE)`,
    ],
    [
      'images:\n  overrides:\n    - pattern: a\n      architectures: []\n',
      `images.overrides[0].architectures: got [], expected ${OVERRIDES} (config.yaml:4)`,
    ],
    ['loops: []', 'loops: got [], expected a list of nodes, pods, daemonsets, labels (config.yaml:1)'],
    [
      '--registries.addresses.allow=10.0.0.0/33,host,10.0.0.0/8/8,::1/129',
      ...['10.0.0.0/33', 'host', '10.0.0.0/8/8', '::1/129'].map(
        (text, index) =>
          `registries.addresses.allow[${index}]: got "${text}", expected a list of CIDRs, such as 10.0.0.0/8,fd00::/8 ` +
          '(--registries.addresses.allow)',
      ),
    ],
    ['taints: no\n', 'taints: got "no", expected a map of keys (config.yaml:1)'],
    ['- taints\n', 'config.yaml: got ["taints"], expected a map of keys (config.yaml:1)'],
    [
      { file: 'workers: 0\nlogs: {}\n', flags: { 'log.level': 'trace' } },
      'workers: got 0, expected a whole number from 1 to 256 (config.yaml:1)',
      'logs: unknown key; did you mean log? (config.yaml:2)',
      'log.level: got "trace", expected one of debug, info, warn, error (--log.level)',
    ],
  ];
  const flags: [key: string, expected: string, got: Readonly<Record<string, string>>][] = [
    [
      'webhook.path',
      'a path of lower-case letters, digits, - and ., such as /mutate/4f1c2d, at most 200 characters long',
      {
        ...Object.fromEntries(
          ['mutate', '/Mutate', '/mutate//x', '/mutate/', '/mutate?x'].map((at) => [at, `"${at}"`]),
        ),
        [`/${'x/'.repeat(100)}x`]: `"/${'x/'.repeat(57)}x...`,
      },
    ],
    [
      'taints.effect',
      'one of NoSchedule, PreferNoSchedule (NoExecute would evict pods that have no toleration yet)',
      { NoExecute: '"NoExecute"' },
    ],
    ['webhook.address', 'host:port or :port', { '': '""' }],
    ['metrics.address', 'host:port or :port; empty for none', { ':65536': '":65536"' }],
    ['taints.manage', 'true or false', { yes: '"yes"' }],
    ['workers', 'a whole number from 1 to 256', { '257': '257', '-1': '-1', '1e1': '"1e1"' }],
    ['bootstrap.timeout', 'a duration from 0s to 1h, such as 30s or 10m', { '61m': '"61m"' }],
    [
      'taints.nodeSelector',
      'a label selector, such as key=value,key!=value,key in (a,b),!key, or an empty text',
      { 'a in b': '"a in b"' },
    ],
    ['log.level', 'one of debug, info, warn, error', { ['x'.repeat(10_000)]: `"${'x'.repeat(116)}...` }],
  ];
  for (const [key, expected, got] of flags) {
    for (const [text, shown] of Object.entries(got))
      rows.push([`--${key}=${text}`, `${key}: got ${shown}, expected ${expected} (--${key})`]);
  }
  rows.push(
    ['--loops=nodes,pod', 'loops[1]: got "pod", expected a list of nodes, pods, daemonsets, labels (--loops)'],
    [
      '--registries.insecure=http://localhost',
      'registries.insecure[0]: got "http://localhost", expected a list of host or host:port (--registries.insecure)',
    ],
  );
  const policies = (...more: readonly string[]) =>
    `policies:\n  - name: a\n${more.map((line) => `    ${line}\n`).join('')}`;
  const named = 'a name of lower-case letters, digits and -, such as team-a';
  const selector = 'a label selector, such as key=value,key!=value,key in (a,b),!key, or an empty text';
  rows.push(
    ...[
      ['fallback: [aarch64]', `.fallback[0]: got "aarch64", ${EXPECTED}; did you mean arm64?`],
      ['fallback: arm64', '.fallback: got "arm64", expected a list of architectures, such as amd64,arm64'],
      ['unresolvable: never', '.unresolvable: got "never", expected one of open, wait, fallback'],
      ['noCommonArchitecture: drop', '.noCommonArchitecture: got "drop", expected one of hold, release, reject'],
      ['preferred: {arm64: 0}', `.preferred.arm64: got 0, expected ${WEIGHTS}`],
      ['podSelector: a in b', `.podSelector: got "a in b", expected ${selector}`],
      ['namespaceSelector: 5', `.namespaceSelector: got 5, expected ${selector}`],
      ['namespaces: []', `.namespaces: got [], expected ${NAMESPACES}`],
      ['namespaces: [A]', `.namespaces[0]: got "A", expected ${NAMESPACES}`],
    ].map(([line = '', problem]): Row => [policies(line), `policies[0]${problem} (config.yaml:3)`]),
    ['policies:\n  - podSelector: a=b\n', `policies[0].name: got nothing, expected ${named} (config.yaml:2)`],
    ['--policies=[{name: A_b}]', `policies[0].name: got "A_b", expected ${named} (--policies)`],
    [
      `${policies()}  - name: b\n  - name: a\n`,
      'policies[2].name: got "a", expected a unique name (policies[0] has the same) (config.yaml:4)',
    ],
    ['ARCHAWARE_POLICIES=[a]', `policies[0]: got "a", expected ${POLICIES} (ARCHAWARE_POLICIES)`],
  );
  check(rows);

  it('does not matter if a later layer gives another', () =>
    expect(problems({ file: 'workers: 0', flags: { workers: '1' } })).to.deep.equal([]));

  it('may be a flag without a value, which means true', () =>
    expect(load({ file: 'taints: {manage: false}', flags: { 'taints.manage': '' } }).config.taints.manage).to.equal(
      true,
    ));
});

describe('values that contradict each other', () => {
  const rows: Row[] = [
    [
      'architectures:\n  schedulable: [amd64]\n  fallback: [amd64, arm64]\n',
      `architectures.fallback: got ["arm64"], expected ${SCHEDULABLE} (config.yaml:3)`,
    ],
    ['architectures: {schedulable: [amd64, arm64], fallback: [arm64]}'],
    ['architectures: {fallback: [arm64]}'],
    ['--images.unresolvable=fallback', `architectures.fallback: got [], expected ${FALLBACK} (--images.unresolvable)`],
    [{ flags: { 'images.unresolvable': 'fallback', 'architectures.fallback': 'arm64' } }],
    [
      'policies:\n  - name: a\n    schedulable: [amd64]\n    fallback: [amd64, arm64]\n',
      'policies[0].fallback: got ["arm64"], expected only architectures of policies[0].schedulable (amd64) (config.yaml:4)',
    ],
    [
      'architectures: {schedulable: [amd64]}\npolicies:\n  - name: a\n    fallback: [arm64]\n',
      `policies[0].fallback: got ["arm64"], expected ${SCHEDULABLE} (config.yaml:4)`,
    ],
    [
      'architectures: {fallback: [arm64]}\npolicies:\n  - {name: a, schedulable: [amd64]}\n',
      'policies[0].schedulable: got ["amd64"], expected it to have arm64 of architectures.fallback, or policies[0].fallback within it (config.yaml:3)',
    ],
    ['architectures: {schedulable: [amd64]}\npolicies:\n  - {name: a, schedulable: [], fallback: [arm64]}\n'],
    [
      'policies:\n  - name: a\n    unresolvable: fallback\n',
      'policies[0].fallback: got [], expected at least one architecture with policies[0].unresolvable: fallback (config.yaml:3)',
    ],
    ['architectures: {fallback: [arm64]}\npolicies:\n  - {name: a, unresolvable: fallback}\n'],
    [
      {
        file: 'policies:\n  - {name: a, fallback: []}\n',
        flags: { 'images.unresolvable': 'fallback', 'architectures.fallback': 'arm64' },
      },
      `policies[0].fallback: got [], expected ${FALLBACK} (config.yaml:2)`,
    ],
    [
      { file: 'policies: [{name: a}]', flags: { 'images.unresolvable': 'fallback' } },
      `architectures.fallback: got [], expected ${FALLBACK} (--images.unresolvable)`,
    ],
  ];
  check(rows);
});
