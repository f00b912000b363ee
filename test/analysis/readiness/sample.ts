import type { ImageAnswer } from '../../../src/placement/images.ts';
import { failed, known } from '../../placement/objects.ts';
import { node, object, owned, report } from './world.ts';

const LEGACY = 'registry.example.com/shop/legacy:1.9';
const AGENT = 'registry.example.com/ops/agent:3';
const DEBUG = 'registry.example.com/private/debug:1';
const ANSWERS: Readonly<Record<string, ImageAnswer>> = {
  [LEGACY]: known('linux/amd64'),
  [AGENT]: known('linux/amd64'),
  [DEBUG]: { ...failed(0), code: 'denied', message: '401 Unauthorized' } as ImageAnswer,
};

/** A container that requests so much of CPU and of memory. */
function container(name: string, image: string, cpu = '1', memory = '2Gi') {
  return { name, image, resources: { requests: { cpu, memory } } };
}

/** The labels of a team; none for nobody's. */
const of = (team?: string) => ({ labels: team === undefined ? {} : { team } });

/** A report of a few workloads, one for each state, for tests of its forms. */
export const SAMPLE = report({
  objects: [
    object({
      ...{ kind: 'DaemonSet', namespace: 'ops', name: 'agent', ...of('ops'), status: { desiredNumberScheduled: 5 } },
      pod: { containers: [container('agent', AGENT, '200m', '0.4Gi')] },
    }),
    object({
      ...{ name: 'legacy', spec: { replicas: 2 }, ...of('shop') },
      pod: {
        initContainers: [{ name: 'migrate', image: LEGACY }],
        containers: [container('web', LEGACY), { name: 'proxy', image: 'nginx:1.29' }],
      },
    }),
    object({ spec: { replicas: 4 }, ...of('shop'), pod: { containers: [container('web', 'nginx:1.29')] } }),
    object({ kind: 'Pod', name: 'debug', pod: { containers: [container('debug', DEBUG)] } }),
    object({
      ...{ kind: 'Pod', name: 'nightly-1', metadata: owned('SparkApplication', 'nightly', 's'), ...of('data') },
      pod: { containers: [container('driver', 'redis:8')] },
    }),
    object({
      ...{ kind: 'StatefulSet', name: 'db', ...of('data') },
      pod: { containers: [container('db', 'redis:8')], nodeSelector: { disktype: 'ssd' } },
    }),
  ],
  nodes: [node('amd64'), node('arm64'), node('arm64', { name: 'arm64-2' })],
  answerOf: ({ image }) => ANSWERS[image] ?? known('linux/amd64,linux/arm64'),
  newerOf: (image) => (image === LEGACY ? '2.0' : undefined),
  unread: [
    { resource: 'cronjobs', text: 'the right to list cronjobs.batch in the cluster is missing: CronJobs are left out' },
  ],
});
