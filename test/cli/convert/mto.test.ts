import { expect } from 'chai';
import fc from 'fast-check';
import { convertMto } from '../../../src/cli/config/convert/mto.ts';
import { isObject } from '../../../src/kit/json.ts';
import { configOf, convertAndLoad, notesOf, problemsOf } from './outcome.ts';

const CLUSTER = {
  apiVersion: 'multiarch.openshift.io/v1beta1',
  kind: 'ClusterPodPlacementConfig',
  metadata: { name: 'cluster' },
};
const BASE = {
  placement: { mode: 'affinity' },
  webhook: { enabled: true },
  pods: { excludeNamespaces: ['kube-*', 'openshift-*', 'hypershift-*'] },
};
const convert = (text: string) => convertAndLoad(convertMto, text);
const cluster = (spec: object) => JSON.stringify({ ...CLUSTER, spec });

/** A PodPlacementConfig with these weights. */
function local(
  name: string,
  spec: { priority?: number; labels?: Record<string, string>; weights: Record<string, number> },
) {
  const platforms = Object.entries(spec.weights).map(([architecture, weight]) => ({ architecture, weight }));
  return {
    apiVersion: 'multiarch.openshift.io/v1beta1',
    kind: 'PodPlacementConfig',
    metadata: { name, namespace: 'shop' },
    spec: {
      ...(spec.priority === undefined ? {} : { priority: spec.priority }),
      ...(spec.labels === undefined ? {} : { labelSelector: { matchLabels: spec.labels } }),
      plugins: { nodeAffinityScoring: { enabled: true, platforms } },
    },
  };
}

const list = (...items: object[]) => JSON.stringify({ apiVersion: 'v1', kind: 'List', items });

function policiesOf(text: string): unknown[] {
  const { policies } = configOf(convert(text));
  return Array.isArray(policies) ? policies : [];
}

describe('manifests of multiarch-tuning-operator', () => {
  it('become a configuration for affinity', () => {
    const outcome = convert(`
apiVersion: multiarch.openshift.io/v1beta1
kind: ClusterPodPlacementConfig
metadata: {name: cluster}
spec:
  logVerbosity: TraceAll
  namespaceSelector:
    matchLabels: {team: shop}
    matchExpressions:
    - {key: multiarch.openshift.io/exclude-pod-placement, operator: DoesNotExist}
  fallbackArchitecture: amd64
  plugins:
    nodeAffinityScoring:
      enabled: true
      platforms:
      - {architecture: arm64, weight: 75}
      - {architecture: amd64, weight: 25}
    execFormatErrorMonitor: {enabled: true}
status: {conditions: []}
---
apiVersion: multiarch.openshift.io/v1beta1
kind: PodPlacementConfig
metadata: {name: power, namespace: shop}
spec:
  priority: 9
  labelSelector: {matchLabels: {app: billing}}
  plugins: {nodeAffinityScoring: {enabled: true, platforms: [{architecture: ppc64le, weight: 100}]}}
`);
    expect(configOf(outcome)).to.deep.equal({
      ...BASE,
      pods: { ...BASE.pods, namespaceSelector: 'team=shop,!multiarch.openshift.io/exclude-pod-placement' },
      architectures: { preferred: { arm64: 75, amd64: 25 }, fallback: ['amd64'] },
      images: { unresolvable: 'fallback' },
      log: { level: 'debug' },
      policies: [
        {
          name: 'shop-power',
          namespaces: ['shop'],
          podSelector: 'app=billing',
          preferred: { ppc64le: 100, arm64: 75, amd64: 25 },
        },
      ],
    });
    expect(Object.keys(notesOf(outcome))).to.have.members([
      'spec.logVerbosity',
      'spec.plugins.execFormatErrorMonitor',
      'multiarch.openshift.io/scheduling-gate',
    ]);
  });

  it('without settings keep only what the operator does by itself', () => {
    expect(configOf(convert(cluster({})))).to.deep.equal(BASE);
    expect(configOf(convert(cluster({ logVerbosity: 'Normal', fallbackArchitecture: '' })))).to.deep.equal({
      ...BASE,
      log: { level: 'info' },
    });
  });

  it('are read from a List, from lists of their own kind, and in the older version', () => {
    const [one] = policiesOf(list(CLUSTER, local('a', { weights: { arm64: 5 } })));
    expect(one).to.deep.include({ name: 'shop-a' });
    const { apiVersion, kind: _, ...item } = local('b', { weights: { arm64: 5 } });
    expect(policiesOf(JSON.stringify({ apiVersion, kind: 'PodPlacementConfigList', items: [item] }))).to.have.length(1);
    expect(
      configOf(convert(JSON.stringify({ ...CLUSTER, apiVersion: 'multiarch.openshift.io/v1alpha1' }))),
    ).to.deep.equal(BASE);
  });

  const selectors: [selector: unknown, expected: string | undefined][] = [
    [undefined, undefined],
    [null, undefined],
    [{}, undefined],
    [{ matchLabels: { a: 'b', 'x.io/c': '' } }, 'a=b,x.io/c='],
    [{ matchExpressions: [{ key: 'a', operator: 'In', values: ['b', 'c'] }] }, 'a in (b,c)'],
    [{ matchExpressions: [{ key: 'a', operator: 'In', values: ['b'] }] }, 'a=b'],
    [{ matchExpressions: [{ key: 'a', operator: 'In', values: [''] }] }, 'a='],
    [{ matchExpressions: [{ key: 'a', operator: 'NotIn', values: ['b', 'c'] }] }, 'a notin (b,c)'],
    [{ matchExpressions: [{ key: 'a', operator: 'NotIn', values: ['b'] }] }, 'a!=b'],
    [{ matchExpressions: [{ key: 'a', operator: 'Exists' }] }, 'a'],
    [{ matchLabels: { b: 'c' }, matchExpressions: [{ key: 'a', operator: 'DoesNotExist' }] }, 'b=c,!a'],
  ];
  for (const [namespaceSelector, expected] of selectors) {
    it(`with the selector ${JSON.stringify(namespaceSelector)} select ${expected ?? 'everything'}`, () => {
      const { pods } = configOf(convert(cluster({ namespaceSelector })));
      expect(isObject(pods) ? pods.namespaceSelector : 'none').to.equal(expected);
    });
  }

  it('of a namespace are ordered by priority, and the first decides alone', () => {
    const policies = policiesOf(
      list(
        local('low', { weights: { s390x: 1, arm64: 2 } }),
        local('high', { priority: 200, labels: { app: 'a' }, weights: { arm64: 50 } }),
        local('same', { priority: 100, labels: { app: 'a' }, weights: { amd64: 10 } }),
        {
          ...CLUSTER,
          spec: {
            plugins: { nodeAffinityScoring: { enabled: true, platforms: [{ architecture: 'amd64', weight: 3 }] } },
          },
        },
      ),
    );
    expect(policies).to.deep.equal([
      { name: 'shop-high', namespaces: ['shop'], podSelector: 'app=a', preferred: { arm64: 50, amd64: 10, s390x: 1 } },
      { name: 'shop-same', namespaces: ['shop'], podSelector: 'app=a', preferred: { amd64: 10, s390x: 1, arm64: 2 } },
      { name: 'shop-low', namespaces: ['shop'], preferred: { s390x: 1, arm64: 2, amd64: 3 } },
    ]);
  });

  it('with overlapping selectors get a note', () => {
    const notes = notesOf(
      convert(
        list(
          CLUSTER,
          local('one', { priority: 2, labels: { app: 'a' }, weights: { arm64: 50 } }),
          local('two', { priority: 1, labels: { tier: 'b' }, weights: { amd64: 10 } }),
        ),
      ),
    );
    expect(notes['PodPlacementConfig shop/two']).to.match(/one selects too/);
  });

  it('get valid and unique names for their policies', () => {
    const names = policiesOf(
      list(...['a.b', 'a_b', 'x'.repeat(70), 'x'.repeat(80)].map((name) => local(name, { weights: { arm64: 1 } }))),
    ).map((policy) => isObject(policy) && policy.name);
    expect(new Set(names).size).to.equal(4);
    for (const name of names) expect(name).to.match(/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/);
  });

  const noted: [what: string, text: string, key: string, expected: RegExp][] = [
    ['an unknown field', cluster({ color: 'red' }), 'spec.color', /unknown/],
    ['an unknown plugin', cluster({ plugins: { rules: {} } }), 'spec.plugins.rules', /unknown/],
    [
      'a plugin that is switched off',
      cluster({
        plugins: { nodeAffinityScoring: { enabled: false, platforms: [{ architecture: 'arm64', weight: 5 }] } },
      }),
      'spec.plugins.nodeAffinityScoring',
      /not enabled/,
    ],
    ['something else beside them', `${cluster({})}\n---\nkind: Service\nmetadata: {name: x}`, 'Service x', /not read/],
    [
      'no configuration of the cluster',
      list(local('a', { weights: { arm64: 1 } })),
      'ClusterPodPlacementConfig',
      /changes no pod/,
    ],
    [
      'a namespace without weights',
      list(CLUSTER, { ...local('a', { weights: {} }), spec: { plugins: {} } }),
      'PodPlacementConfig shop/a',
      /no effect/,
    ],
  ];
  for (const [what, text, key, expected] of noted) {
    it(`with ${what} get a note`, () => {
      expect(notesOf(convert(text))[key]).to.match(expected);
    });
  }

  const platforms = (...items: unknown[]) =>
    cluster({ plugins: { nodeAffinityScoring: { enabled: true, platforms: items } } });
  const refused: [what: string, text: string, expected: RegExp][] = [
    ['are no YAML', 'a: [', /^theirs: /],
    ['are nothing', '', /^theirs: got nothing, expected at most one ClusterPodPlacementConfig/],
    ['are something else', 'kind: Service', /^theirs: got Service, expected/],
    [
      'belong to another API group',
      'kind: ClusterPodPlacementConfig\napiVersion: v1',
      /^theirs: got ClusterPodPlacementConfig, expected/,
    ],
    ['are two for the cluster', list(CLUSTER, CLUSTER), /expected at most one/],
    [
      'have an unknown level',
      cluster({ logVerbosity: 'Loud' }),
      /^spec\.logVerbosity: got "Loud", expected one of Normal, Debug/,
    ],
    [
      'have no architecture to fall back to',
      cluster({ fallbackArchitecture: 'unknown' }),
      /^spec\.fallbackArchitecture: got "unknown", expected/,
    ],
    [
      'have a weight that is too large',
      platforms({ architecture: 'arm64', weight: 101 }),
      /platforms\[0\]\.weight: got 101, expected a whole number from 1 to 100/,
    ],
    ['have no weight', platforms({ architecture: 'arm64' }), /platforms\[0\]\.weight: got nothing, expected/],
    [
      'name one architecture twice',
      platforms({ architecture: 'arm64', weight: 1 }, { architecture: 'arm64', weight: 2 }),
      /platforms\[1\]\.architecture: got "arm64", expected each/,
    ],
    ['have no platforms', platforms(), /platforms: got \[\], expected a list/],
    [
      'have another operator',
      cluster({ namespaceSelector: { matchExpressions: [{ key: 'a', operator: 'Gt' }] } }),
      /matchExpressions\[0\]\.operator: got "Gt", expected one of In/,
    ],
    [
      'have no values to compare with',
      cluster({ namespaceSelector: { matchExpressions: [{ key: 'a', operator: 'In', values: [] }] } }),
      /matchExpressions\[0\]\.values: got \[\], expected/,
    ],
    [
      'smuggle a requirement into a key',
      cluster({ namespaceSelector: { matchExpressions: [{ key: 'x in (a)', operator: 'Exists' }] } }),
      /matchExpressions\[0\]\.key: got "x in \(a\)"/,
    ],
    [
      'smuggle a requirement into a value',
      cluster({ namespaceSelector: { matchLabels: { a: 'b,c' } } }),
      /matchLabels\.a: got "b,c", expected/,
    ],
    [
      'have a number as a label',
      'kind: ClusterPodPlacementConfig\napiVersion: multiarch.openshift.io/v1beta1\nspec: {namespaceSelector: {matchLabels: {a: 1}}}',
      /matchLabels\.a: got 1, expected the text/,
    ],
    [
      'name no namespace',
      list({ ...local('a', { weights: { arm64: 1 } }), metadata: { name: 'a' } }),
      /^PodPlacementConfig \?\/a: metadata\.namespace: got nothing, expected/,
    ],
    [
      'have too high a priority',
      list(local('a', { priority: 256, weights: { arm64: 1 } })),
      /spec\.priority: got 256, expected a whole number from 0 to 255/,
    ],
  ];
  for (const [what, text, expected] of refused) {
    it(`are refused if they ${what}, with the file, the value and what is allowed`, () => {
      const [problem, ...others] = problemsOf(convert(text));
      expect(others).to.deep.equal([]);
      expect(problem)
        .to.match(expected)
        .and.match(/theirs/);
    });
  }

  it('with any content are refused, or become a valid configuration', () => {
    const text = fc.oneof(
      fc.constantFrom('a', 'arm64', 'amd64', 'x.io/a', '', 'In', 'Exists', 'shop', 'Debug'),
      fc.string(),
    );
    const selector = fc.record(
      {
        matchLabels: fc.dictionary(text, text),
        matchExpressions: fc.array(
          fc.record({ key: text, operator: fc.constantFrom('In', 'NotIn', 'Exists'), values: fc.array(text) }),
        ),
      },
      { requiredKeys: [] },
    );
    const scoring = fc.record({
      enabled: fc.boolean(),
      platforms: fc.array(fc.record({ architecture: text, weight: fc.integer({ min: 0, max: 101 }) })),
    });
    const plugins = fc.record({ nodeAffinityScoring: scoring });
    const clusterSpec = fc.record(
      { logVerbosity: text, namespaceSelector: selector, fallbackArchitecture: text, plugins },
      { requiredKeys: [] },
    );
    const localSpec = fc.record(
      { labelSelector: selector, priority: fc.integer({ min: 0, max: 255 }), plugins },
      { requiredKeys: [] },
    );
    const locals = fc.array(fc.record({ metadata: fc.record({ name: text, namespace: text }), spec: localSpec }), {
      maxLength: 4,
    });
    fc.assert(
      fc.property(clusterSpec, locals, (spec, items) => {
        convert(list({ ...CLUSTER, spec }, ...items.map((item) => ({ ...local('x', { weights: {} }), ...item }))));
      }),
      { numRuns: 60 },
    );
  });
});
