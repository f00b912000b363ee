import * as z from 'zod';
import { architectures, choice, inPolicy, leaf, selector, weights } from './leaves.ts';

/** Names of namespaces, with wildcards. */
export const GLOB = /^[a-z0-9*?.-]+$/;

/** The global keys that a policy may override. */
export const decisive = {
  noCommonArchitecture: choice(
    ['hold', 'release', 'reject'],
    'hold',
    'What becomes of a pod whose images have no architecture in common; reject: refused at admission where that is known there.',
  ),
  preferred: weights(
    'Weights, 1 to 100, that nodes of these architectures get in scheduling, where the mode includes affinity.',
  ),
  schedulable: architectures('The only architectures that are ever used; empty: all.'),
  fallback: architectures('Used with images.unresolvable: fallback.'),
  unresolvable: choice(['open', 'wait', 'fallback'], 'open', 'What becomes of pods whose images cannot be resolved.'),
};

const policy = z.strictObject({
  name: leaf(
    z.string().regex(/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/),
    'Name of the policy, for logs and Events.',
    'a name of lower-case letters, digits and -, as team-a',
  ),
  namespaces: leaf(
    z.array(z.string().regex(GLOB)).min(1).optional(),
    'Namespaces whose pods it is for; absent: all.',
    'a list of namespace names in which * and ? are wildcards, as team-*',
  ),
  namespaceSelector: selector('The same by labels of the namespace; empty: all.'),
  podSelector: selector('Pods that it is for, by their labels; empty: all.'),
  schedulable: inPolicy(decisive.schedulable),
  preferred: inPolicy(decisive.preferred),
  unresolvable: inPolicy(decisive.unresolvable),
  fallback: inPolicy(decisive.fallback),
  noCommonArchitecture: inPolicy(decisive.noCommonArchitecture),
});

/** The key `policies`. */
export const policies = leaf(
  z.array(policy).check(uniqueNames).default([]),
  'Keys for some of the pods; the first policy that matches a pod wins over the global keys.',
  'a list of {name: team-a, namespaces: [team-a-*], namespaceSelector, podSelector, schedulable: [arm64], preferred: {arm64: 75}, ' +
    'unresolvable, fallback, noCommonArchitecture}',
);

function uniqueNames({ value, issues }: z.core.ParsePayload<{ readonly name: string }[]>): void {
  value.forEach(({ name }, index) => {
    const first = value.findIndex((policy) => policy.name === name);
    if (first === index) return;
    const message = `got ${JSON.stringify(name)}, expected a name of its own (policies[${first}] has it)`;
    issues.push({ code: 'custom', message, path: [index, 'name'], input: value });
  });
}
