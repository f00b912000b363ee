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

/** The same of one value, however often it is named, as a constant. */
const one = <const T extends string | number>(...values: readonly T[]) => fc.constantFrom(...values);
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

const step = <T extends Step>(weight: number, fields: { [K in keyof T]: fc.Arbitrary<T[K]> }): Weighted => {
  const arbitrary: fc.Arbitrary<unknown> = fc.record(fields);
  return { weight, arbitrary: arbitrary as fc.Arbitrary<Step> };
};

const ALWAYS: readonly Weighted[] = [
  step(40, { do: one('go'), which }),
  step(6, { do: one('calm') }),
  step(4, { do: one('tick'), ms: shortTime }),
  step(2, { do: one('tick'), ms: anyTime }),
  step(4, { do: one('wait'), ms: fc.constantFrom(1_000, 20_000, 70_000, 400_000) }),
  step(2, { do: one('lose', 'repeat'), which }),
  step(2, { do: one('refuse'), which, status: one(403, 429, 500, 503) }),
  step(7, { do: one('pod'), ...newPod }),
  step(3, { do: one('replace pod'), ...newPod }),
  step(3, { do: one('delete pod'), pod, isSlow: is }),
  step(1, { do: one('end pod') }),
  step(1, { do: one('orphan'), pod }),
  step(1, { do: one('image'), pod, image }),
  step(3, { do: one('set', 'replace set'), set, image }),
  step(2, { do: one('delete set', 'drop', 'roll', 'restart'), set }),
  step(2, { do: one('undo', 'undo', 'forget'), set }),
  step(6, { do: one('bind') }),
  step(2, { do: one('crash', 'stop') }),
  step(1, { do: one('compact', 'break watches') }),
  step(2, { do: one('registry'), is }),
  step(1, { do: one('strip'), is }),
  step(2, { do: one('refuse templates', 'refuse pods'), is }),
  step(1, { do: one('pause'), which, ms: fc.constantFrom(5_000, 20_000, 100_000) }),
  step(2, { do: one('suspend'), which, ms: fc.constantFrom(24_000, 100_000), ...newPod }),
  step(2, { do: one('hold events'), which, ms: fc.constantFrom(1_000, 10_000) }),
  step(1, { do: one('connections die'), which }),
  step(1, { do: one('heartbeat'), node, is: fc.constant(true) }),
  step(1, { do: one('quiet', 'quiet', 'clean') }),
];

const THEMES: Readonly<Record<Theme, readonly Weighted[]>> = {
  little: [],
  nodes: [
    step(6, { do: one('node', 'replace node'), node, architecture }),
    step(2, { do: one('delete node'), node }),
    step(3, { do: one('heartbeat', 'taint node'), node, is }),
  ],
  settings: [
    step(4, { do: one('ignore namespace'), is }),
    step(4, { do: one('label namespace'), is }),
    step(5, { do: one('reload'), to: one('start', 'arm', 'daemons') }),
    step(2, { do: one('orphan'), pod }),
  ],
  images: [step(5, { do: one('push'), what: one('late', 'moving') }), step(2, { do: one('image'), pod, image })],
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
