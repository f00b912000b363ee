import fc from 'fast-check';
import { IMAGES } from './registry.ts';

/** One step of a history. Numbers choose among the things that exist at that moment. */
export type Step =
  | { readonly do: 'go' | 'lose' | 'repeat'; readonly which: number }
  | { readonly do: 'refuse'; readonly which: number; readonly status: 403 | 429 | 500 | 503 }
  | { readonly do: 'calm' | 'bind' | 'crash' | 'stop' | 'compact' | 'break watches' | 'quiet' | 'clean' }
  /** Checks that the stores match the cluster, if all events have arrived. For scripts. */
  | { readonly do: 'check' }
  /** `tick`: time passes, and nothing that is under way arrives. `wait`: everything arrives meanwhile. */
  | { readonly do: 'tick' | 'wait'; readonly ms: number }
  /** A replica is stopped, or sees no events although its requests are answered, for a time in which everything else goes on. */
  | { readonly do: 'pause' | 'hold events'; readonly ms: number; readonly which?: number }
  /** The connections of a replica die without a sign; new ones work. */
  | { readonly do: 'connections die'; readonly which?: number }
  /** A replica is stopped and wakes when everything else has gone on, and a pod was replaced. */
  | ({ readonly do: 'suspend'; readonly ms: number; readonly which: number; readonly pod: number } & NewPod)
  /** A policy refuses that archaware changes templates, or refuses pods of DaemonSets that tolerate archaware's taint. */
  | { readonly do: 'refuse templates' | 'refuse pods'; readonly is: boolean }
  | { readonly do: 'registry' | 'strip'; readonly is: boolean }
  /** The namespace of the pods gets or loses the label of ignored namespaces, or one that a policy selects. */
  | { readonly do: 'ignore namespace' | 'label namespace'; readonly is: boolean }
  /** Every replica reads another configuration, each in its own time. */
  | { readonly do: 'reload'; readonly to: SettingsName }
  /** Somebody pushes an image that was missing, or another content under a tag. */
  | { readonly do: 'push'; readonly what: 'late' | 'moving' }
  /** Node n has this architecture from now on: it joins, or its kubelet reports another one. */
  | { readonly do: 'node' | 'replace node'; readonly node: number; readonly architecture: string }
  | { readonly do: 'delete node'; readonly node: number }
  /** The kubelet of a node reports itself, ready or not; somebody else adds a taint to it or takes it off. */
  | { readonly do: 'heartbeat' | 'taint node'; readonly node: number; readonly is: boolean }
  | ({ readonly do: 'pod' | 'replace pod'; readonly pod: number } & NewPod)
  /** `isSlow`: with the time of grace of a pod that runs. */
  | { readonly do: 'delete pod'; readonly pod: number; readonly isSlow?: boolean }
  /** The kubelet has stopped a pod that was deleted. */
  | { readonly do: 'end pod' }
  /** Its DaemonSet, if it has one, no longer owns the pod. */
  | { readonly do: 'orphan'; readonly pod: number }
  | { readonly do: 'image'; readonly pod: number; readonly image: number }
  | { readonly do: 'set' | 'replace set'; readonly set: number; readonly image: number }
  | { readonly do: 'delete set' | 'drop' | 'roll' | 'restart' | 'undo' | 'forget'; readonly set: number };

export type NewPod = {
  readonly images: readonly number[];
  readonly isGated: boolean;
  /** `all`: its author says that it runs on every architecture; `daemon`: it belongs to the first DaemonSet. */
  readonly kind?: 'all' | 'daemon' | 'plain';
};

/** The configurations that a reload chooses from; `start` is in force at the beginning. */
export const SETTINGS = {
  start: {},
  arm: { policies: '[{name: blue, namespaceSelector: team=blue, schedulable: [arm64]}]' },
  daemons: { 'pods.daemonSets': 'ignore' },
} as const;
type SettingsName = keyof typeof SETTINGS;

/** A world and what happens in it. */
export type History = {
  readonly mode: 'taints' | 'affinity' | 'both';
  readonly replicas: 1 | 2;
  /** Default: so long that it is not lost while time moves on in one step. */
  readonly leaseDuration?: '15s' | '60s' | '300s';
  /** Decides random numbers, such as those of backoffs; default: each is 0.5. */
  readonly seed?: number;
  /** The most items of a page of a list; default: all are in one. */
  readonly pageSize?: number;
  readonly steps: readonly Step[];
};

export const PODS = 3;
export const SETS = 2;
/** The nodes that join and go. Two others are always there. */
export const NODES = 2;
export const IMAGE_NAMES = Object.keys(IMAGES);

/** What changes in a history beside pods, DaemonSets and faults: the rules are sharper where little does. */
type Theme = 'little' | 'nodes' | 'settings' | 'images';

const just = <T extends string>(value: T) => fc.constant(value);
const which = fc.nat({ max: 30 });
const pod = fc.nat({ max: PODS - 1 });
const set = fc.nat({ max: SETS - 1 });
const image = fc.nat({ max: IMAGE_NAMES.length - 1 });
const node = fc.nat({ max: NODES - 1 });
const is = fc.boolean();
const architecture = fc.constantFrom('amd64', 'arm64', 's390x');
const kind = fc.constantFrom('plain' as const, 'plain' as const, 'all' as const, 'daemon' as const);
const newPod = { pod, images: fc.array(image, { minLength: 1, maxLength: 2 }), isGated: is, kind };
const shortTime = fc.constantFrom(100, 1_000, 5_000);
const anyTime = fc.constantFrom(100, 1_000, 5_000, 30_000, 130_000);

type Weighted = { readonly weight: number; readonly arbitrary: fc.Arbitrary<Step> };

const ALWAYS: readonly Weighted[] = [
  { weight: 40, arbitrary: fc.record({ do: just('go'), which }) },
  { weight: 6, arbitrary: fc.record({ do: just('calm') }) },
  { weight: 4, arbitrary: fc.record({ do: just('tick'), ms: shortTime }) },
  { weight: 2, arbitrary: fc.record({ do: just('tick'), ms: anyTime }) },
  { weight: 4, arbitrary: fc.record({ do: just('wait'), ms: fc.constantFrom(1_000, 20_000, 70_000, 400_000) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('lose' as const, 'repeat' as const), which }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: just('refuse'),
      which,
      status: fc.constantFrom(403 as const, 429 as const, 500 as const, 503 as const),
    }),
  },
  { weight: 7, arbitrary: fc.record({ do: just('pod'), ...newPod }) },
  { weight: 3, arbitrary: fc.record({ do: just('replace pod'), ...newPod }) },
  { weight: 3, arbitrary: fc.record({ do: just('delete pod'), pod, isSlow: is }) },
  { weight: 1, arbitrary: fc.record({ do: just('end pod') }) },
  { weight: 1, arbitrary: fc.record({ do: just('orphan'), pod }) },
  { weight: 1, arbitrary: fc.record({ do: just('image'), pod, image }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('set' as const, 'replace set' as const), set, image }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constantFrom('delete set' as const, 'drop' as const, 'roll' as const, 'restart' as const),
      set,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constantFrom('undo' as const, 'undo' as const, 'forget' as const), set }),
  },
  { weight: 6, arbitrary: fc.record({ do: just('bind') }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('crash' as const, 'stop' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('compact' as const, 'break watches' as const) }) },
  { weight: 2, arbitrary: fc.record({ do: just('registry'), is }) },
  { weight: 1, arbitrary: fc.record({ do: just('strip'), is }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constantFrom('refuse templates' as const, 'refuse pods' as const), is }),
  },
  { weight: 1, arbitrary: fc.record({ do: just('pause'), which, ms: fc.constantFrom(5_000, 20_000, 100_000) }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: just('suspend'), which, ms: fc.constantFrom(24_000, 100_000), ...newPod }),
  },
  { weight: 2, arbitrary: fc.record({ do: just('hold events'), which, ms: fc.constantFrom(1_000, 10_000) }) },
  { weight: 1, arbitrary: fc.record({ do: just('connections die'), which }) },
  { weight: 1, arbitrary: fc.record({ do: just('heartbeat'), node, is: fc.constant(true) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('quiet' as const, 'quiet' as const, 'clean' as const) }) },
];

const THEMES: Readonly<Record<Theme, readonly Weighted[]>> = {
  little: [],
  nodes: [
    {
      weight: 6,
      arbitrary: fc.record({ do: fc.constantFrom('node' as const, 'replace node' as const), node, architecture }),
    },
    { weight: 2, arbitrary: fc.record({ do: just('delete node'), node }) },
    { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('heartbeat' as const, 'taint node' as const), node, is }) },
  ],
  settings: [
    { weight: 4, arbitrary: fc.record({ do: just('ignore namespace'), is }) },
    { weight: 4, arbitrary: fc.record({ do: just('label namespace'), is }) },
    {
      weight: 5,
      arbitrary: fc.record({
        do: just('reload'),
        to: fc.constantFrom('start' as const, 'arm' as const, 'daemons' as const),
      }),
    },
    { weight: 2, arbitrary: fc.record({ do: just('orphan'), pod }) },
  ],
  images: [
    {
      weight: 5,
      arbitrary: fc.record({ do: just('push'), what: fc.constantFrom('late' as const, 'moving' as const) }),
    },
    { weight: 2, arbitrary: fc.record({ do: just('image'), pod, image }) },
  ],
};

/** Any history. */
export function histories(length: number): fc.Arbitrary<History> {
  return fc.constantFrom<Theme>('little', 'nodes', 'settings', 'images').chain((theme) =>
    fc.record({
      mode: fc.constantFrom('taints' as const, 'both' as const, 'affinity' as const),
      replicas: fc.constantFrom(2 as const, 1 as const),
      leaseDuration: fc.constantFrom('15s' as const, '60s' as const),
      seed: fc.nat({ max: 1_000_000 }),
      pageSize: fc.constantFrom(1, 2, 500),
      steps: fc.array(fc.oneof(...ALWAYS, ...THEMES[theme]), { maxLength: length, size: 'max' }),
    }),
  );
}
