import { expect } from 'chai';
import fc from 'fast-check';
import { convertNoe } from '../../../src/cli/config/convert/noe.ts';
import { configOf, convertAndLoad, notesOf, problemsOf } from './outcome.ts';

const BASE = {
  placement: { mode: 'affinity', noCommonArchitecture: 'reject' },
  webhook: { enabled: true },
  pods: { onWrongNode: 'evict' },
  architectures: { preferred: { amd64: 100 } },
};
const convert = (text: string) => convertAndLoad(convertNoe, text);

/** What the flags become, in addition to what Noe does without any. */
const FLAGS: [flags: string, expected: object][] = [
  ['--preferred-arch=arm64', { architectures: { preferred: { arm64: 100 } } }],
  ['-preferred-arch arm64', { architectures: { preferred: { arm64: 100 } } }],
  ['noe -preferred-arch arm64', { architectures: { preferred: { arm64: 100 } } }],
  ['./bin/noe \\\n  --preferred-arch "arm64" \\\n', { architectures: { preferred: { arm64: 100 } } }],
  [
    "# from the Deployment\n--preferred-arch='arm64'\n--system-os=linux",
    { architectures: { preferred: { arm64: 100 } } },
  ],
  [
    '- --preferred-arch=arm64\n- --leader-elect',
    { architectures: { preferred: { arm64: 100 } }, leaderElection: { enabled: true } },
  ],
  ['["--preferred-arch", "arm64"]', { architectures: { preferred: { arm64: 100 } } }],
  ['--preferred-arch=', { architectures: undefined }],
  ['--preferred-arch=s390x --preferred-arch=arm64', { architectures: { preferred: { arm64: 100 } } }],
  [
    '--cluster-schedulable-archs=amd64,arm64',
    { architectures: { preferred: { amd64: 100 }, schedulable: ['amd64', 'arm64'] } },
  ],
  ['--cluster-schedulable-archs=arm64', { architectures: { schedulable: ['arm64'] } }],
  ['--cluster-schedulable-archs=', {}],
  ['--system-os windows', {}],
  ['--metrics-addr :8080', { metrics: { address: ':8080' } }],
  ['--metrics-addr=0', { metrics: { address: '' } }],
  ['--health-probe-addr=:8081 --cert-dir=/certs --kubeconfig=/k', {}],
  ['--leader-elect --preferred-arch=amd64', { leaderElection: { enabled: true } }],
  ['--leader-elect=F', {}],
  ['--match-node-labels=x.io/gpu,zone', { pods: { onWrongNode: 'evict', matchNodeLabels: ['x.io/gpu', 'zone'] } }],
  [
    '--registry-proxies=docker.io=hub.corp,quay.io=quay.corp:5000',
    {
      registries: {
        mirrors: {
          'docker.io': { endpoints: ['hub.corp'], fallback: false },
          'quay.io': { endpoints: ['quay.corp:5000'], fallback: false },
        },
      },
    },
  ],
  [
    '--registry-proxies=docker.io=a.corp,a.corp=b.corp,docker.io=c.corp',
    {
      registries: {
        mirrors: {
          'docker.io': { endpoints: ['b.corp'], fallback: false },
          'a.corp': { endpoints: ['b.corp'], fallback: false },
        },
      },
    },
  ],
  ['--registry-proxies=', {}],
  [
    '--private-registries=*.corp,registry.io:5000/team',
    { registries: { private: ['*.corp/*', '*.corp:*/*', 'registry.io:5000/team*'] } },
  ],
  [
    '--image-credential-provider-config=/etc/p.json --image-credential-provider-bin-dir=/opt/p',
    { credentials: { kubelet: { config: '/etc/p.json', binDirectory: '/opt/p' } } },
  ],
  ['--image-credential-provider-config=/etc/p.json', {}],
  ['--image-credential-provider-bin-dir=/opt/p', {}],
];

const DEPLOYMENT = `
apiVersion: v1
kind: Service
metadata: {name: noe}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: noe}
spec:
  template:
    spec:
      containers:
      - {name: other, args: [--port=1]}
      - name: webhook
        command: [/noe]
        args: [--registry-proxies=, "--cluster-schedulable-archs=amd64,arm64", --leader-elect=true]
`;

const VALUES = `
image: {registry: ghcr.io, repository: adevinta/noe, tag: latest}
schedulableArchitectures: [amd64, arm64]
proxies: [docker.io=hub.corp]
matchNodeLabels: [x.io/gpu]
kubeletConfig: {binDir: /opt/p, configDir: /etc/p, config: config.json}
privateRegistries: ["*.corp"]
dockerConfigPathCandidates: [/var/lib/kubelet/config.json]
containerdConfigPathCandidates: [/etc/containerd]
ha: {enabled: true}
pod: {labels: {team: shop}}
issuer:
replicas: 2
`;

describe("Noe's command line", () => {
  for (const [flags, expected] of FLAGS) {
    it(`${JSON.stringify(flags)} becomes ${JSON.stringify(expected)}`, () => {
      const wanted = Object.entries({ ...BASE, ...expected }).filter(([, value]) => value !== undefined);
      expect(configOf(convert(flags))).to.deep.equal(Object.fromEntries(wanted));
    });
  }

  it('is found in a manifest, in the container that has its flags', () => {
    expect(configOf(convert(DEPLOYMENT))).to.deep.equal({
      ...BASE,
      architectures: { preferred: { amd64: 100 }, schedulable: ['amd64', 'arm64'] },
      leaderElection: { enabled: true },
    });
  });

  it('is built from the values of its Helm chart', () => {
    const outcome = convert(VALUES);
    expect(configOf(outcome)).to.deep.equal({
      ...BASE,
      pods: { onWrongNode: 'evict', matchNodeLabels: ['x.io/gpu'] },
      architectures: { preferred: { amd64: 100 }, schedulable: ['amd64', 'arm64'] },
      registries: {
        mirrors: { 'docker.io': { endpoints: ['hub.corp'], fallback: false } },
        private: ['*.corp/*', '*.corp:*/*'],
      },
      credentials: {
        kubelet: { config: '/etc/p/config.json', binDirectory: '/opt/p' },
        dockerConfigFiles: ['/var/lib/kubelet/config.json'],
      },
      leaderElection: { enabled: true },
    });
    const notes = notesOf(outcome);
    expect(notes.replicas).to.equal('unknown');
    expect(notes).to.include.keys(
      'pod',
      'matchNodeLabels',
      'dockerConfigPathCandidates',
      'containerdConfigPathCandidates',
    );
    expect(notes).not.to.include.keys('image', 'issuer', 'ha', 'files that Noe looks for by itself');
  });

  const noted: [what: string, text: string, key: string, expected: RegExp][] = [
    ['an unknown flag', '--zap-devel --preferred-arch=arm64', '--zap-devel', /unknown/],
    ['an unknown flag and its value', '--zap-level debug --preferred-arch=arm64', '--zap-level', /unknown/],
    ['a word that is not a flag', '--preferred-arch=arm64 serve --leader-elect', 'arguments', /stops/],
    ['no preference of its own', '--system-os=linux', '--preferred-arch', /node selector/],
    ['a preference that is excluded', '--cluster-schedulable-archs=arm64', '--preferred-arch', /does not start/],
    ['another system', '--system-os=windows', '--system-os', /each pod/],
    ['an address of probes', '--health-probe-addr=:1', '--health-probe-addr', /metrics\.address/],
    ['certificates', '--cert-dir=/certs', '--cert-dir', /its Service/],
    ['leader election switched off', '--leader-elect=false', '--leader-elect', /stays on/],
    ['a pattern as a registry', '--registry-proxies=*.io=p.corp', '--registry-proxies', /a pattern/],
    ['half a proxy', '--registry-proxies=p.corp', '--registry-proxies', /ignores/],
    ['a path at a proxy', '--registry-proxies=docker.io=p.corp/hub', '--registry-proxies', /\/v2\/<path>/],
    ['a class in a pattern', '--private-registries=r[0-9].corp', '--private-registries', /class/],
    [
      'half of the plug-ins',
      '--image-credential-provider-bin-dir=/p',
      '--image-credential-provider-bin-dir',
      /left out/,
    ],
    ['another spelling', '--preferred-arch=aarch64', '--preferred-arch', /node selector/],
  ];
  for (const [what, text, key, expected] of noted) {
    it(`with ${what} gets a note`, () => {
      expect(notesOf(convert(text))[key]).to.match(expected);
    });
  }

  const refused: [what: string, text: string, expected: RegExp][] = [
    ['is empty', '', /^theirs: got 0 containers/],
    ['is something else', 'kind: Service', /^theirs: got 0 containers with flags of Noe, expected its flags/],
    ['is values of another chart', 'replicas: 2', /^theirs: got 0 containers/],
    ['is there twice', `${DEPLOYMENT}---${DEPLOYMENT}`, /^theirs: got 2 containers/],
    ['is not YAML', 'a: [', /^theirs: /],
    ['lacks a value at its end', '--preferred-arch', /^--preferred-arch: got nothing, expected a value/],
    [
      'prefers something that is not an architecture',
      '--preferred-arch=a/b',
      /^--preferred-arch: got "a\/b", expected an architecture as nodes/,
    ],
    ['has no address', '--metrics-addr=8080', /^--metrics-addr: got "8080", expected host:port/],
    ['has neither true nor false', '--leader-elect=maybe', /^--leader-elect: got "maybe", expected true or false/],
    [
      'has an impossible label',
      '--match-node-labels=a/b/c',
      /^--match-node-labels: got "a\/b\/c", expected a list of label keys/,
    ],
    [
      'has a proxy that is not a host',
      '--registry-proxies=docker.io=a..b/C',
      /^--registry-proxies: got .*, expected a map such as/,
    ],
    [
      'has a text instead of a list',
      'schedulableArchitectures: amd64',
      /^schedulableArchitectures: got "amd64", expected a list of texts/,
    ],
  ];
  for (const [what, text, expected] of refused) {
    it(`is refused if it ${what}, with the file, the value and what is allowed`, () => {
      const [problem, ...others] = problemsOf(convert(text));
      expect(others).to.deep.equal([]);
      expect(problem)
        .to.match(expected)
        .and.match(/theirs/);
    });
  }

  it('shows no password of a proxy', () => {
    const problems = problemsOf(convert('--registry-proxies=docker.io=https://me:secret@p.corp'));
    expect(problems).to.have.length(1);
    expect(problems.join()).not.to.include('secret');
  });

  it('with any content is refused, or becomes a valid configuration', () => {
    const names = FLAGS.flatMap(([flags]) => flags.match(/--[a-z-]+/g) ?? []);
    const value = fc.oneof(
      fc.constantFrom('amd64', 'arm64,amd64', 'true', ':1', 'docker.io=p.corp', 'a=b/c,b=d', '*.corp', '/x', ''),
      fc.string(),
    );
    const word = fc.tuple(fc.constantFrom(...new Set(names), '--other'), value, fc.boolean());
    fc.assert(
      fc.property(fc.array(word, { minLength: 1, maxLength: 6 }), (words) => {
        const list = words.flatMap(([name, text, isJoined]) => (isJoined ? [`${name}=${text}`] : [name, text]));
        convert(JSON.stringify(list));
        convert(list.join(' '));
      }),
      { numRuns: 60 },
    );
  });
});
