import { fileURLToPath } from 'node:url';
import { label, type Point, picture } from './drawing.ts';

/** The cost of one size of a cluster, as hack/bench/scale measured it. Memory in MiB, CPU in milliseconds or per cent. */
export type ScalePoint = {
  readonly pods: number;
  readonly nodes: number;
  readonly events: number;
  readonly rss: number;
  readonly peak: number;
  readonly readySeconds: number;
  readonly cpuOfPlacedPod: number;
  readonly idle: number;
  readonly load: number;
};

type Curve = { readonly name: string; readonly tone: 'accent' | 'warn'; readonly of: (point: ScalePoint) => number };
type Panel = { readonly title: string; readonly digits: number; readonly curves: readonly Curve[] };

const PANELS: readonly Panel[] = [
  {
    title: 'memory, MiB',
    digits: 0,
    curves: [
      { name: 'most (VmHWM)', tone: 'warn', of: ({ peak }) => peak },
      { name: 'at the end (VmRSS)', tone: 'accent', of: ({ rss }) => rss },
    ],
  },
  { title: 'start to ready, s', digits: 1, curves: [{ name: '', tone: 'accent', of: (point) => point.readySeconds }] },
  {
    title: 'CPU of one placed pod, ms',
    digits: 2,
    curves: [{ name: '', tone: 'accent', of: (point) => point.cpuOfPlacedPod }],
  },
  {
    title: 'CPU with heartbeats and updates, % of a core',
    digits: 1,
    curves: [{ name: '', tone: 'accent', of: ({ load }) => load }],
  },
];

/** The measured points, written by `WRITE_TABLE=1 npm run bench -- scale`. */
export const SCALE = fileURLToPath(new URL('scale.json', import.meta.url));

const WIDTH = 960;
const [PANEL_WIDTH, PANEL_HEIGHT] = [470, 270];
/** The inner edges of a panel. */
const [LEFT, RIGHT, TOP, BOTTOM] = [70, 450, 56, 200];

/** The cost of a running replica over the size of the cluster. */
export function scalePicture(points: readonly ScalePoint[]): string {
  return picture(
    WIDTH,
    2 * PANEL_HEIGHT + 20,
    'What a replica costs over the number of pods: memory, start, CPU of a placed pod, CPU under load',
    ...PANELS.map((panel, index) =>
      drawn(panel, points, (index % 2) * PANEL_WIDTH, Math.floor(index / 2) * PANEL_HEIGHT),
    ),
  );
}

function drawn({ title, digits, curves }: Panel, points: readonly ScalePoint[], x: number, y: number): string {
  const top = niceAbove(Math.max(...curves.flatMap(({ of }) => points.map(of))));
  const sizes = points.map(({ pods }) => Math.log10(pods));
  const [least, most] = [Math.min(...sizes), Math.max(...sizes)];
  const across = (pods: number) =>
    x + LEFT + 20 + ((Math.log10(pods) - least) / (most - least || 1)) * (RIGHT - LEFT - 50);
  const up = (value: number) => y + BOTTOM - (value / top) * (BOTTOM - TOP);
  const grid = [0, 0.25, 0.5, 0.75, 1].map((part) => {
    const at = up(top * part);
    return [
      `<path class="line l-plain" style="stroke-width:${part === 0 ? 1.2 : 0.3}" d="M${x + LEFT} ${at}H${x + RIGHT}"/>`,
      label(x + LEFT - 8, at + 4, 'end', { text: (top * part).toFixed(top < 8 ? 2 : 0), tone: 'plain' }),
    ].join('\n');
  });
  const ticks = points.map(({ pods }) =>
    label(across(pods), y + BOTTOM + 20, 'middle', { text: pods.toLocaleString('en-US'), tone: 'plain' }),
  );
  return [
    label(x + 20, y + 32, 'start', { text: title, bold: true }),
    ...grid,
    ...ticks,
    label(x + (LEFT + RIGHT) / 2, y + BOTTOM + 42, 'middle', { text: 'pods (logarithmic)', tone: 'plain' }),
    ...curves.map(({ name, tone, of }, index) => {
      const line = points.map((point): Point => [round(across(point.pods)), round(up(of(point)))]);
      // Values of the first curve stand above it, those of the second below.
      const lift = index === 0 ? -10 : 20;
      return [
        `<polyline class="line l-${tone}" points="${line.map((each) => each.join(',')).join(' ')}"/>`,
        ...line.map(([cx, cy]) => `<circle class="t-${tone}" cx="${cx}" cy="${cy}" r="3.5"/>`),
        ...points.map((point, place) =>
          label(line[place]?.[0] ?? 0, (line[place]?.[1] ?? 0) + lift, 'middle', {
            text: of(point).toFixed(digits),
            tone,
          }),
        ),
        ...(name === '' ? [] : [label(x + 160 + index * 125, y + 32, 'start', { text: `● ${name}`, tone })]),
      ].join('\n');
    }),
  ].join('\n');
}

/** A round number above a value. */
function niceAbove(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value * 1.15 || 1));
  return [1, 2, 4, 8, 10].map((each) => each * power).find((each) => each >= value * 1.15) ?? 10 * power;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
