import { createHash } from 'node:crypto';
import type {
  Readiness,
  Report,
  ReportGroup,
  Summary,
  Tally,
  TargetSummary,
} from '../../../analysis/readiness/report.ts';
import { groupWorkloads, shareOf } from '../../../analysis/readiness/tally.ts';
import { VERSION } from '../../../app/version.ts';
import {
  READINESS_STATES,
  type ReadinessState,
  type TargetVerdict,
} from '../../../placement/readiness/readiness-states.ts';
import { bytesText, coresText, headlines, moneyText, newerTagOf, percent } from '../texts.ts';
import { box, html, list, type Markup, number, trusted } from './markup.ts';
import { SCRIPT } from './script.ts';
import { STYLE } from './style.ts';

export type HtmlOptions = {
  /** Where the workloads come from: the host of the API server, or the files. */
  readonly source: string;
  /** When the report was made, as ISO 8601. */
  readonly createdAt: string;
};

/**
 * Returns the report as one HTML document that needs no network. Its content security policy allows the one style and the one
 * script inside it, by their hashes, and nothing else. The empty icon keeps a browser from asking the server of the page for one.
 */
export function renderHtml(report: Report, { source, createdAt }: HtmlOptions): string {
  const { targets, summary, workloads, groupBy = 'namespace', groups } = report;
  const { all, measure, unread } = summary;
  const title = `Readiness for ${targets.join(', ')}`;
  const policy = `default-src 'none'; style-src ${hash(STYLE)}; script-src ${hash(SCRIPT)}; img-src data:; base-uri 'none'; form-action 'none'`;
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${trusted(policy)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>${title}: ${source}</title>
<link rel="icon" href="data:,">
<style>${trusted(STYLE)}</style>
</head>
<body>
<header>
<h1>${title}</h1>
<p>Workloads: ${all.workloads}. Replicas: ${all.replicas}. Requested: ${coresText(all.cpu)} cores, ${bytesText(all.memory)} of memory.</p>
<p>Source: ${source}. Made at <time datetime="${createdAt}">${createdAt.replace(/^(.{10})T(.{5}).*$/, '$1 $2 UTC')}</time> by archaware ${VERSION}.</p>
<nav aria-label="Contents"><ul>${targets.map((target, at) => html`<li><a href="#target-${at}">${target}</a></li>`)}
<li><a href="#groups">By ${groupBy}</a></li><li><a href="#workloads">Workloads</a></li></ul></nav>
${legend()}
</header>
<main>
${unread.length === 0 ? '' : html`<section class="warning" aria-labelledby="unread"><h2 id="unread">This report is not complete</h2>${list(unread.map(({ text }) => text))}</section>`}
${targets.map((target, at) => targetSection(report, target, `target-${at}`))}
${groupTable(report, groupBy, groups ?? groupWorkloads(workloads, targets, { by: 'namespace' }, measure, () => ''))}
${failedImages(report)}
${workloadTable(report)}
</main>
<script>${trusted(SCRIPT)}</script>
</body>
</html>
`.markup;
}

function hash(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}

function targetSection(report: Report, target: string, id: string): Markup {
  const { summary } = report;
  const found = summary.targets[target];
  if (found === undefined) return html``;
  const [today, ...others] = headlines(report, target);
  const nodes = found.nodes === undefined ? '' : `nodes: ${found.nodes}`;
  return html`<section aria-labelledby="${id}">
<h2 id="${id}">${target} <small>${nodes}</small></h2>
<div class="tiles"><div class="tile big"><p class="figure">${percent(found.readyShare)}</p><p>${today}</p>
${stateBar(found, summary.all, summary.measure, target)}</div>
${READINESS_STATES.map((state) => stateTile(found, state))}</div>
${others.map((line) => html`<p class="hint">${line}</p>`)}
${rebuildTable(report, found, target, `${id}-images`)}
</section>`;
}

function stateTile({ states }: TargetSummary, state: ReadinessState): Markup {
  const { workloads, replicas, cpu } = states[state];
  return html`<div class="tile">${stateMark(state)}<p class="figure">${workloads}</p>
<p class="hint">${workloads === 1 ? 'workload' : 'workloads'}; replicas: ${replicas}, cores: ${coresText(cpu)}</p></div>`;
}

/** The images that block workloads: first those whose rebuild makes something ready, ranked, then the others. */
function rebuildTable(report: Report, { rebuilds, cost }: TargetSummary, target: string, id: string): Markup {
  const ranked = new Map(rebuilds.map((rebuild, at) => [rebuild.image, { ...rebuild, rank: at + 1 }]));
  const reported = new Map(report.images.map((image) => [image.image, image]));
  const blocking = report.images.filter((image) => image.blocking[target] !== undefined).map(({ image }) => image);
  const names = [...new Set([...ranked.keys(), ...blocking])];
  if (names.length === 0) return html`<p class="hint">No image is known to lack a build for ${target}.</p>`;
  const rows = names.map((name) => {
    const [rebuild, image, newer] = [ranked.get(name), reported.get(name), newerTagOf(report, name, target)];
    return html`<tr>${number(rebuild?.rank, names.length + 1)}
<th scope="row">${name}${newer === undefined ? '' : html`<p class="hint">The newer tag <b>${newer}</b> has a build for ${target}.</p>`}</th>
<td>${image?.platforms.join(', ')}</td>
${number(image?.blocking[target]?.blocks.workloads, 0)}
${number(rebuild?.frees.workloads, 0)}
${number(rebuild?.frees.cpu, 0, coresText)}
${number(rebuild?.readyAfter, 0, percent)}${cost && number(rebuild?.saves, 0, moneyText)}</tr>`;
  });
  return html`<h3 id="${id}">Images to build for ${target}</h3>
<p class="hint">The most useful build comes first; each line counts what it frees after the lines above it. An image without a rank frees nothing: something else keeps its workloads away as well.</p>
${box(id, ['Rank', 'Image', 'Has builds for', 'Blocks workloads', 'Frees workloads', 'Frees cores', 'Ready after it', ...(cost ? ['Saves a month'] : [])], rows)}`;
}

/** What is furthest from ready for the first target stands first. A bar is a picture of the number beside it. */
function groupTable(
  { targets, summary: { measure } }: Report,
  groupBy: string,
  groups: readonly ReportGroup[],
): Markup {
  const [first = ''] = targets;
  const rest = ({ all, targets: found }: ReportGroup) => all[measure] - (found[first]?.states.ready[measure] ?? 0);
  const rows = [...groups]
    .sort((one, other) => rest(other) - rest(one))
    .map(
      ({ name, all, targets: found }) => html`<tr><th scope="row">${name || '(none)'}</th>
${number(all.workloads, 0)}${number(all.replicas, 0)}${number(all.cpu, 0, coresText)}
${targets.map((target) => {
  const readiness = found[target];
  if (readiness === undefined || all[measure] === 0) return html`<td data-v="2">–</td>`;
  return html`<td data-v="${readiness.readyShare}">${percent(readiness.readyShare)} ${stateBar(readiness, all, measure, target)}</td>`;
})}</tr>`,
    );
  return html`<section aria-labelledby="groups"><h2 id="groups">By ${groupBy}</h2>
${box('groups', [groupBy, 'Workloads', 'Replicas', 'Cores', ...targets.map((target) => `${target} ready`)], rows)}</section>`;
}

/** The images that could not be looked up, so that their workloads are unknown. */
function failedImages({ images }: Report): Markup {
  const rows = images.flatMap(({ image, error, used }) =>
    error === undefined
      ? []
      : [
          html`<tr><th scope="row">${image}</th><td>${error.code}: ${error.message}</td>${number(used.workloads, 0)}</tr>`,
        ],
  );
  if (rows.length === 0) return html``;
  return html`<section aria-labelledby="failed"><h2 id="failed">Images that could not be looked up</h2>
${box('failed', ['Image', 'Why', 'Workloads'], rows)}</section>`;
}

/** The table of all workloads. The script reads everything that it filters and exports from this table. */
function workloadTable({ targets, workloads }: Report): Markup {
  const rows = workloads.map(
    ({ namespace, kind, name, replicas, cpu, memory, verdicts, images }) => html`<tr>
<td>${namespace}</td> <td>${kind}</td> <th scope="row">${name}</th>
${number(replicas, 0)} ${number(cpu, 0, coresText)} ${number(memory, 0, bytesText)}
${targets.map((target) => verdictCell(verdicts[target]))} <td>${list(images)}</td></tr>
`,
  );
  return html`<section aria-labelledby="workloads"><h2 id="workloads">Workloads</h2>
<form id="filters" hidden>
<label>Text <input type="search" name="text" autocomplete="off" spellcheck="false" placeholder="Namespace, name, image or reason"></label>
<label>State <select name="state"><option value="">All states</option><option value="not-ready">not ready</option>${READINESS_STATES.map(
    (state) => html`<option>${state}</option>`,
  )}</select></label>
<button type="button" id="export">Export CSV</button>
<p id="count" role="status"></p>
</form>
${box('workloads', ['Namespace', 'Kind', 'Name', 'Replicas', 'Cores', 'Memory', ...targets, 'Images'], rows)}
</section>`;
}

function verdictCell(verdict: TargetVerdict | undefined): Markup {
  if (verdict === undefined) return html`<td data-v="9" data-state="">–</td>`;
  const { state, reasons } = verdict;
  return html`<td data-v="${READINESS_STATES.indexOf(state)}" data-state="${state}">${stateMark(state)} ${list(reasons.map(({ text }) => text))}</td>`;
}

const MEANINGS: Readonly<Record<ReadinessState, string>> = {
  ready: 'The images run on the architecture, and nothing keeps the workload away.',
  pinned: 'No image is known to be in the way, but the workload itself or the configuration keeps it away.',
  blocked: 'An image of the workload has no build for the architecture.',
  missing: 'A DaemonSet that would not run on nodes of the architecture, because an image has no build for it.',
  unknown: 'An image could not be looked up, or archaware leaves the workload alone. It counts as not ready.',
};

function stateMark(state: ReadinessState): Markup {
  return html`<span class="s ${state}">${state}</span>`;
}

/** A bar with a segment for each state, as long as its share. Its text alternative names the shares. */
function stateBar(readiness: Readiness, all: Tally, measure: Summary['measure'], target: string): Markup {
  const shown = READINESS_STATES.map((state) => ({
    state,
    share: shareOf(readiness.states[state], all, measure),
  })).filter(({ share }) => share > 0 && all[measure] > 0);
  const words = shown.map(({ state, share }) => `${state} ${percent(share)}`);
  let start = 0;
  const segments = shown.map(({ state, share }) => {
    const x = start;
    start += share;
    return html`<rect class="${state}" x="${points(x)}%" width="${points(share)}%" height="100%"/>`;
  });
  return html`<svg class="bar" role="img" aria-label="${target}: ${words.join(', ') || 'nothing to count'}">${segments}</svg>`;
}

/** What the words and colors mean. */
function legend(): Markup {
  return html`<details><summary>What the states mean</summary><dl>${READINESS_STATES.map(
    (state) => html`<div><dt>${stateMark(state)}</dt><dd>${MEANINGS[state]}</dd></div>`,
  )}</dl></details>`;
}

function points(share: number): string {
  return String(Math.round(share * 10_000) / 100);
}
