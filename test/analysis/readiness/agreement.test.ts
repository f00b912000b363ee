import { expect } from 'chai';
import fc from 'fast-check';
import type { JsonObject } from '../../../src/kit/json.ts';
import { decide } from '../../../src/placement/decide.ts';
import { obstaclesTo } from '../../../src/placement/fit.ts';
import { nodeArchitecture } from '../../../src/placement/nodes/node.ts';
import { readWorkload, readWorkloadSubject } from '../../../src/placement/objects/workload.ts';
import { tolerationsFor } from '../../../src/placement/patch/tolerations.ts';
import type { Settings } from '../../../src/placement/settings.ts';
import { settings, taint } from '../../placement/objects.ts';
import { answer, node, object, report } from './world.ts';

const TARGETS = ['amd64', 'arm64', 's390x'];
const image = fc.constantFrom('web', 'old-amd64', 'new-arm64', 'x-amd64-s390x', 'gone', 'wasm');
const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
const term = fc.record({
  matchExpressions: fc.array(
    fc.record({
      key: fc.constantFrom('kubernetes.io/arch', 'disk'),
      operator: fc.constantFrom('In', 'NotIn'),
      values: fc.subarray(['amd64', 'arm64', 'ssd'], { minLength: 1 }),
    }),
    { minLength: 1, maxLength: 2 },
  ),
});
const toleration = fc.constantFrom<JsonObject>(
  { key: 'team', operator: 'Exists' },
  { key: 'supported-arch', operator: 'Equal', value: 'arm64', effect: 'NoSchedule' },
  { operator: 'Exists' },
);

const workload = fc
  .record({
    kind: fc.constantFrom('Deployment', 'StatefulSet', 'DaemonSet', 'Job', 'CronJob', 'ReplicaSet', 'Pod'),
    images: fc.uniqueArray(image, { minLength: 1, maxLength: 3 }),
    statement: optional(fc.constantFrom('all', 'amd64', 'arm64,s390x', 'nonsense')),
    labels: fc.constantFrom<JsonObject>({}, { 'archaware.dev/ignore': 'true' }, { team: 'a' }),
    nodeSelector: optional(fc.constantFrom<JsonObject>({ disk: 'ssd' }, { 'kubernetes.io/arch': 'arm64' })),
    terms: optional(fc.array(term, { minLength: 1, maxLength: 2 })),
    tolerations: optional(fc.array(toleration, { maxLength: 2 })),
  })
  .map(({ kind, images, statement, labels, nodeSelector, terms, tolerations }) => {
    const required = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } };
    return object({
      kind,
      images,
      labels,
      annotations: statement === undefined ? {} : { 'archaware.dev/architectures': statement },
      pod: { nodeSelector, tolerations, ...(terms === undefined ? {} : { affinity: { nodeAffinity: required } }) },
    });
  });

/** Clusters that have a node of each target: where one is missing, the report goes by copies of others, and `fit` cannot say. */
const nodes = fc.tuple(
  ...TARGETS.map((architecture) =>
    fc
      .array(fc.record({ ssd: fc.boolean(), own: fc.boolean(), others: fc.boolean() }), { minLength: 1, maxLength: 3 })
      .map((each) =>
        each.map(({ ssd, own, others }, index) =>
          node(architecture, {
            name: `${architecture}-${index}`,
            labels: ssd ? { disk: 'ssd' } : {},
            taints: [
              ...(own ? [taint(`supported-arch=${architecture}:NoSchedule`)] : []),
              ...(others ? [taint('team=ml:NoSchedule')] : []),
            ],
          }),
        ),
      ),
  ),
);

const changes = fc.constantFrom<Partial<Settings>>(
  {},
  { schedulable: ['amd64', 'arm64'] },
  { unresolvable: 'wait' },
  { unresolvable: 'fallback', fallback: ['arm64'] },
  { noCommonArchitecture: 'release' },
  { daemonSets: 'ignore' },
  { overrides: [{ pattern: '*old*', architectures: ['arm64'] }] },
);

describe('the report and run', () => {
  it('agree: a workload is ready where a placement includes the target and its demands fit a node there', () => {
    fc.assert(
      fc.property(workload, nodes, changes, (made, groups, changed) => {
        const all = groups.flat();
        const [row] = report({ objects: [made], nodes: all, targets: TARGETS, settings: changed }).workloads;
        for (const target of TARGETS) {
          expect(row?.verdicts[target]?.state === 'ready', target).to.equal(
            isReady(made, all, target, settings(changed)),
          );
        }
      }),
      { numRuns: 200 },
    );
  });
});

/** The same question, asked of `decide` and `fit` as `run` and `explain` ask them. */
function isReady(made: JsonObject, all: ReturnType<typeof node>[], target: string, applied: Settings): boolean {
  const read = readWorkload(made);
  if (read === undefined) throw new Error('not a workload');
  const subject = readWorkloadSubject(read, { name: 'shop', labels: {}, preferred: undefined }, applied);
  if (subject.skipped !== undefined) return false;
  const decision = decide(subject, {
    clusterArchitectures: TARGETS,
    namesOf: (name) => [`docker.io/library/${name}`],
    answerOf: ({ image: name }) => answer(name),
    waitedMs: Number.POSITIVE_INFINITY,
  });
  if (decision.kind !== 'place' || !decision.architectures.includes(target)) return false;
  // A guess is not readiness.
  if (!['images', 'statement', 'cluster'].includes(decision.basis)) return false;
  const own = read.demands.tolerations.filter(({ key }) => key !== applied.taints.key);
  const demands = { ...read.demands, tolerations: [...own, ...tolerationsFor(applied.taints, decision.architectures)] };
  return all.some((each) => nodeArchitecture(each) === target && obstaclesTo(demands, each).length === 0);
}
