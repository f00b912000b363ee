import {
  READINESS_STATES,
  type Report,
  type ReportedWorkload,
  type Verdict,
} from '../../../placement/readiness/report.ts';
import { later } from './image-rows.ts';
import { breakable, html, type Markup, type Part } from './markup.ts';
import { count, memoryText, numberText } from './numbers.ts';
import { STATE_WORDS, stateMark } from './states.ts';

/** Workloads that the table shows at first. The script has the same number. */
const WORKLOAD_ROWS = 200;

/** What stands for the namespace of an object that names none. */
export const NO_NAMESPACE = '(none)';

/** The table of all workloads. The script reads everything that it sorts, filters and exports from this table. */
export function workloadSection(report: Report): Markup {
  const { targets, workloads } = report;
  return html`<section aria-labelledby="workloads"><h2 id="workloads" tabindex="-1">Workloads</h2>
${controls(report)}
<p id="count" class="count" role="status">${count(workloads.length, 'workload')}.</p>
<div class="scroll" role="group" tabindex="0" aria-labelledby="workloads"><table id="table" class="cards wide" role="table" aria-labelledby="workloads">
<thead role="rowgroup"><tr role="row">
${column('Namespace', 'aria-sort="ascending"')}${column('Kind')}${column('Name')}
${column('Replicas', 'class="n"')}${column('Cores', 'class="n"')}${column('Memory', 'class="n"')}
${targets.map((target) => column(target, 'data-target'))}${column('Images')}
</tr></thead>
<tbody role="rowgroup">${workloads.map((workload, at) => row(workload, targets, at))}</tbody></table></div>
<p class="more" id="more" hidden><button type="button" id="next">Show ${WORKLOAD_ROWS} more</button> <button type="button" id="all">Show all</button></p>
</section>`;
}

function column(name: string, attribute: '' | 'aria-sort="ascending"' | 'class="n"' | 'data-target' = ''): Markup {
  return html`<th role="columnheader" scope="col" ${{ markup: attribute }}><button type="button">${name}</button></th>`;
}

function row(workload: ReportedWorkload, targets: readonly string[], at: number): Markup {
  const { namespace, kind, name, replicas, cpu, memory, verdicts, images } = workload;
  return html`<tr role="row"${later(at, WORKLOAD_ROWS)}>
<td role="cell" data-l="Namespace">${namespace === '' ? NO_NAMESPACE : namespace}</td><td role="cell" data-l="Kind">${kind}</td><th role="rowheader" scope="row" data-l="Name">${name}</th>
${number('Replicas', replicas, numberText(replicas))}${number('Cores', cpu, numberText(cpu))}${number('Memory', memory, memoryText(memory))}
${targets.map((target) => verdictCell(target, verdicts[target]))}<td role="cell" data-l="Images">${list(images.map(breakable))}</td></tr>
`;
}

function number(label: string, value: number, text: string): Markup {
  return html`<td role="cell" class="n" data-l="${label}" data-v="${value}">${text}</td>`;
}

function verdictCell(target: string, verdict: Verdict | undefined): Markup {
  if (verdict === undefined) return html`<td role="cell" data-l="${target}" data-v="9" data-s="">–</td>`;
  const { state, reasons } = verdict;
  return html`<td role="cell" data-l="${target}" data-v="${READINESS_STATES.indexOf(state)}" data-s="${state}">${stateMark(state)}${list(
    reasons.map(({ text }) => breakable(text)),
  )}</td>`;
}

function list(items: readonly Part[]): Markup {
  return items.length === 0 ? html`` : html`<ul>${items.map((item) => html`<li>${item}</li>`)}</ul>`;
}

function controls({ targets, workloads }: Report): Markup {
  const namespaces = [...new Set(workloads.map(({ namespace }) => namespace))].sort();
  const option = (value: Part, text: Part) => html`<option value="${value}">${text}</option>`;
  return html`<form class="controls" id="filters">
<label>Text <input type="search" id="text" autocomplete="off" spellcheck="false" placeholder="Name, image or reason"></label>
<label>Namespace <select id="namespace">${option('', 'All namespaces')}${namespaces.map((name) =>
    name === '' ? option(NO_NAMESPACE, NO_NAMESPACE) : option(name, name),
  )}</select></label>
<label>Target <select id="target">${option('', targets.length === 1 ? (targets[0] ?? '') : 'All targets')}${
    targets.length === 1 ? '' : targets.map((target, at) => option(at, target))
  }</select></label>
<label>State <select id="state">${option('', 'All states')}${option('not-ready', 'Not ready')}${READINESS_STATES.map(
    (state) => option(state, STATE_WORDS[state].name),
  )}</select></label>
<span class="buttons"><button type="button" id="clear">Clear filters</button> <button type="button" id="export">Export CSV</button></span>
</form>`;
}
