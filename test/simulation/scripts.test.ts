import { expect } from 'chai';
import { type History, play, type Step } from './history.ts';

/** The pods of both DaemonSets are refused for more than five minutes. */
const NOT_BACK: readonly Step[] = [
  { do: 'calm' },
  { do: 'roll', set: 1 },
  { do: 'roll', set: 0 },
  { do: 'calm' },
  { do: 'tick', ms: 130_000 },
  { do: 'calm' },
  { do: 'tick', ms: 130_000 },
  { do: 'calm' },
  { do: 'tick', ms: 50_000 },
];

/** Lets these of the requests under way go on, one after the other. */
const go = (...which: readonly number[]) => which.map((one): Step => ({ do: 'go', which: one }));

/** Histories that once broke a rule. The numbers are those of docs/development/reliability.md. Unless they say otherwise: one replica, with taints. */
const SCRIPTS: readonly (readonly [what: string, steps: readonly Step[], settings?: Partial<History>])[] = [
  [
    'neighbours N1: no node is tainted, now or when it joins, while a policy refuses the template of a system DaemonSet',
    [
      { do: 'refuse templates', is: true },
      { do: 'set', set: 1, image: 0 },
      { do: 'roll', set: 1 },
      { do: 'quiet' },
      { do: 'node', node: 0, architecture: 'amd64' },
      { do: 'quiet' },
      { do: 'crash' },
      { do: 'quiet' },
      { do: 'node', node: 1, architecture: 'arm64' },
      { do: 'quiet' },
    ],
  ],
  [
    'neighbours N2: a change that no pod is let in with is taken back, and no node is tainted, under the next leader either',
    [
      { do: 'set', set: 1, image: 0 },
      { do: 'roll', set: 1 },
      { do: 'refuse pods', is: true },
      { do: 'quiet' },
      { do: 'crash' },
      { do: 'quiet' },
      { do: 'node', node: 1, architecture: 'amd64' },
      { do: 'quiet' },
    ],
  ],
  [
    'core 1: a pod that is deleted before the answer to its patch is not kept as a ghost',
    [
      { do: 'calm' },
      { do: 'pod', pod: 0, images: [2], isGated: false },
      ...go(0, 0, 0),
      { do: 'delete pod', pod: 0 },
      ...go(0, 1, 1),
      { do: 'calm' },
      { do: 'check' },
    ],
  ],
  [
    'core 1: a pod that is made again under its name before the answer is not lost',
    [
      { do: 'calm' },
      { do: 'pod', pod: 0, images: [2], isGated: false },
      ...go(0, 0, 0),
      { do: 'replace pod', pod: 0, images: [0], isGated: false },
      ...go(0, 1, 1, 1),
      { do: 'calm' },
      { do: 'check' },
    ],
  ],
  [
    'core 1: a DaemonSet that is deleted before the answer to its patch is not kept as a ghost',
    [
      { do: 'calm' },
      { do: 'set', set: 0, image: 0 },
      ...go(0, 0, 0),
      { do: 'delete set', set: 0 },
      ...go(0, 1),
      { do: 'calm' },
      { do: 'check' },
    ],
  ],
  [
    'core 2: a new leader does not widen a placed template while the registry is away',
    [{ do: 'set', set: 0, image: 0 }, { do: 'quiet' }, { do: 'registry', is: false }, { do: 'crash' }, { do: 'quiet' }],
  ],
  [
    'core 2: a new leader writes nothing to bound pods while the registry is away',
    [
      { do: 'pod', pod: 0, images: [1], isGated: false },
      { do: 'calm' },
      { do: 'bind' },
      { do: 'quiet' },
      { do: 'registry', is: false },
      { do: 'crash' },
      { do: 'quiet' },
    ],
    { replicas: 2 },
  ],
  [
    'core 15: a new leader asks nothing about what is placed',
    [
      { do: 'pod', pod: 0, images: [1], isGated: true },
      { do: 'set', set: 0, image: 2 },
      { do: 'quiet' },
      { do: 'stop' },
      { do: 'quiet' },
    ],
    { mode: 'both' },
  ],
  [
    'core 19: tolerations that another webhook takes out are noticed, and written again once it no longer does',
    [
      { do: 'calm' },
      { do: 'strip', is: true },
      { do: 'pod', pod: 0, images: [0], isGated: false },
      { do: 'calm' },
      { do: 'strip', is: false },
    ],
  ],
  [
    'admission S2: a passing 403 does not take the gate away without node affinity',
    [
      { do: 'calm' },
      { do: 'pod', pod: 0, images: [0], isGated: true },
      ...go(0, 0),
      { do: 'refuse', which: 0, status: 403 },
    ],
    { mode: 'both' },
  ],
  [
    'neighbours N5: an undo that brings back a toleration of archaware does not make it the author’s',
    [
      { do: 'set', set: 0, image: 2 },
      { do: 'quiet' },
      { do: 'set', set: 0, image: 0 },
      { do: 'quiet' },
      { do: 'undo', set: 0 },
    ],
  ],
  [
    'neighbours N5 and N8: nor does one after somebody removed the record',
    [
      { do: 'set', set: 0, image: 2 },
      { do: 'quiet' },
      { do: 'set', set: 0, image: 0 },
      { do: 'quiet' },
      { do: 'forget', set: 0 },
      { do: 'quiet' },
      { do: 'undo', set: 0 },
    ],
  ],
  [
    'neighbours N8: a record that somebody removes is written again, and clean finds its tolerations',
    [{ do: 'set', set: 0, image: 2 }, { do: 'quiet' }, { do: 'clean' }, { do: 'forget', set: 0 }],
    { replicas: 2 },
  ],
  [
    'found by the simulation: a record that somebody removes is written again after a passing 403',
    [
      { do: 'set', set: 0, image: 0 },
      { do: 'calm' },
      { do: 'forget', set: 0 },
      { do: 'go', which: 0 },
      { do: 'refuse', which: 0, status: 403 },
    ],
  ],
  [
    'found by the simulation: a change is taken back once, also if no answer to that arrives',
    [
      { do: 'set', set: 0, image: 2 },
      { do: 'set', set: 1, image: 2 },
      { do: 'roll', set: 0 },
      { do: 'roll', set: 1 },
      { do: 'refuse pods', is: true },
      { do: 'calm' },
      { do: 'tick', ms: 1_000 },
      { do: 'calm' },
      ...NOT_BACK,
      { do: 'lose', which: 0 },
      { do: 'go', which: 0 },
      { do: 'lose', which: 0 },
      { do: 'lose', which: 0 },
      ...NOT_BACK,
      ...NOT_BACK,
    ],
  ],
  [
    'found by the simulation: an image that is changed in place while no process leads is not taken for placed',
    [
      { do: 'pod', pod: 0, images: [0, 2], isGated: false },
      { do: 'calm' },
      { do: 'image', pod: 0, image: 1 },
      { do: 'crash' },
    ],
  ],
  [
    'found by the simulation: a pod that is ignored loses its gate with one write, also before the watch shows that write',
    [
      { do: 'calm' },
      { do: 'pod', pod: 1, images: [2], isGated: true, kind: 'plain' },
      { do: 'pod', pod: 0, images: [5], isGated: true, kind: 'daemon' },
      { do: 'go', which: 27 },
      { do: 'reload', to: 'daemons' },
      { do: 'ignore namespace', is: true },
      { do: 'go', which: 19 },
    ],
    { mode: 'affinity', leaseDuration: '60s', seed: 14, pageSize: 1 },
  ],
  [
    'found by the simulation: no image is looked up again because its pod starts to run after a long time',
    [
      { do: 'pod', pod: 0, images: [0], isGated: false, kind: 'plain' },
      { do: 'quiet' },
      { do: 'bind' },
      { do: 'quiet' },
    ],
  ],
  [
    'core 6: a pod that is being deleted is no longer decided',
    [
      { do: 'pod', pod: 0, images: [2], isGated: false, kind: 'plain' },
      { do: 'wait', ms: 20_000 },
      { do: 'bind' },
      { do: 'wait', ms: 20_000 },
      { do: 'delete pod', pod: 0, isSlow: true },
      { do: 'quiet' },
    ],
    { replicas: 2 },
  ],
  ...[1, 2].map(
    (seed) =>
      [
        `core 6: a pod gets all its architectures when no policy restricts it any more (seed ${seed})`,
        [
          { do: 'label namespace', is: true },
          { do: 'reload', to: 'arm' },
          { do: 'wait', ms: 20_000 },
          { do: 'pod', pod: 0, images: [2], isGated: false, kind: 'plain' },
          { do: 'wait', ms: 20_000 },
        ],
        { seed },
      ] as const,
  ),
  ...[0, 1].map(
    (which) =>
      [
        `faults F2: ${which === 0 ? 'a leader' : 'a follower'} whose connections die without a sign sees again within ten seconds`,
        [
          { do: 'quiet' },
          { do: 'connections die', which },
          { do: 'node', node: 0, architecture: 's390x' },
          { do: 'pod', pod: 0, images: [0], isGated: false },
          { do: 'wait', ms: 10_000 },
          { do: 'check' },
        ],
        { replicas: 2, leaseDuration: '15s' },
      ] as const,
  ),
  [
    'found by the simulation: a first list that is refused does not end the work of a process',
    [{ do: 'refuse', which: 0, status: 403 }],
  ],
];

describe('a script that once broke a rule', () => {
  for (const [what, steps, settings] of SCRIPTS) {
    it(what, async () => {
      const { broken, trace } = await play({ mode: 'taints', replicas: 1, ...settings, steps });
      const told = trace.filter((line) => !line.includes('/leases/'));
      expect(broken, `${broken}\n${told.slice(-60).join('\n')}`).to.equal(undefined);
    });
  }
});
