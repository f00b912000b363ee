import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import { at, isObject, type JsonObject, list, text } from './simulator/json.ts';
import { manifestDocuments } from './support/manifest.ts';
import { filesBelow } from './support/platforms.ts';

const CHART = 'manifests/helm/archaware-controller/';

/** RBAC cannot limit the creation of an object to a name. These have no policy that does, for a reason. */
const UNGUARDED: ReadonlyMap<string, string> = new Map([
  ['events.events.k8s.io', 'they are about objects of every namespace, and expire'],
  ['pods/eviction', 'it is a request, and no object stays'],
]);

/** Every object within a value, and the value. */
function within(value: unknown): JsonObject[] {
  const inner = Array.isArray(value) ? value : isObject(value) ? Object.values(value) : [];
  return [...(isObject(value) ? [value] : []), ...inner.flatMap(within)];
}

/** The resources of a rule, of a role or a policy: `leases.coordination.k8s.io`. */
function resourcesOf({ apiGroups, resources }: JsonObject): string[] {
  return list(apiGroups).flatMap((group) =>
    list(resources).map((resource) => [text(resource), text(group)].filter((part) => part !== '').join('.')),
  );
}

/** What the rules of roles, and of patches of roles, allow to create under any name. */
function creatable(found: readonly unknown[]): string[] {
  return within(found)
    .filter(
      ({ verbs, resourceNames }) =>
        !Array.isArray(resourceNames) && /"(?:create|\*)"/.test(JSON.stringify(list(verbs))),
    )
    .flatMap(resourcesOf);
}

/** What policies with a binding that denies look at when it is created. */
function guarded(found: readonly unknown[]): string[] {
  const denying = found
    .filter((each) => at(each, 'kind') === 'ValidatingAdmissionPolicyBinding')
    .filter((binding) => list(at(binding, 'spec', 'validationActions')).includes('Deny'))
    .map((binding) => at(binding, 'spec', 'policyName'));
  return within(
    found
      .filter((each) => at(each, 'kind') === 'ValidatingAdmissionPolicy')
      .filter((policy) => denying.includes(at(policy, 'metadata', 'name')))
      .map((policy) => at(policy, 'spec', 'matchConstraints', 'resourceRules')),
  )
    .filter(({ operations }) => list(operations).includes('CREATE'))
    .flatMap(resourcesOf);
}

/** The single manifests, and the parts of the overlays: each brings the policies for its own rights. */
const parts = new Map<string, unknown[]>();
for (const [file, found] of manifestDocuments()) {
  if (/^(?:helm|krew)/.test(file)) continue;
  const part = file.includes('/') ? dirname(file) : file;
  parts.set(part, [...(parts.get(part) ?? []), found]);
}

/** The rules in the templates of the chart, which are no YAML before they are filled in. */
const chartRules = filesBelow(`${CHART}templates`)
  .filter((file) => file.endsWith('.yaml'))
  .flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/^- apiGroups:.*\n(?: {2}\S.*\n)+/gm)].map(([rule]): unknown =>
      parse(rule.replaceAll(/\{\{.*?\}\}/g, 'filled-in')),
    ),
  );
/** The policies of the chart that its templates use. */
const used = readFileSync(`${CHART}templates/policies.yaml`, 'utf8').matchAll(/"file" "([a-z-]+)"/g);
const chartFiles = new Set([...used].map(([, name]) => `helm/archaware-controller/files/policies/${name}.yaml`));
const chartPolicies = manifestDocuments().flatMap(([file, found]) => (chartFiles.has(file) ? [found] : []));

describe('the rights to create an object of any name', () => {
  const rows: readonly (readonly [title: string, rights: readonly string[], policies: readonly string[]])[] = [
    ...[...parts].map(([part, found]) => [part, creatable(found), guarded(found)] as const),
    ['the chart', creatable(chartRules), guarded(chartPolicies)],
  ];
  for (const [title, rights, policies] of rows.filter(([, found]) => found.length > 0)) {
    it(`have a policy that limits them, or a reason to have none: ${title}`, () => {
      expect(rights.filter((each) => !policies.includes(each) && !UNGUARDED.has(each))).to.deep.equal([]);
    });
  }

  it('were found, and the reasons are for what is there', () => {
    const found = new Map(rows.map(([title, rights]) => [title, rights]));
    expect(found.get('the chart')).to.include.members(['leases.coordination.k8s.io', 'secrets']);
    for (const part of ['archaware-controller.yaml', 'archaware-controller-observe.yaml', 'kustomize/base'])
      expect(found.get(part), part).to.include('leases.coordination.k8s.io');
    expect(found.get('webhook.yaml')).to.include('secrets');
    expect([...found.values()].flat()).to.include.members([...UNGUARDED.keys()]);
  });
});
