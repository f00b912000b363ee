import { createHash } from 'node:crypto';
import { VERSION } from '../../../app/version.ts';
import { groupWorkloads } from '../../../placement/readiness/groups.ts';
import type { Report } from '../../../placement/readiness/report.ts';
import { html, type Markup, trusted } from './markup.ts';
import { amount, count, listText, memoryText } from './numbers.ts';
import { failedImages } from './rebuild-table.ts';
import { SCRIPT } from './script.ts';
import { legend } from './states.ts';
import { STYLE } from './style.ts';
import { type Chart, targetSection } from './target-section.ts';
import { NO_NAMESPACE, workloadSection } from './workloads.ts';

export type HtmlOptions = {
  /** Where the workloads come from: the host of the API server, or the files. */
  readonly source: string;
  /** When the report was made, as ISO 8601. */
  readonly createdAt: string;
};

/** The icon of the tab: without one, a browser asks the server of the page for it. */
const ICON =
  'data:image/svg+xml,%3Csvg xmlns=%22http://www.w3.org/2000/svg%22 viewBox=%220 0 16 16%22%3E%3Cpath fill=%22%230b7a5c%22 d=%22M1 9h6v6H1z%22/%3E%3Cpath fill=%22%230b5cad%22 d=%22M9 1h6v14H9z%22/%3E%3C/svg%3E';

/**
 * Returns the report as one HTML document that needs no network. Its content security policy allows the one style and the one
 * script inside it, by their hashes, and nothing else.
 */
export function renderHtml(report: Report, options: HtmlOptions): string {
  const title = `Readiness for ${listText(report.targets)}`;
  const policy = `default-src 'none'; style-src ${hash(STYLE)}; script-src ${hash(SCRIPT)}; img-src data:; base-uri 'none'; form-action 'none'`;
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${trusted(policy)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>${title}: ${options.source}</title>
<link rel="icon" href="${trusted(ICON)}">
<style>${trusted(STYLE)}</style>
<script>${trusted(SCRIPT)}</script>
</head>
<body>
<a class="skip" href="#workloads">Skip to the table of workloads</a>
${header(report, options, title)}
<main>
${unread(report)}
${report.targets.map((target) => targetSection(report, target, charts(report)))}
${failedImages(report)}
${workloadSection(report)}
</main>
</body>
</html>
`;
  return page.markup;
}

function hash(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}

function header({ summary, targets }: Report, { source, createdAt }: HtmlOptions, title: string): Markup {
  const { all } = summary;
  const contents = [
    ...targets.map((target, at) => html`<li><a href="#target-${at}">${target}</a></li>`),
    html`<li><a href="#workloads">Workloads</a></li>`,
  ];
  return html`<header>
<div class="head"><h1>${title}</h1>
<label class="controls theme">Colors <select id="theme"><option value="">As the system</option><option value="light">Light</option><option value="dark">Dark</option></select></label></div>
<p>${count(all.workloads, 'workload')} with ${count(all.replicas, 'replica')}, which request ${amount(all, 'cpu')} and ${memoryText(all.memory)} of memory.</p>
<p>Source: ${source}. Made at <time datetime="${createdAt}">${timeText(createdAt)}</time> by archaware ${VERSION}.</p>
<nav aria-label="Contents"><ul>${contents}</ul></nav>
${legend()}
</header>`;
}

function timeText(iso: string): string {
  return iso.replace(/^(\d{4}-\d\d-\d\d)T(\d\d:\d\d).*Z$/, '$1 $2 UTC');
}

function unread({ summary }: Report): Markup {
  if (summary.unread.length === 0) return html``;
  return html`<section class="warning" aria-labelledby="unread"><h2 id="unread">This report is not complete</h2>
<ul>${summary.unread.map(({ text }) => html`<li>${text}</li>`)}</ul></section>`;
}

/** The chart by namespace, and one for the groups that were asked for. */
function charts(report: Report): Chart[] {
  const { targets, workloads, groupBy, groups, summary } = report;
  const byNamespace: Chart = {
    title: 'By namespace',
    noun: 'namespace',
    nouns: 'namespaces',
    unnamed: NO_NAMESPACE,
    groups: groupWorkloads(workloads, targets, { by: 'namespace' }, summary.measure, () => ''),
  };
  if (groupBy === undefined || groups === undefined || groupBy === 'namespace') return [byNamespace];
  if (groupBy === 'registry') {
    return [
      byNamespace,
      { title: 'By registry', noun: 'registry', nouns: 'registries', unnamed: '(malformed image name)', groups },
    ];
  }
  const label = groupBy.replace(/^label:/, '');
  return [
    byNamespace,
    { title: `By label ${label}`, noun: 'value', nouns: 'values', unnamed: '(without the label)', groups },
  ];
}
