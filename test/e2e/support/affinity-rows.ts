/** The rows of docs/admission.md about affinity: what a pod asks for itself, and what becomes of that. */

import type { PodOptions } from '../../support/workloads.ts';
import { isIn, onArch, preferring, required } from './placed.ts';

const ZONE = isIn('example.com/zone', 'a');
export const ARM = onArch('arm64');
const HERE = { matchFields: [isIn('metadata.name', 'arm64-1')] };
const terms = (...nodeSelectorTerms: readonly unknown[]) => ({
  requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms },
});
const liking = (weight: number, expression: unknown) => ({
  preferredDuringSchedulingIgnoredDuringExecution: [{ weight, preference: { matchExpressions: [expression] } }],
});
const ANTI = {
  podAntiAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: [
      { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: { app: 'nobody' } } },
    ],
  },
};

/** What a pod of an arm64 image asks for itself, what its affinity is in the end, and whether a node is left for it. */
export const SHAPES: readonly [
  title: string,
  own: NonNullable<PodOptions['spec']>,
  affinity: unknown,
  fits: boolean,
][] = [
  ['nothing', {}, { nodeAffinity: required([ARM]) }, true],
  ['another label', { affinity: { nodeAffinity: required([ZONE]) } }, { nodeAffinity: required([ZONE, ARM]) }, true],
  [
    'the architecture itself',
    { affinity: { nodeAffinity: required([onArch('amd64')]) } },
    { nodeAffinity: required([onArch('amd64')]) },
    true,
  ],
  [
    'the architecture by its old label',
    { affinity: { nodeAffinity: required([isIn('beta.kubernetes.io/arch', 'arm64')]) } },
    { nodeAffinity: required([isIn('beta.kubernetes.io/arch', 'arm64')]) },
    true,
  ],
  [
    'several terms, one of them of the architecture',
    { affinity: { nodeAffinity: required([onArch('s390x'), ZONE], [ZONE]) } },
    { nodeAffinity: required([onArch('s390x'), ZONE], [ZONE, ARM]) },
    true,
  ],
  [
    'a node by its name alone',
    { affinity: { nodeAffinity: terms(HERE) } },
    { nodeAffinity: terms({ ...HERE, matchExpressions: [ARM] }) },
    true,
  ],
  ['an empty term alone', { affinity: { nodeAffinity: terms({}) } }, { nodeAffinity: terms({}) }, false],
  [
    'an empty term beside another',
    { affinity: { nodeAffinity: terms({}, { matchExpressions: [ZONE] }) } },
    { nodeAffinity: terms({}, { matchExpressions: [ZONE, ARM] }) },
    true,
  ],
  [
    'a preference for an architecture',
    { affinity: { nodeAffinity: liking(7, onArch('amd64')) } },
    { nodeAffinity: { ...required([ARM]), ...liking(7, onArch('amd64')) } },
    true,
  ],
  [
    'a preference of another kind',
    { affinity: { nodeAffinity: liking(7, ZONE) } },
    { nodeAffinity: { ...required([ARM]), ...liking(7, ZONE) } },
    true,
  ],
  ['other pods away', { affinity: ANTI }, { ...ANTI, nodeAffinity: required([ARM]) }, true],
  ['an architecture by its node selector', { nodeSelector: { 'kubernetes.io/arch': 'arm64' } }, undefined, true],
  ['the same by the old label', { nodeSelector: { 'beta.kubernetes.io/arch': 'arm64' } }, undefined, true],
  [
    'something else by its node selector',
    { nodeSelector: { 'example.com/zone': 'a' } },
    { nodeAffinity: required([ARM]) },
    true,
  ],
];

/** In which namespace, with which labels of the pod: what is preferred for an image of both architectures. */
export const PREFERENCES: readonly [title: string, namespace: string, labels: PodOptions['labels'], wanted: unknown][] =
  [
    ['the configuration', 'plain', {}, preferring(['arm64', 10])],
    ['a policy before that', 'tiered', {}, preferring(['amd64', 20])],
    ["the namespace's annotation before both", 'annotated', {}, preferring(['arm64', 75], ['amd64', 25])],
    [
      "Noe's label before all of these",
      'annotated',
      { 'arch.noe.adevinta.com/preferred': 'amd64' },
      preferring(['amd64', 100]),
    ],
    [
      'our label first of all',
      'annotated',
      { 'archaware.dev/preferred': 'arm64', 'arch.noe.adevinta.com/preferred': 'amd64' },
      preferring(['arm64', 100]),
    ],
    [
      'the next source where one names nothing that the images run on',
      'annotated',
      { 'archaware.dev/preferred': 's390x' },
      preferring(['arm64', 75], ['amd64', 25]),
    ],
    ['the next source where an annotation cannot be read', 'misread', {}, preferring(['arm64', 10])],
  ];
