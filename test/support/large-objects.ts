import type { JsonObject } from '../../src/kit/json.ts';

/** The parts of a pod, or of a template, that its author chooses. */
export type Parts = {
  readonly labels?: JsonObject;
  readonly annotations?: JsonObject;
  readonly spec?: JsonObject;
  readonly status?: JsonObject;
};

/** A pod that no node takes, so that it costs its author nothing. `index` makes it unlike the others of its flood. */
export type LargePod = (index: number) => Required<Pick<Parts, 'labels' | 'spec'>>;

const NOWHERE = { nodeSelector: { nowhere: 'x' } };
const APP = [{ name: 'c', image: 'x.invalid/a:1', imagePullPolicy: 'IfNotPresent' }];

/** 390 KB of tolerations. */
export const manyTolerations: LargePod = (index) => ({
  labels: {},
  spec: {
    ...NOWHERE,
    containers: APP,
    tolerations: list(10_000, (at) => ({ key: `k${at}x${index}`, operator: 'Exists' })),
  },
});

/** 700 KB of labels. */
export const manyLabels: LargePod = (index) => ({
  labels: Object.fromEntries(list(20_000, (at) => [`label-${at}-of-${index}`, `value-${at}-${index}`])),
  spec: { ...NOWHERE, containers: APP },
});

/** 190 KB of names of images, at a host that does not exist. */
export const manyImages: LargePod = (index) => ({
  labels: {},
  spec: {
    ...NOWHERE,
    containers: list(256, (at) => ({
      name: `c${at}`,
      image: `r.invalid/${'abcdefghij/'.repeat(20)}p${index}/i${at}/${'z'.repeat(480)}:1`,
      imagePullPolicy: 'IfNotPresent',
    })),
  },
});

/** One of many versions of a template whose labels, statement, images, tolerations and pull secrets each are nearly 4 KB. */
export const templateVersion: LargePod = (index) => ({
  labels: { app: 'bomb', id: `${index}`, ...Object.fromEntries(list(390, (at) => [`k${at.toString(36)}`, 'v'])) },
  spec: {
    ...NOWHERE,
    containers: list(10, (at) => ({ name: `c${at}`, image: `r.invalid/${index}/${'y'.repeat(240)}:${at}` })),
    tolerations: list(100, (at) => ({ key: at === 0 ? `i${index}` : `k${at}`, operator: 'Exists' })),
    imagePullSecrets: list(15, (at) => ({ name: `s${at}-${index}`.padEnd(230, 's') })),
  },
});

function list<T>(length: number, item: (index: number) => T): T[] {
  return Array.from({ length }, (_, index) => item(index));
}

/** What the API server accepts in one object, each as large as etcd takes it, or nearly. */
export const FLOODS: readonly [name: string, parts: Parts][] = [
  ['10,000 tolerations', { spec: { tolerations: list(10_000, (at) => ({ key: `k${at}`, operator: 'Exists' })) } }],
  ['20,000 labels', { labels: Object.fromEntries(list(20_000, (at) => [`label-${at}`, `value-${at}`])) }],
  [
    '256 images with long names',
    { spec: { containers: list(256, (at) => ({ name: `c${at}`, image: `r.example.com/${'x'.repeat(700)}${at}` })) } },
  ],
  ['1,000 pull secrets', { spec: { imagePullSecrets: list(1_000, (at) => ({ name: `${at}`.padEnd(253, 's') })) } }],
  ['a statement of 200 KB', { annotations: { 'archaware.dev/architectures': 'amd64,'.repeat(33_000) } }],
  [
    'a record of 200 KB',
    {
      annotations: { 'archaware.dev/tolerations': JSON.stringify(list(2_000, (at) => ({ key: `k${at}`.padEnd(60) }))) },
    },
  ],
  [
    'the gate, and an affinity of 5,000 values',
    {
      spec: {
        schedulingGates: [{ name: 'archaware.dev/architecture' }],
        affinity: { nodeAffinity: { x: list(5_000, (at) => `value-${at}`) } },
        nodeSelector: Object.fromEntries(list(5_000, (at) => [`label-${at}`, `value-${at}`])),
      },
    },
  ],
  [
    '256 containers that are broken',
    {
      spec: { containers: list(256, (at) => ({ name: `c${at}`, image: `r.example.com/${'y'.repeat(700)}${at}` })) },
      status: {
        phase: 'Running',
        containerStatuses: list(256, (at) => ({
          name: `c${at}`,
          imageID: `r.example.com/${'y'.repeat(700)}${at}@sha256:${'0'.repeat(64)}`,
          state: { waiting: { reason: 'CrashLoopBackOff' } },
        })),
      },
    },
  ],
  [
    'a broken container whose image has a name of 400 KB',
    {
      spec: { containers: [{ name: 'c', image: 'x'.repeat(400_000) }] },
      status: {
        phase: 'Pending',
        containerStatuses: [{ name: 'c', state: { waiting: { reason: 'InvalidImageName' } } }],
      },
    },
  ],
  [
    'an affinity to an OS with a name of 400 KB',
    {
      spec: {
        affinity: {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: {
              nodeSelectorTerms: [
                { matchExpressions: [{ key: 'kubernetes.io/os', operator: 'In', values: ['x'.repeat(400_000)] }] },
              ],
            },
          },
        },
      },
    },
  ],
];
