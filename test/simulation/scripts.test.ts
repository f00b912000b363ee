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

/** Histories that once broke a rule. The numbers are those of docs/reliability.md. */
const SCRIPTS: readonly (readonly [what: string, history: History])[] = [
  [
    'neighbours N1: no node is tainted, now or when it joins, while a policy refuses the template of a system DaemonSet',
    {
      mode: 'taints',
      replicas: 1,
      steps: [
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
    },
  ],
  [
    'neighbours N2: a change that no pod is let in with is taken back, and no node is tainted, under the next leader either',
    {
      mode: 'taints',
      replicas: 1,
      steps: [
        { do: 'set', set: 1, image: 0 },
        { do: 'roll', set: 1 },
        { do: 'refuse pods', is: true },
        { do: 'quiet' },
        { do: 'crash' },
        { do: 'quiet' },
        { do: 'node', node: 1, architecture: 'amd64' },
        { do: 'quiet' },
      ],
    },
  ],
  [
    'core 1: a pod that is deleted before the answer to its patch is not kept as a ghost',
    {
      mode: 'taints',
      replicas: 1,
      steps: [
        { do: 'calm' },
        { do: 'pod', pod: 0, images: [2], isGated: false },
        { do: 'go', which: 0 },
        { do: 'go', which: 0 },
        { do: 'go', which: 0 },
        { do: 'delete pod', pod: 0 },
        { do: 'go', which: 0 },
        { do: 'go', which: 1 },
        { do: 'go', which: 1 },
        { do: 'calm' },
        { do: 'check' },
      ],
    },
  ],
  [
    'core 1: a pod that is made again under its name before the answer is not lost',
    {
      mode: 'taints',
      replicas: 1,
      steps: [
        { do: 'calm' },
        { do: 'pod', pod: 0, images: [2], isGated: false },
        { do: 'go', which: 0 },
        { do: 'go', which: 0 },
        { do: 'go', which: 0 },
        { do: 'replace pod', pod: 0, images: [0], isGated: false },
        { do: 'go', which: 0 },
        { do: 'go', which: 1 },
        { do: 'go', which: 1 },
        { do: 'go', which: 1 },
        { do: 'calm' },
        { do: 'check' },
      ],
    },
  ],
  [
    'core 1: a DaemonSet that is deleted before the answer to its patch is not kept as a ghost',
    {
      mode: 'taints',
      replicas: 1,
      steps: [
        { do: 'calm' },
        { do: 'set', set: 0, image: 0 },
        { do: 'go', which: 0 },
        { do: 'go', which: 0 },
        { do: 'go', which: 0 },
        { do: 'delete set', set: 0 },
        { do: 'go', which: 0 },
        { do: 'go', which: 1 },
        { do: 'calm' },
        { do: 'check' },
      ],
    },
  ],
  [
    'core 2: a new leader does not widen a placed template while the registry is away',
    {
      mode: 'taints',
      replicas: 1,
      steps: [
        { do: 'set', set: 0, image: 0 },
        { do: 'quiet' },
        { do: 'registry', is: false },
        { do: 'crash' },
        { do: 'quiet' },
      ],
    },
  ],
  [
    'core 2: a new leader writes nothing to bound pods while the registry is away',
    {
      mode: 'taints',
      replicas: 2,
      steps: [
        { do: 'pod', pod: 0, images: [1], isGated: false },
        { do: 'calm' },
        { do: 'bind' },
        { do: 'quiet' },
        { do: 'registry', is: false },
        { do: 'crash' },
        { do: 'quiet' },
      ],
    },
  ],
  [
    'core 15: a new leader asks nothing about what is placed',
    {
      mode: 'both',
      replicas: 1,
      steps: [
        { do: 'pod', pod: 0, images: [1], isGated: true },
        { do: 'set', set: 0, image: 2 },
        { do: 'quiet' },
        { do: 'stop' },
        { do: 'quiet' },
      ],
    },
  ],
  [
    'core 19: tolerations that another webhook takes out are noticed, and written again once it no longer does',
    {
      mode: 'taints',
      replicas: 1,
      steps: [
        { do: 'calm' },
        { do: 'strip', is: true },
        { do: 'pod', pod: 0, images: [0], isGated: false },
        { do: 'calm' },
        { do: 'strip', is: false },
      ],
    },
  ],
  [
    'admission S2: a passing 403 does not take the gate away without node affinity',
    {
      mode: 'both',
      replicas: 1,
      steps: [
        { do: 'calm' },
        { do: 'pod', pod: 0, images: [0], isGated: true },
        { do: 'go', which: 0 },
        { do: 'go', which: 0 },
        { do: 'refuse', which: 0, status: 403 },
      ],
    },
  ],
  [
    'neighbours N5: an undo that brings back a toleration of archaware does not make it the author’s',
    {
      mode: 'taints',
      replicas: 1,
      steps: [
        { do: 'set', set: 0, image: 2 },
        { do: 'quiet' },
        { do: 'set', set: 0, image: 0 },
        { do: 'quiet' },
        { do: 'undo', set: 0 },
      ],
    },
  ],
  [
    'neighbours N5 and N8: nor does one after somebody removed the record',
    {
      mode: 'taints',
      replicas: 1,
      steps: [
        { do: 'set', set: 0, image: 2 },
        { do: 'quiet' },
        { do: 'set', set: 0, image: 0 },
        { do: 'quiet' },
        { do: 'forget', set: 0 },
        { do: 'quiet' },
        { do: 'undo', set: 0 },
      ],
    },
  ],
  [
    'neighbours N8: a record that somebody removes is written again, and clean finds its tolerations',
    {
      mode: 'taints',
      replicas: 2,
      steps: [{ do: 'set', set: 0, image: 2 }, { do: 'quiet' }, { do: 'clean' }, { do: 'forget', set: 0 }],
    },
  ],
  [
    'found by the simulation: a record that somebody removes is written again after a passing 403',
    {
      mode: 'taints',
      replicas: 1,
      steps: [
        { do: 'set', set: 0, image: 0 },
        { do: 'calm' },
        { do: 'forget', set: 0 },
        { do: 'go', which: 0 },
        { do: 'refuse', which: 0, status: 403 },
      ],
    },
  ],
  [
    'found by the simulation: a change is taken back once, also if no answer to that arrives',
    {
      mode: 'taints',
      replicas: 1,
      steps: [
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
    },
  ],
  [
    'found by the simulation: an image that is changed in place while no process leads is not taken for placed',
    {
      mode: 'taints',
      replicas: 1,
      steps: [
        { do: 'pod', pod: 0, images: [0, 2], isGated: false },
        { do: 'calm' },
        { do: 'image', pod: 0, image: 1 },
        { do: 'crash' },
      ],
    },
  ],
  [
    'found by the simulation: a pod that is ignored loses its gate with one write, also before the watch shows that write',
    {
      mode: 'affinity',
      replicas: 1,
      leaseDuration: '60s',
      seed: 14,
      pageSize: 1,
      steps: [
        { do: 'calm' },
        { do: 'pod', pod: 1, images: [2], isGated: true, kind: 'plain' },
        { do: 'pod', pod: 0, images: [5], isGated: true, kind: 'daemon' },
        { do: 'go', which: 27 },
        { do: 'reload', to: 'daemons' },
        { do: 'ignore namespace', is: true },
        { do: 'go', which: 19 },
      ],
    },
  ],
  [
    'found by the simulation: no image is looked up again because its pod starts to run after a long time',
    {
      mode: 'taints',
      replicas: 1,
      steps: [
        { do: 'pod', pod: 0, images: [0], isGated: false, kind: 'plain' },
        { do: 'quiet' },
        { do: 'bind' },
        { do: 'quiet' },
      ],
    },
  ],
  [
    'core 6: a pod that is being deleted is no longer decided',
    {
      mode: 'taints',
      replicas: 2,
      steps: [
        { do: 'pod', pod: 0, images: [2], isGated: false, kind: 'plain' },
        { do: 'wait', ms: 20_000 },
        { do: 'bind' },
        { do: 'wait', ms: 20_000 },
        { do: 'delete pod', pod: 0, isSlow: true },
        { do: 'quiet' },
      ],
    },
  ],
  ...[1, 2].map(
    (seed) =>
      [
        `core 6: a pod gets all its architectures when no policy restricts it any more (seed ${seed})`,
        {
          mode: 'taints',
          replicas: 1,
          seed,
          steps: [
            { do: 'label namespace', is: true },
            { do: 'reload', to: 'arm' },
            { do: 'wait', ms: 20_000 },
            { do: 'pod', pod: 0, images: [2], isGated: false, kind: 'plain' },
            { do: 'wait', ms: 20_000 },
          ],
        },
      ] as const,
  ),
  [
    'found by the simulation: a first list that is refused does not end the work of a process',
    { mode: 'taints', replicas: 1, steps: [{ do: 'refuse', which: 0, status: 403 }] },
  ],
];

describe('a script that once broke a rule', () => {
  for (const [what, history] of SCRIPTS) {
    it(what, async () => {
      const { broken, trace } = await play(history);
      const told = trace.filter((line) => !line.includes('/leases/'));
      expect(broken, `${broken}\n${told.slice(-60).join('\n')}`).to.equal(undefined);
    });
  }
});
