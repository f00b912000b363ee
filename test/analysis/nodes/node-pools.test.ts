import { expect } from 'chai';
import { nodePoolProblems, readNodePool } from '../../../src/analysis/nodes/node-pools.ts';
import type { JsonObject } from '../../../src/kit/json.ts';
import { parseSelector } from '../../../src/kit/label-syntax.ts';
import type { PoolSettings } from '../../../src/placement/nodes/pools.ts';
import { expression } from '../../placement/affinities.ts';
import { settings, taint } from '../../placement/objects.ts';

const arch = (operator: string, ...values: string[]) => ({ key: 'kubernetes.io/arch', operator, values });
const OURS = ['supported-arch=arm64:NoSchedule'];

/** A NodePool as the API server has it. */
function pool(given: {
  requirements?: readonly JsonObject[];
  labels?: JsonObject;
  taints?: readonly string[];
  startup?: readonly string[];
}): JsonObject {
  const { requirements = [arch('In', 'arm64')], labels, taints, startup } = given;
  return {
    metadata: { name: 'a' },
    spec: {
      template: {
        ...(labels === undefined ? {} : { metadata: { labels } }),
        spec: {
          requirements,
          ...(taints === undefined ? {} : { taints: taints.map((text) => taint(text)) }),
          ...(startup === undefined ? {} : { startupTaints: startup.map((text) => taint(text)) }),
        },
      },
    },
  };
}

function problemsOf(given: Parameters<typeof pool>[0], by: PoolSettings = settings()) {
  const read = readNodePool(pool(given));
  return read === undefined ? [] : nodePoolProblems(read, by);
}

describe('the problems of a NodePool', () => {
  const { taints } = settings();
  const MODES = {
    taints: settings(),
    both: settings({ mode: 'both' }),
    affinity: settings({ mode: 'affinity', taints: { ...taints, manage: false } }),
    'taints.manage: false': settings({ taints: { ...taints, manage: false } }),
  } as const;
  const selecting = (selector: string) => settings({ taints: { ...taints, nodeSelector: parseSelector(selector) } });

  type Row = [
    what: string,
    given: Parameters<typeof pool>[0],
    mode: keyof typeof MODES | PoolSettings,
    /** `!` before an error; the others are warnings. */
    found: string,
  ];
  const requiring = (...more: JsonObject[]) => ({ requirements: [arch('In', 'arm64'), ...more] });
  const byLabel = { requirements: [], labels: { 'kubernetes.io/arch': 'arm64' }, taints: OURS };
  const WRONG = { taints: ['supported-arch=amd64:NoSchedule'] };
  const several = { requirements: [arch('In', 'amd64', 'arm64')] };
  const rows: Row[] = [
    ['one architecture and its taint', { taints: OURS }, 'taints', ''],
    ['one architecture and its taint', { taints: OURS }, 'both', ''],
    ['one architecture and its taint', { taints: OURS }, 'taints.manage: false', ''],
    ['one architecture and its taint', { taints: OURS }, 'affinity', 'taint-not-tolerated'],
    ['one architecture and no taint', {}, 'taints', 'taint-missing'],
    ['one architecture and no taint', {}, 'both', 'taint-missing'],
    ['one architecture and no taint', {}, 'affinity', ''],
    ['one architecture and no taint', {}, 'taints.manage: false', ''],
    ['a taint of others', { taints: ['gpu=yes:NoSchedule'] }, 'taints', 'taint-missing'],
    ['another effect', { taints: ['supported-arch=arm64:PreferNoSchedule'] }, 'taints', 'taint-missing'],
    ['the taint of another architecture', WRONG, 'taints', 'taint-of-another-architecture'],
    ['two architectures', several, 'taints', 'several-architectures'],
    ['two architectures', several, 'both', 'several-architectures'],
    ['two architectures', several, 'affinity', ''],
    ['two architectures and a taint', { ...several, taints: OURS }, 'taints', 'several-architectures'],
    ['no architecture named', { requirements: [] }, 'taints', 'several-architectures'],
    ['one that is ruled out', { requirements: [arch('NotIn', 'amd64')] }, 'taints', 'several-architectures'],
    ['two requirements that leave one', { ...requiring(arch('In', 'amd64', 'arm64')), taints: OURS }, 'taints', ''],
    ['the architecture as a label of the template', byLabel, 'taints', ''],
    ['the old name of the label', { requirements: [expression('old-arch In arm64')], taints: OURS }, 'taints', ''],
    ['the taint at startup', { startup: OURS }, 'taints', '!startup-taint taint-missing'],
    ['the taint at startup', { startup: OURS }, 'affinity', '!startup-taint'],
    ['the taint at startup', { startup: OURS }, 'taints.manage: false', '!startup-taint'],
    ['the taint at startup too', { startup: OURS, taints: OURS }, 'both', '!startup-taint'],
    ['a startup taint of others', { startup: ['cilium=yes:NoExecute'], taints: OURS }, 'taints', ''],
    ['a name that is not selected', {}, selecting('karpenter.sh/nodepool=b'), ''],
    ['a name that is selected', {}, selecting('karpenter.sh/nodepool=a'), 'taint-missing'],
    ['a label that is not selected', { labels: { team: 'x' } }, selecting('team=y'), ''],
    ['a label that is missing', {}, selecting('team'), ''],
    ['a label that is chosen later', requiring(expression('team In x,y')), selecting('team=y'), 'taint-missing'],
    ['a requirement that is not selected', requiring(expression('team In x')), selecting('team=y'), ''],
    ['a label of the provider', {}, selecting('node.kubernetes.io/instance-type=m7g.large'), 'taint-missing'],
  ];
  for (const [what, given, mode, found] of rows) {
    const [by, name] =
      typeof mode === 'string' ? [MODES[mode], mode] : [mode, JSON.stringify(mode.taints.nodeSelector)];
    it(`${what}, ${name}: ${found || 'nothing'}`, () => {
      const told = problemsOf(given, by).map(({ severity, problem }) => `${severity === 'error' ? '!' : ''}${problem}`);
      expect(told.join(' ')).to.equal(found);
    });
  }

  it('is reported with its consequence and what to do', () => {
    const [missing] = problemsOf({});
    expect(missing?.note).to.equal(
      'lacks the taint supported-arch=arm64:NoSchedule. Karpenter plans without the taint that archaware sets, and may go on ' +
        'starting nodes on which pending pods cannot run. Add the taint to spec.template.spec.taints; Karpenter then replaces the ' +
        'nodes of the pool (docs/autoscalers.md)',
    );
    const [both] = problemsOf(several, settings({ mode: 'both' }));
    expect(both?.note).to.match(/^allows amd64, arm64, .* on which pods that archaware leaves alone cannot run\./);
    const [startup] = problemsOf({ startup: OURS, taints: OURS });
    expect(startup?.note).to.match(
      /^has supported-arch=arm64:NoSchedule in startupTaints\. .*move the taint to taints/,
    );
  });

  it('is not reported for a NodePool that is being deleted', () =>
    expect(readNodePool({ metadata: { name: 'a', deletionTimestamp: '2026-01-01T00:00:00Z' } })).to.equal(undefined));

  it('never throws, for any object', () => {
    const odd = { metadata: 1, spec: { template: { spec: { requirements: [1, { key: 2 }], taints: [null, {}] } } } };
    const read = readNodePool(odd);
    expect(read && nodePoolProblems(read, settings()).map(({ problem }) => problem)).to.deep.equal([
      'several-architectures',
    ]);
  });
});
