import type { ReadinessState, Report, Tally } from '../../../src/placement/readiness/report.ts';

const GIB = 1024 ** 3;

function tally(workloads: number, replicas: number, cpu: number, gibibytes: number): Tally {
  return { workloads, replicas, cpu, memory: gibibytes * GIB };
}

const NONE = tally(0, 0, 0, 0);

function states(given: Partial<Record<ReadinessState, Tally>>): Record<ReadinessState, Tally> {
  return { ready: NONE, pinned: NONE, blocked: NONE, missing: NONE, unknown: NONE, ...given };
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
    {
      kind: 'DaemonSet',
      namespace: 'ops',
      name: 'agent',
      replicas: 5,
      cpu: 1,
      memory: 2 * GIB,
      labels: { team: 'ops' },
      images: ['registry.example.com/ops/agent:3'],
      basis: 'images',
      verdicts: {
        arm64: {
          state: 'missing',
          reasons: [
            {
              kind: 'image',
              image: 'registry.example.com/ops/agent:3',
              containers: ['agent'],
              platforms: ['linux/amd64'],
              text: 'registry.example.com/ops/agent:3 (agent) is only for linux/amd64',
            },
          ],
        },
      },
    },
    {
      kind: 'Deployment',
      namespace: 'shop',
      name: 'legacy',
      replicas: 2,
      cpu: 2,
      memory: 4 * GIB,
      labels: { team: 'shop' },
      images: ['registry.example.com/shop/legacy:1.9', 'nginx:1.29'],
      basis: 'images',
      verdicts: {
        arm64: {
          state: 'blocked',
          reasons: [
            {
              kind: 'image',
              image: 'registry.example.com/shop/legacy:1.9',
              containers: ['migrate', 'web'],
              platforms: ['linux/amd64'],
              text: 'registry.example.com/shop/legacy:1.9 (migrate, web) is only for linux/amd64',
            },
          ],
        },
      },
    },
    {
      kind: 'Deployment',
      namespace: 'shop',
      name: 'web',
      replicas: 4,
      cpu: 4,
      memory: 8 * GIB,
      labels: { team: 'shop' },
      images: ['nginx:1.29'],
      basis: 'images',
      verdicts: { arm64: { state: 'ready', reasons: [] } },
    },
    {
      kind: 'Pod',
      namespace: 'shop',
      name: 'debug',
      replicas: 1,
      cpu: 1,
      memory: 2 * GIB,
      labels: {},
      images: ['registry.example.com/private/debug:1'],
      basis: 'open',
      verdicts: {
        arm64: {
          state: 'unknown',
          reasons: [
            {
              kind: 'lookup',
              image: 'registry.example.com/private/debug:1',
              containers: ['debug'],
              code: 'denied',
              text: 'registry.example.com/private/debug:1 (debug) could not be looked up (denied): 401 Unauthorized',
            },
          ],
        },
      },
    },
    {
      kind: 'SparkApplication',
      namespace: 'shop',
      name: 'nightly',
      replicas: 1,
      cpu: 1,
      memory: 2 * GIB,
      labels: { team: 'data' },
      images: ['redis:8'],
      basis: 'images',
      verdicts: { arm64: { state: 'ready', reasons: [] } },
    },
    {
      kind: 'StatefulSet',
      namespace: 'shop',
      name: 'db',
      replicas: 1,
      cpu: 1,
      memory: 2 * GIB,
      labels: { team: 'data' },
      images: ['redis:8'],
      basis: 'images',
      verdicts: {
        arm64: {
          state: 'pinned',
          reasons: [{ kind: 'node-selector', text: 'its nodeSelector asks for disktype=ssd, which no arm64 node has' }],
        },
      },
    },
  ],
  images: [
    {
      image: 'registry.example.com/shop/legacy:1.9',
      registry: 'registry.example.com',
      platforms: ['linux/amd64'],
      used: tally(1, 2, 2, 4),
      blocking: { arm64: { blocks: tally(1, 2, 2, 4), alone: tally(1, 2, 2, 4), newer: '2.0' } },
    },
    {
      image: 'registry.example.com/ops/agent:3',
      registry: 'registry.example.com',
      platforms: ['linux/amd64'],
      used: tally(1, 5, 1, 2),
      blocking: { arm64: { blocks: tally(1, 5, 1, 2), alone: tally(1, 5, 1, 2) } },
    },
    {
      image: 'nginx:1.29',
      registry: 'docker.io',
      platforms: ['linux/amd64', 'linux/arm64'],
      used: tally(2, 6, 6, 12),
      blocking: {},
    },
    {
      image: 'redis:8',
      registry: 'docker.io',
      platforms: ['linux/amd64', 'linux/arm64'],
      used: tally(2, 2, 2, 4),
      blocking: {},
    },
    {
      image: 'registry.example.com/private/debug:1',
      registry: 'registry.example.com',
      platforms: [],
      error: { code: 'denied', message: '401 Unauthorized' },
      used: tally(1, 1, 1, 2),
      blocking: {},
    },
  ],
};
