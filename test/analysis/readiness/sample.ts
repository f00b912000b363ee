import type { Report, Tally } from '../../../src/analysis/readiness/report.ts';
import type { ReadinessState } from '../../../src/placement/readiness/readiness-states.ts';

const GIB = 1024 ** 3;

function tally(workloads: number, replicas: number, cpu: number, gibibytes: number): Tally {
  return { workloads, replicas, cpu, memory: gibibytes * GIB };
}

const NONE = tally(0, 0, 0, 0);

function states(given: Partial<Record<ReadinessState, Tally>>): Record<ReadinessState, Tally> {
  return { ready: NONE, pinned: NONE, blocked: NONE, missing: NONE, unknown: NONE, ...given };
}

type Workload = Report['workloads'][number];
type Reason = Workload['verdicts'][string]['reasons'][number];

/** A workload (`namespace/name`) of so many replicas, CPUs and GiB. */
function workload(
  kind: string,
  where: string,
  [replicas, cpu, gibibytes]: readonly [number, number, number],
  images: readonly string[],
  state: ReadinessState,
  reasons: readonly Reason[] = [],
  team = where.split('/')[0] ?? '',
): Workload {
  const [namespace = '', name = ''] = where.split('/');
  const requests = { replicas, cpu, memory: gibibytes * GIB };
  const verdicts = { arm64: { state, reasons } };
  return { kind, namespace, name, ...requests, labels: { team }, images, basis: 'images', verdicts };
}

function lacksArm(image: string, ...containers: readonly string[]): Reason {
  const text = `${image} (${containers.join(', ')}) is only for linux/amd64`;
  return { kind: 'image', image, containers, platforms: ['linux/amd64'], text };
}

function image(name: string, platforms: readonly string[], used: Tally): Report['images'][number] {
  const registry = name.includes('/') ? (name.split('/')[0] ?? '') : 'docker.io';
  return { image: name, registry, platforms, used, blocking: {} };
}

/** A report of a few workloads, one for each state, for tests of its forms. Its numbers fit each other. */
export const SAMPLE: Report = {
  targets: ['arm64'],
  summary: {
    all: tally(6, 14, 10, 20),
    measure: 'cpu',
    targets: {
      arm64: {
        states: states({
          ready: tally(2, 5, 5, 10),
          pinned: tally(1, 1, 1, 2),
          blocked: tally(1, 2, 2, 4),
          missing: tally(1, 5, 1, 2),
          unknown: tally(1, 1, 1, 2),
        }),
        readyShare: 0.5,
        nodes: 2,
        rebuilds: [
          { image: 'registry.example.com/shop/legacy:1.9', frees: tally(1, 2, 2, 4), share: 0.2, readyAfter: 0.7 },
          { image: 'registry.example.com/ops/agent:3', frees: tally(1, 5, 1, 2), share: 0.1, readyAfter: 0.8 },
        ],
      },
    },
    notLookedUp: { images: 0, workloads: 0, registries: [] },
    unread: [
      {
        resource: 'cronjobs',
        text: 'the right to list cronjobs.batch in the cluster is missing: CronJobs are left out',
      },
    ],
  },
  workloads: [
    workload('DaemonSet', 'ops/agent', [5, 1, 2], ['registry.example.com/ops/agent:3'], 'missing', [
      lacksArm('registry.example.com/ops/agent:3', 'agent'),
    ]),
    workload(
      'Deployment',
      'shop/legacy',
      [2, 2, 4],
      ['registry.example.com/shop/legacy:1.9', 'nginx:1.29'],
      'blocked',
      [lacksArm('registry.example.com/shop/legacy:1.9', 'migrate', 'web')],
    ),
    workload('Deployment', 'shop/web', [4, 4, 8], ['nginx:1.29'], 'ready'),
    {
      ...workload('Pod', 'shop/debug', [1, 1, 2], ['registry.example.com/private/debug:1'], 'unknown', [
        {
          kind: 'lookup',
          image: 'registry.example.com/private/debug:1',
          containers: ['debug'],
          code: 'denied',
          text: 'registry.example.com/private/debug:1 (debug) could not be looked up (denied): 401 Unauthorized',
        },
      ]),
      labels: {},
      basis: 'open',
    },
    workload('SparkApplication', 'shop/nightly', [1, 1, 2], ['redis:8'], 'ready', [], 'data'),
    workload(
      'StatefulSet',
      'shop/db',
      [1, 1, 2],
      ['redis:8'],
      'pinned',
      [{ kind: 'node-selector', text: 'its nodeSelector asks for disktype=ssd, which no arm64 node has' }],
      'data',
    ),
  ],
  images: [
    {
      ...image('registry.example.com/shop/legacy:1.9', ['linux/amd64'], tally(1, 2, 2, 4)),
      blocking: { arm64: { blocks: tally(1, 2, 2, 4), alone: tally(1, 2, 2, 4), newer: '2.0' } },
    },
    {
      ...image('registry.example.com/ops/agent:3', ['linux/amd64'], tally(1, 5, 1, 2)),
      blocking: { arm64: { blocks: tally(1, 5, 1, 2), alone: tally(1, 5, 1, 2) } },
    },
    image('nginx:1.29', ['linux/amd64', 'linux/arm64'], tally(2, 6, 6, 12)),
    image('redis:8', ['linux/amd64', 'linux/arm64'], tally(2, 2, 2, 4)),
    {
      ...image('registry.example.com/private/debug:1', [], tally(1, 1, 1, 2)),
      error: { code: 'denied', message: '401 Unauthorized' },
    },
  ],
};
