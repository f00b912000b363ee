import { expect } from 'chai';
import type { JudgedWorkload } from '../../../src/analysis/workloads/overview.ts';
import { type Closing, closingLines } from '../../../src/cli/plan/plan-notes.ts';
import type { Plan } from '../../../src/cli/plan/plan-shape.ts';
import { settings } from '../../placement/objects.ts';

const NOTHING: Plan = {
  ...{ changes: [], waiting: [], held: [], unresolved: [], ignored: [] },
  ...{ workloads: [], refused: [], pools: [], newPods: [] },
};
const wrong = (kind: string, name: string, more: Partial<JudgedWorkload> = {}): JudgedWorkload => ({
  ...{ kind, namespace: 'shop', name, reach: 'limited', pendingAtRestart: false, pendingNow: false, why: '' },
  ...{ onWrongNode: true, ...more },
});
const rolls = (name: string): Plan['changes'][number] => ({
  ...{ kind: 'DaemonSet', namespace: 'shop', name, action: 'tolerate' },
  patch: [{ op: 'add', path: '/spec/template/spec/tolerations', value: [] }],
});
const NEW_PODS: Plan['newPods'] = [{ kind: 'Deployment', namespace: 'shop', name: 'web', requires: [] }];
const INSTALLED: Partial<Closing> = { origin: 'cluster' };
const STAY = 'workloads on a wrong node could run on another, but stay: while archaware runs,';
const EVICT = '; or set pods.onWrongNode: evict.';

describe('a plan ends with', () => {
  const rows: [what: string, plan: Partial<Plan>, closing: Partial<Closing>, expected: readonly string[]][] = [
    ['nothing to change', {}, INSTALLED, ['Nothing to change.']],
    [
      'what is next after the sum',
      { changes: [rolls('agent')] },
      INSTALLED,
      [
        'Would change: 1 DaemonSet; DaemonSets roll, one after another: shop/agent.',
        'Next: archaware status shows how far the controller is',
      ],
    ],
    [
      'a command for each workload that can be restarted',
      { workloads: [wrong('Deployment', 'web'), wrong('DaemonSet', 'agent')] },
      INSTALLED,
      [
        'Nothing to change.',
        `2 ${STAY} restart as below${EVICT}`,
        '  kubectl -n shop rollout restart deployment/web',
        '  kubectl -n shop rollout restart daemonset/agent',
      ],
    ],
    [
      'what to delete, where nothing can be restarted',
      { workloads: [wrong('Pod', 'bare'), wrong('Deployment', 'web'), wrong('Job', 'once')] },
      INSTALLED,
      [
        'Nothing to change.',
        `3 ${STAY} restart as below; delete Pod shop/bare, the pods of Job shop/once, and create again what has no owner${EVICT}`,
        '  kubectl -n shop rollout restart deployment/web',
      ],
    ],
    [
      'no word about the pods of a DaemonSet that rolls anyway, nor about those that would be Pending',
      {
        changes: [rolls('agent')],
        workloads: [wrong('DaemonSet', 'agent'), wrong('Deployment', 'web', { pendingAtRestart: true })],
      },
      { origin: 'file' },
      [
        'Would change: 1 DaemonSet; DaemonSets roll, one after another: shop/agent.',
        'Next: run archaware with this configuration (docs/install.md)',
      ],
    ],
    [
      'a command for a DaemonSet that rolls before its wrong nodes are tainted',
      {
        changes: [{ kind: 'Node', name: 'arm64-1', action: 'taint', patch: [] }, rolls('agent')],
        workloads: [wrong('DaemonSet', 'agent')],
      },
      { origin: 'file' },
      [
        'Would change: 1 node, 1 DaemonSet; DaemonSets roll, one after another: shop/agent.',
        `1 workload on a wrong node could run on another, but stays: while archaware runs, restart as below${EVICT}`,
        '  kubectl -n shop rollout restart daemonset/agent',
        'Next: run archaware with this configuration (docs/install.md)',
      ],
    ],
    [
      'no command for a workload whose new pods would not go to a right node',
      { workloads: [wrong('Deployment', 'web'), wrong('Deployment', 'stuck')] },
      { ...INSTALLED, stuck: new Set(['Deployment shop/stuck']) },
      [
        'Nothing to change.',
        `1 workload on a wrong node could run on another, but stays: while archaware runs, restart as below${EVICT}`,
        '  kubectl -n shop rollout restart deployment/web',
      ],
    ],
    [
      'no change where the mode that runs gives new pods theirs',
      { newPods: NEW_PODS },
      INSTALLED,
      ['Nothing to change. New pods of 1 workload would get node affinity.'],
    ],
    [
      'a change where another mode would',
      { newPods: NEW_PODS },
      { ...INSTALLED, isOtherMode: true },
      [
        'Would change: what new pods of 1 workload require.',
        'Next: apply the manifest or the values of this mode (docs/changing-modes.md)',
      ],
    ],
    [
      'a change where nothing is installed',
      { newPods: NEW_PODS },
      {},
      [
        'Would change: what new pods of 1 workload require.',
        'Next: install archaware in the mode that fits (docs/install.md)',
      ],
    ],
  ];
  for (const [what, plan, closing, expected] of rows) {
    it(what, () => {
      const given: Closing = {
        ...{ program: 'archaware', settings: settings(), origin: 'defaults', isOtherMode: false, stuck: new Set() },
        ...closing,
      };
      expect(closingLines({ ...NOTHING, ...plan }, given)).to.deep.equal(expected);
    });
  }
});
