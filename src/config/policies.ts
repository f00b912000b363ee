import * as z from 'zod';
import { architectures, choice, inPolicy, leaf, selector, weights } from './leaves.ts';

/** Names of namespaces, with wildcards. */
export const GLOB = /^[a-z0-9*?.-]+$/;

/** The global keys that a policy may override. */
export const decisive = {
  noCommonArchitecture: choice(
    ['hold', 'release', 'reject'],
    'hold',
    'What happens to a pod whose images have no architecture in common, or, in modes with affinity, not the one that it asks for. reject: admission refuses the pod, if all its images are known.',
  ),
  preferred: weights(
    'Architectures that the scheduler prefers, with weights from 1 to 100, if the mode includes affinity.',
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

/** The key `policies`. */
export const policies = leaf(
  z.array(policy).check(uniqueNames).default([]),
  'Settings for some of the pods; the first policy that matches a pod wins over the global keys.',
  'a list of {name: team-a, namespaces: [team-a-*], namespaceSelector, podSelector, schedulable: [arm64], preferred: {arm64: 75}, ' +
    'unresolvable, fallback, noCommonArchitecture}',
);

function uniqueNames({ value, issues }: z.core.ParsePayload<{ readonly name: string }[]>): void {
  value.forEach(({ name }, index) => {
    const first = value.findIndex((policy) => policy.name === name);
    if (first === index) return;
    const message = `got ${JSON.stringify(name)}, expected a unique name (policies[${first}] has the same)`;
    issues.push({ code: 'custom', message, path: [index, 'name'], input: value });
  });
}
