import {
  READINESS_STATES,
  type Readiness,
  type ReadinessState,
  type Report,
  type ReportGroup,
  type TargetSummary,
} from '../../../placement/readiness/report.ts';
import { notes as shareNotes } from '../texts.ts';
import { later, showAll } from './image-rows.ts';
import { html, type Markup } from './markup.ts';
import { amount, count, numberText, percent } from './numbers.ts';
import { rebuildTable } from './rebuild-table.ts';
import { stateBar, stateMark } from './states.ts';

const CHART_ROWS = 15;

/** How many images the tile sums up, if there are more. */
const FIRST = 5;

/** Groups of workloads, and how a chart of them is called. */
export type Chart = {
  readonly title: string;
  /** What one row is and what many are: `namespace`, `namespaces`. */
  readonly noun: string;
  readonly nouns: string;
  /** The name of the group that has none. */
  readonly unnamed: string;
  readonly groups: readonly ReportGroup[];
};

/** Everything about one target: tiles, a chart for each grouping, the images that block. */
export function targetSection(report: Report, target: string, charts: readonly Chart[]): Markup {
  const summary = report.summary.targets[target];
  if (summary === undefined) return html``;
  const id = `target-${report.targets.indexOf(target)}`;
  const nodes = summary.nodes === undefined ? '' : `${count(summary.nodes, 'node')} in the cluster`;
  return html`<section aria-labelledby="${id}">
<h2 id="${id}">${target} <small>${nodes}</small></h2>
${notes(report, target, summary).map((note) => html`<p class="hint">${note}</p>`)}
${tiles(report, target, summary)}
${charts.map((chart, at) => chartTable(report, target, chart, `${id}-chart-${at}`))}
${rebuildTable(report, target, `${id}-images`)}
</section>`;
}

/** What a reader must know about the numbers of a target. */
function notes(report: Report, target: string, { nodes }: TargetSummary): string[] {
  const { summary, workloads } = report;
  const uncounted = workloads.filter(({ cpu }) => cpu === 0).length;
  const isUncounted = summary.measure === 'cpu' && uncounted > 0;
  return [
    ...shareNotes(report, target),
    ...(nodes === 0 ? [`The cluster has no ${target} node: copies of its other nodes stand in for one.`] : []),
    ...(summary.measure === 'replicas' ? ['No workload requests CPU, so shares count replicas.'] : []),
    ...(isUncounted
      ? [
          `${count(uncounted, 'workload')} ${uncounted === 1 ? 'requests' : 'request'} no CPU, so shares count 0 cores for ${uncounted === 1 ? 'it' : 'them'}.`,
        ]
      : []),
  ];
}

function tiles(report: Report, target: string, summary: TargetSummary): Markup {
  const { all, measure } = report.summary;
  const what = measure === 'cpu' ? 'requested cores' : 'replicas';
  return html`<div class="tiles"><div class="tile big"><p class="figure">${percent(summary.readyShare)}</p>
<p>of the ${what} can run on ${target} today: ${numberText(summary.states.ready[measure])} of ${amount(all, measure)}.</p>
${stateBar(summary, all, measure, `Share of the ${what} for ${target}`)}</div>
${afterRebuilds(summary, target)}
${READINESS_STATES.map((state) => stateTile(report, target, summary, state))}</div>`;
}

function afterRebuilds({ readyShare, rebuilds }: TargetSummary, target: string): Markup {
  const last = rebuilds.at(-1);
  if (last === undefined) {
    const words =
      readyShare >= 1 ? 'Nothing holds a workload back.' : 'More builds of images alone would not make more ready.';
    return html`<div class="tile"><p class="figure">${percent(readyShare)}</p><p>${words}</p></div>`;
  }
  const [first, images] = [rebuilds[FIRST - 1], count(rebuilds.length, 'image')];
  const some =
    rebuilds.length > FIRST && first !== undefined
      ? ` The first ${FIRST} of them bring it to ${percent(first.readyAfter)}.`
      : '';
  return html`<div class="tile"><p class="figure">${percent(last.readyAfter)}</p>
<p>once ${images} ${rebuilds.length === 1 ? 'has' : 'have'} a build for ${target}.${some}</p></div>`;
}

function stateTile(report: Report, target: string, readiness: Readiness, state: ReadinessState): Markup {
  const tally = readiness.states[state];
  const noun = state === 'missing' ? 'DaemonSet' : 'workload';
  return html`<a class="tile" href="#workloads" data-target="${report.targets.indexOf(target)}" data-state="${state}">${stateMark(state)}
<span class="figure">${numberText(tally.workloads)}</span>
<span>${tally.workloads === 1 ? noun : `${noun}s`}, ${amount(tally, report.summary.measure)}</span></a>`;
}

/** Bars as a table: the bar is a picture of the numbers beside it. What is furthest from ready stands first. */
function chartTable({ summary }: Report, target: string, chart: Chart, id: string): Markup {
  const { measure } = summary;
  const rows = chart.groups
    .flatMap((group) => {
      const readiness = group.targets[target];
      return readiness === undefined
        ? []
        : [{ group, readiness, rest: group.all[measure] - readiness.states.ready[measure] }];
    })
    .sort((one, other) => other.rest - one.rest);
  if (rows.length === 0) return html``;
  if (rows.every(({ readiness }) => readiness.states.ready.workloads === tallied(readiness))) {
    return html`<h3 id="${id}">${chart.title}</h3><p class="hint">All ${chart.nouns} are ready.</p>`;
  }
  const isNamespace = chart.noun === 'namespace';
  return html`<h3 id="${id}">${chart.title}</h3>
<p class="hint">The ${chart.noun} with the most that is not ready comes first.</p>
<table class="chart" aria-labelledby="${id}"><thead><tr><th scope="col">${chart.noun}</th><th scope="col">States</th><th scope="col">Ready</th></tr></thead>
<tbody>${rows.map(({ group, readiness }, at) => {
    const name = group.name === '' ? chart.unnamed : group.name;
    const head = isNamespace ? html`<a href="#workloads" data-namespace="${name}">${name}</a>` : name;
    const shares = `${percent(readiness.readyShare)} of ${amount(group.all, measure)}`;
    return html`<tr${later(at, CHART_ROWS)}><th scope="row">${head}</th><td>${
      group.all[measure] === 0
        ? html`<span class="hint">no CPU requested</span>`
        : stateBar(readiness, group.all, measure, name)
    }</td><td>${group.all[measure] === 0 ? count(group.all.workloads, 'workload') : shares}</td></tr>
`;
  })}</tbody></table>
${showAll(rows.length, CHART_ROWS, chart.nouns)}`;
}

function tallied({ states }: Readiness): number {
  return READINESS_STATES.reduce((sum, state) => sum + states[state].workloads, 0);
}
