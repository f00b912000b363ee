import type { Rebuild, Report, ReportedImage } from '../../../placement/readiness/report.ts';
import { later, showAll } from './image-rows.ts';
import { breakable, html, type Markup } from './markup.ts';
import { amount, count, numberText, percent } from './numbers.ts';

const IMAGE_ROWS = 20;

const NUMBERS: readonly string[] = ['Rank', 'Ready after it'];

type Row = {
  readonly image: string;
  readonly reported: ReportedImage | undefined;
  readonly rebuild: Rebuild | undefined;
};

/** The images that block workloads: first those whose rebuild makes something ready, ranked, then the others. */
export function rebuildTable(report: Report, target: string, id: string): Markup {
  const rows = rowsFor(report, target);
  const title = html`<h3 id="${id}">Images to build for ${target}</h3>`;
  if (rows.length === 0) return html`${title}<p class="hint">No image is known to lack a build for ${target}.</p>`;
  const { measure } = report.summary;
  return html`${title}
<p class="hint">The most useful build comes first. Each line counts what it frees after the lines above it.</p>
<div class="scroll" role="group" tabindex="0" aria-labelledby="${id}"><table class="cards" role="table" aria-labelledby="${id}">
<thead role="rowgroup"><tr role="row">${['Rank', 'Image', 'Has builds for', 'Frees', 'Ready after it', 'Blocks'].map(
    (name) => html`<th role="columnheader" scope="col"${NUMBERS.includes(name) ? html` class="n"` : ''}>${name}</th>`,
  )}</tr></thead>
<tbody role="rowgroup">${rows.map(
    ({ image, reported, rebuild }, at) => html`<tr role="row"${later(at, IMAGE_ROWS)}>
<td role="cell" class="n" data-l="Rank">${rebuild === undefined ? '–' : numberText(at + 1)}</td>
<th role="rowheader" scope="row" data-l="Image">${breakable(image)}${newerTag(reported?.blocking[target]?.newer, target)}</th>
<td role="cell" data-l="Has builds for">${reported?.platforms.join(', ')}</td>
<td role="cell" data-l="Frees">${frees(rebuild, measure)}</td>
<td role="cell" class="n" data-l="Ready after it">${rebuild === undefined ? '–' : percent(rebuild.readyAfter)}</td>
<td role="cell" data-l="Blocks">${count(reported?.blocking[target]?.blocks.workloads ?? rebuild?.frees.workloads ?? 0, 'workload')}</td></tr>
`,
  )}</tbody></table></div>
${showAll(rows.length, IMAGE_ROWS, 'images')}`;
}

function rowsFor({ summary, images }: Report, target: string): Row[] {
  const byName = new Map(images.map((image) => [image.image, image]));
  const rebuilds = summary.targets[target]?.rebuilds ?? [];
  const ranked = new Set(rebuilds.map(({ image }) => image));
  return [
    ...rebuilds.map((rebuild) => ({ image: rebuild.image, reported: byName.get(rebuild.image), rebuild })),
    ...images
      .filter(({ image, blocking }) => blocking[target] !== undefined && !ranked.has(image))
      .map((reported) => ({ image: reported.image, reported, rebuild: undefined })),
  ];
}

function frees(rebuild: Rebuild | undefined, measure: Report['summary']['measure']): string {
  if (rebuild === undefined) return 'nothing: something else keeps its workloads away as well';
  if (rebuild.frees.workloads === 0) return 'nothing yet: the next image holds the same workloads back';
  return `${count(rebuild.frees.workloads, 'workload')}, ${amount(rebuild.frees, measure)} (${percent(rebuild.share)})`;
}

function newerTag(newer: string | undefined, target: string): Markup {
  return newer === undefined
    ? html``
    : html`<p class="note">The newer tag <b>${newer}</b> has a build for ${target}.</p>`;
}

/** The images that could not be looked up, so that their workloads are unknown. */
export function failedImages({ images }: Report): Markup {
  const failed = images.filter(({ error }) => error !== undefined);
  if (failed.length === 0) return html``;
  return html`<section aria-labelledby="failed"><h2 id="failed">Images that could not be looked up</h2>
<div class="scroll" role="group" tabindex="0" aria-labelledby="failed"><table class="cards" role="table" aria-labelledby="failed">
<thead role="rowgroup"><tr role="row">${['Image', 'Why', 'Used by'].map((name) => html`<th role="columnheader" scope="col">${name}</th>`)}</tr></thead>
<tbody role="rowgroup">${failed.map(
    ({ image, error, used }, at) => html`<tr role="row"${later(at, IMAGE_ROWS)}>
<th role="rowheader" scope="row" data-l="Image">${breakable(image)}</th>
<td role="cell" data-l="Why">${error?.code}: ${error?.message}</td>
<td role="cell" data-l="Used by">${count(used.workloads, 'workload')}</td></tr>
`,
  )}</tbody></table></div>
${showAll(failed.length, IMAGE_ROWS, 'images')}</section>`;
}
