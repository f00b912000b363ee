import { fileURLToPath } from 'node:url';
import { escaped, svg } from '../pictures/drawing.ts';
import { type Panel, ROWS } from './panels.ts';

/** One series of a result, as promquery prints it: pairs of milliseconds and value. */
export type Series = {
  readonly labels: Readonly<Record<string, string>>;
  readonly points: readonly (readonly [at: number, value: number | null])[];
};

/** The results from which the picture is drawn; `ARCHAWARE_RECORD=1` and test/e2e/dashboard.e2e.ts write it. */
export const RESULTS = fileURLToPath(new URL('../pictures/dashboard-results.txt', import.meta.url));

const WIDTH = 1140;
const PANEL_HEIGHT = 168;
const GAP = 12;
const COLOURS = ['#3b82c4', '#2f9e6e', '#c77d12', '#b4475d', '#7a5cc0', '#5f7d8c', '#a3731c', '#3f9fa8'];

/** Draws every panel of the dashboard from recorded results. */
export function dashboardPicture(results: Readonly<Record<string, readonly Series[]>>): string {
  let y = GAP;
  const parts: string[] = [];
  for (const { title, panels } of ROWS) {
    parts.push(`<text class="row" x="${GAP}" y="${y + 18}">${escaped(title)}</text>`);
    y += 30;
    const across = Math.min(panels.length, 3);
    const width = (WIDTH - GAP * (across + 1)) / across;
    panels.forEach((panel, index) => {
      const x = GAP + (index % across) * (width + GAP);
      const top = y + Math.floor(index / across) * (PANEL_HEIGHT + GAP);
      parts.push(`<g transform="translate(${x.toFixed(1)} ${top})">${drawn(panel, results, width)}</g>`);
    });
    y += Math.ceil(panels.length / across) * (PANEL_HEIGHT + GAP) + 8;
  }
  return svg(
    WIDTH,
    y,
    'hack/dashboard/picture.ts; change that, then run: npm run generate',
    'The panels of the dashboard, drawn from what Prometheus answered beside a running controller',
    `<style>${STYLE}</style><rect class="page" width="${WIDTH}" height="${y}"/>`,
    ...parts,
  );
}

const STYLE =
  "text{font:12px system-ui,'Segoe UI','DejaVu Sans',Verdana,sans-serif;fill:#1f2328}.row{font-size:15px;font-weight:600}" +
  '.name{font-weight:600}.small{font-size:11px;fill:#59636e}.big{font-size:40px;font-weight:600}.page{fill:#f6f8fa}.box{fill:#fff;stroke:#d1d9e0}' +
  '.axis{stroke:#d1d9e0}.graph{fill:none;stroke-width:1.6}' +
  '@media (prefers-color-scheme:dark){text{fill:#f0f6fc}.small{fill:#9198a1}.page{fill:#0d1117}.box{fill:#151b23;stroke:#3d444d}.axis{stroke:#3d444d}}';

function drawn(panel: Panel, results: Readonly<Record<string, readonly Series[]>>, width: number): string {
  const series = panel.queries.flatMap(({ expr, legend }) =>
    (results[expr] ?? []).map(({ labels, points }) => ({ name: named(legend, labels), points })),
  );
  const box = `<rect class="box" width="${width.toFixed(1)}" height="${PANEL_HEIGHT}" rx="6"/><text class="name" x="12" y="22">${escaped(panel.title)}</text>`;
  const last = series[0]?.points.at(-1)?.[1];
  if (panel.alarmAt !== undefined && last !== undefined && last !== null) {
    return `${box}<text class="big" x="12" y="100">${escaped(shown(last, panel))}</text>`;
  }
  const values = series.flatMap(({ points }) => points.flatMap(([, value]) => value ?? []));
  if (values.length === 0) return `${box}<text class="small" x="12" y="92">no data in this recording</text>`;
  const times = series.flatMap(({ points }) => points.map(([at]) => at));
  const [from, to, top] = [Math.min(...times), Math.max(...times), Math.max(...values) || 1];
  const x = (at: number) => 52 + ((at - from) / Math.max(1, to - from)) * (width - 64);
  const y = (value: number) => 124 - (value / top) * 86;
  const lines = series.map(({ points }, index) => {
    const path = points
      .flatMap(([at, value]) => (value === null ? [] : `${x(at).toFixed(1)},${y(value).toFixed(1)}`))
      .join(' ');
    return `<polyline class="graph" stroke="${COLOURS[index % COLOURS.length]}" points="${path}"/>`;
  });
  return [
    box,
    `<line class="axis" x1="52" x2="${(width - 12).toFixed(1)}" y1="124" y2="124"/>`,
    `<text class="small" x="46" y="42" text-anchor="end">${escaped(shown(top, panel))}</text>`,
    '<text class="small" x="46" y="128" text-anchor="end">0</text>',
    ...lines,
    legendOf(
      series.map(({ name }) => name),
      width,
    ),
  ].join('');
}

/** Two lines of names; what has no room there is counted. */
function legendOf(names: readonly string[], width: number): string {
  const parts: string[] = [];
  let [x, line] = [12, 0];
  for (const [index, name] of names.entries()) {
    const wide = name.length * 6 + 28;
    const isLast = index === names.length - 1;
    // In the second line, room for the number of the others stays free.
    if (line === 1 && x + wide > width - (isLast ? 8 : 90)) {
      parts.push(`<text class="small" x="${x}" y="159">and ${names.length - index} more</text>`);
      break;
    }
    if (x + wide > width - 8) [x, line] = [12, line + 1];
    const y = 144 + line * 15;
    parts.push(`<rect x="${x}" y="${y - 8}" width="9" height="9" fill="${COLOURS[index % COLOURS.length]}"/>`);
    parts.push(`<text class="small" x="${x + 14}" y="${y}">${escaped(name)}</text>`);
    x += wide;
  }
  return parts.join('');
}

function named(legend: string, labels: Readonly<Record<string, string>>): string {
  return legend.replace(/\{\{(\w+)\}\}/g, (_, label: string) => labels[label] ?? '');
}

/** A value with its unit, as Grafana would round it. */
function shown(value: number, { unit }: Panel): string {
  if (unit === 's') {
    if (value >= 86_400) return `${Math.round(value / 86_400)} d`;
    if (value >= 60) return `${Math.round(value / 60)} min`;
    return value < 1 ? `${Math.round(value * 1000)} ms` : `${Math.round(value * 10) / 10} s`;
  }
  if (unit === 'percentunit') return `${Math.round(value * 100)} %`;
  if (unit === 'bytes') return `${Math.round(value / 1024 ** 2)} MiB`;
  const number = value >= 10 ? Math.round(value) : Math.round(value * 100) / 100;
  return unit === 'reqps' || unit === 'ops' ? `${number}/s` : String(number);
}
