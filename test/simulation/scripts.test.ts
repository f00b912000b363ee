import { expect } from 'chai';
import { type History, play, type Step } from './history.ts';

/** A step, or the name of one that has nothing but that. */
type Told = Step | 'calm' | 'quiet' | 'crash' | 'check' | 'bind' | 'stop' | 'clean';

/** Lets these of the requests under way go on, one after the other. */
const go = (...which: readonly number[]) => which.map((one): Step => ({ do: 'go', which: one }));
const pod = (pod: number, images: number[]): Step => ({ do: 'pod', pod, images, isGated: false });
const gated = (pod: number, images: number[]): Step => ({ do: 'pod', pod, images, isGated: true });
const set = (set: number, image: number): Step => ({ do: 'set', set, image });
const of = (what: 'roll' | 'undo' | 'forget' | 'delete set', set: number): Step => ({ do: what, set });
const be = (
  what: 'refuse templates' | 'refuse pods' | 'registry' | 'strip' | 'ignore namespace' | 'label namespace',
  is: boolean,
): Step => ({ do: what, is });
const node = (node: number, architecture: string): Step => ({ do: 'node', node, architecture });
const wait = (seconds: number): Step => ({ do: 'wait', ms: seconds * 1000 });
const tick = (seconds: number): Step => ({ do: 'tick', ms: seconds * 1000 });
const LOSE: Step = { do: 'lose', which: 0 };
const REFUSE: Step = { do: 'refuse', which: 0, status: 403 };
const REPLACE: Step = { do: 'replace pod', pod: 0, images: [0], isGated: false };
const DELETE: Step = { do: 'delete pod', pod: 0 };

/** The pods of both DaemonSets are refused for more than five minutes. */
const NOT_BACK: Told[] = ['calm', of('roll', 1), of('roll', 0), 'calm', tick(130), 'calm', tick(130), 'calm', tick(50)];

/** Histories that once broke a rule. The numbers are those of docs/development/reliability.md. Unless they say otherwise: one replica, with taints. */
const SCRIPTS: readonly (readonly [what: string, steps: readonly Told[], settings?: Partial<History>])[] = [
  [
    'neighbours N1: no node is tainted, now or when it joins, while a policy refuses the template of a system DaemonSet',
    [
      ...[be('refuse templates', true), set(1, 0), of('roll', 1), 'quiet' as const, node(0, 'amd64')],
      ...(['quiet', 'crash', 'quiet'] as const),
      ...[node(1, 'arm64'), 'quiet' as const],
    ],
  ],
  [
    'neighbours N2: a change that no pod is let in with is taken back, and no node is tainted, under the next leader either',
    [set(1, 0), of('roll', 1), be('refuse pods', true), 'quiet', 'crash', 'quiet', node(1, 'amd64'), 'quiet'],
  ],
  [
    'core 1: a pod that is deleted before the answer to its patch is not kept as a ghost',
    ['calm', pod(0, [2]), ...go(0, 0, 0), DELETE, ...go(0, 1, 1), 'calm', 'check'],
  ],
  [
    'core 1: a pod that is made again under its name before the answer is not lost',
    ['calm', pod(0, [2]), ...go(0, 0, 0), REPLACE, ...go(0, 1, 1, 1), 'calm', 'check'],
  ],
  [
    'core 1: a DaemonSet that is deleted before the answer to its patch is not kept as a ghost',
    ['calm', set(0, 0), ...go(0, 0, 0), of('delete set', 0), ...go(0, 1), 'calm', 'check'],
  ],
  [
    'core 2: a new leader does not widen a placed template while the registry is away',
    [set(0, 0), 'quiet', be('registry', false), 'crash', 'quiet'],
  ],
  [
    'core 2: a new leader writes nothing to bound pods while the registry is away',
    [pod(0, [1]), 'calm', 'bind', 'quiet', be('registry', false), 'crash', 'quiet'],
    { replicas: 2 },
  ],
  [
    'core 15: a new leader asks nothing about what is placed',
    [gated(0, [1]), set(0, 2), 'quiet', 'stop', 'quiet'],
    { mode: 'both' },
  ],
  [
    'core 19: tolerations that another webhook takes out are noticed, and written again once it no longer does',
    ['calm', be('strip', true), pod(0, [0]), 'calm', be('strip', false)],
  ],
  [
    'admission S2: a passing 403 does not take the gate away without node affinity',
    ['calm', gated(0, [0]), ...go(0, 0), REFUSE],
    { mode: 'both' },
  ],
  [
    'neighbours N5: an undo that brings back a toleration of archaware does not make it the author’s',
    [set(0, 2), 'quiet', set(0, 0), 'quiet', of('undo', 0)],
  ],
  [
    'neighbours N5 and N8: nor does one after somebody removed the record',
    [set(0, 2), 'quiet', set(0, 0), 'quiet', of('forget', 0), 'quiet', of('undo', 0)],
  ],
  [
    'neighbours N8: a record that somebody removes is written again, and clean finds its tolerations',
    [set(0, 2), 'quiet', 'clean', of('forget', 0)],
    { replicas: 2 },
  ],
  [
    'found by the simulation: a record that somebody removes is written again after a passing 403',
    [set(0, 0), 'calm', of('forget', 0), ...go(0), REFUSE],
  ],
  [
    'found by the simulation: a change is taken back once, also if no answer to that arrives',
    [
      ...[set(0, 2), set(1, 2), of('roll', 0), of('roll', 1), be('refuse pods', true)],
      ...['calm' as const, tick(1), 'calm' as const, ...NOT_BACK, LOSE, ...go(0), LOSE, LOSE, ...NOT_BACK, ...NOT_BACK],
    ],
  ],
  [
    'found by the simulation: an image that is changed in place while no process leads is not taken for placed',
    [pod(0, [0, 2]), 'calm', { do: 'image', pod: 0, image: 1 }, 'crash'],
  ],
  [
    'found by the simulation: a pod that is ignored loses its gate with one write, also before the watch shows that write',
    [
      ...['calm' as const, gated(1, [2])],
      { do: 'pod', pod: 0, images: [5], isGated: true, kind: 'daemon' },
      ...go(27),
      { do: 'reload', to: 'daemons' },
      ...[be('ignore namespace', true), ...go(19)],
    ],
    { mode: 'affinity', leaseDuration: '60s', seed: 14, pageSize: 1 },
  ],
  [
    'found by the simulation: no image is looked up again because its pod starts to run after a long time',
    [pod(0, [0]), 'quiet', 'bind', 'quiet'],
  ],
  [
    'core 6: a pod that is being deleted is no longer decided',
    [pod(0, [2]), wait(20), 'bind', wait(20), { do: 'delete pod', pod: 0, isSlow: true }, 'quiet'],
    { replicas: 2 },
  ],
  ...[1, 2].map(
    (seed) =>
      [
        `core 6: a pod gets all its architectures when no policy restricts it any more (seed ${seed})`,
        [be('label namespace', true), { do: 'reload', to: 'arm' }, wait(20), pod(0, [2]), wait(20)],
        { seed },
      ] as const,
  ),
  ...[0, 1].map(
    (which) =>
      [
        `faults F2: ${which === 0 ? 'a leader' : 'a follower'} whose connections die without a sign sees again within ten seconds`,
        ['quiet', { do: 'connections die', which }, node(0, 's390x'), pod(0, [0]), wait(10), 'check'],
        { replicas: 2, leaseDuration: '15s' },
      ] as const,
  ),
  ['found by the simulation: a first list that is refused does not end the work of a process', [REFUSE]],
];

describe('a script that once broke a rule', () => {
  for (const [what, steps, settings] of SCRIPTS) {
    it(what, async () => {
      const played = steps.map((step): Step => (typeof step === 'string' ? { do: step } : step));
      const { broken, trace } = await play({ mode: 'taints', replicas: 1, ...settings, steps: played });
      const told = trace.filter((line) => !line.includes('/leases/'));
      expect(broken, `${broken}\n${told.slice(-60).join('\n')}`).to.equal(undefined);
    });
  }
});
