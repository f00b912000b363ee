import { createHash } from 'node:crypto';
import { Script } from 'node:vm';
import { expect } from 'chai';
import { renderHtml } from '../../../src/cli/report/html/html.ts';
import { html } from '../../../src/cli/report/html/markup.ts';
import { amount, count, listText, memoryText, numberText, percent } from '../../../src/cli/report/html/numbers.ts';
import { STYLE } from '../../../src/cli/report/html/style.ts';
import type { Report, ReportedWorkload } from '../../../src/placement/readiness/report.ts';
import { HOSTILE_NAMES, hostileReport } from '../../browser/reports.ts';
import { SAMPLE } from '../../placement/readiness/sample.ts';

const OPTIONS = { source: 'https://cluster.example.com:6443', createdAt: '2026-11-22T14:00:00.000Z' };

/** The text of a page without its markup, its style and its script. */
function textOf(page: string): string {
  return page
    .replace(/<(style|script)>[\s\S]*?<\/\1>/g, '')
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ');
}

describe('numbers of the page', () => {
  const rows: readonly (readonly [string, string])[] = [
    [percent(0), '0 %'],
    [percent(0.001), '<1 %'],
    [percent(0.29), '29 %'],
    [percent(0.7 - 0.5), '20 %'],
    [percent(0.999), '99 %'],
    [percent(1), '100 %'],
    [numberText(0.004), '<0.01'],
    [numberText(1234.5), '1,234.5'],
    [numberText(0), '0'],
    [count(1, 'workload'), '1 workload'],
    [count(0.5, 'core'), '0.5 cores'],
    [memoryText(0), '0'],
    [memoryText(512 * 1024 ** 2), '512 MiB'],
    [memoryText(1.5 * 1024 ** 3), '1.5 GiB'],
    [memoryText(5000 * 1024 ** 4), '5,000 TiB'],
    [amount({ workloads: 1, replicas: 3, cpu: 2, memory: 0 }, 'cpu'), '2 cores'],
    [amount({ workloads: 1, replicas: 3, cpu: 0, memory: 0 }, 'replicas'), '3 replicas'],
    [listText(['amd64']), 'amd64'],
    [listText(['amd64', 'arm64', 's390x']), 'amd64, arm64 and s390x'],
  ];
  for (const [written, expected] of rows) {
    it(`writes ${expected}`, () => expect(written.replaceAll('\u00a0', ' ')).to.equal(expected));
  }
});

describe('the template html', () => {
  it('escapes every text, also in lists and attributes, and keeps markup', () => {
    const name = `<b title="x" id='y'>&`;
    const written = html`<p title="${name}">${[name, html`<i>${1}</i>`, undefined]}</p>`.markup;
    const escaped = '&lt;b title=&quot;x&quot; id=&#39;y&#39;&gt;&amp;';
    expect(written).to.equal(`<p title="${escaped}">${escaped}<i>1</i></p>`);
  });

  it('shows control and format characters as escapes', () => {
    expect(html`${'a\u0000\n\u202eb'}`.markup).to.equal('a\\u0000\\u000a\\u202eb');
  });
});

describe('report -o html', () => {
  it('says how many workloads request no CPU, and has no empty bar for a namespace of these', () => {
    const quiet: ReportedWorkload = {
      ...{
        kind: 'Deployment',
        namespace: 'quiet',
        name: 'old',
        replicas: 3,
        cpu: 0,
        memory: 0,
        labels: {},
        images: [],
      },
      verdicts: { arm64: { state: 'blocked', reasons: [] } },
    };
    const text = textOf(renderHtml({ ...SAMPLE, workloads: [...SAMPLE.workloads, quiet] }, OPTIONS)).replaceAll(
      '\u00a0',
      ' ',
    );
    expect(text).to.contain('1 workload requests no CPU, so shares count 0 cores for it.');
    expect(text).to.match(/quiet no CPU requested 1 workload/);
    expect(textOf(renderHtml(SAMPLE, OPTIONS))).not.to.contain('no CPU');
  });

  it('shows the numbers of the report', () => {
    const text = textOf(renderHtml(SAMPLE, OPTIONS)).replaceAll('\u00a0', ' ');
    for (const words of [
      'Readiness for arm64',
      '6 workloads with 14 replicas, which request 10 cores and 20 GiB of memory.',
      'Source: https://cluster.example.com:6443. Made at 2026-11-22 14:00 UTC',
      'This report is not complete the right to list cronjobs.batch in the cluster is missing: CronJobs are left out',
      '2 nodes in the cluster',
      '50 % of the requested cores can run on arm64 today: 5 of 10 cores.',
      '80 % once 2 images have a build for arm64.',
      'Ready 2 workloads, 5 cores',
      'Pinned 1 workload, 1 core',
      'Blocked 1 workload, 2 cores',
      'Missing 1 DaemonSet, 1 core',
      'Unknown 1 workload, 1 core',
      '0 % of 1 core',
      '55 % of 9 cores',
      'The newer tag 2.0 has a build for arm64.',
      '1 workload, 2 cores (20 %)',
      '70 % 1 workload',
      'denied: 401 Unauthorized',
      'its nodeSelector asks for disktype=ssd, which no arm64 node has',
    ]) {
      expect(text.replace(/ (?=[.,])/g, '').replaceAll('/ ', '/')).to.include(words);
    }
  });

  it('allows its own style and script by their hashes, and nothing else', () => {
    const page = renderHtml(SAMPLE, OPTIONS);
    const [, style = ''] = /<style>([\s\S]*?)<\/style>/.exec(page) ?? [];
    const [, script = ''] = /<script>([\s\S]*?)<\/script>/.exec(page) ?? [];
    const hash = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
    expect(page).to.include(
      `content="default-src 'none'; style-src ${hash(style)}; script-src ${hash(script)}; img-src data:; base-uri 'none'; form-action 'none'"`,
    );
    expect(() => new Script(script)).not.to.throw();
    expect(page.match(/<(script|style)\b/g)).to.have.length(2);
    expect(page).not.to.match(/\sstyle=|\son\w+="|src=|@import|url\(/);
  });

  it('writes hostile names as text only', () => {
    const [benign, hostile] = [SAMPLE, hostileReport()].map((report) => renderHtml(report, OPTIONS));
    const tags = (page = '') => new Set(page.match(/<\/?[a-z][a-z0-9]*/g));
    expect([...tags(hostile)].filter((tag) => !tags(benign).has(tag))).to.deep.equal([]);
    for (const name of HOSTILE_NAMES.filter((each) => /[<>"']/.test(each))) expect(hostile).not.to.include(name);
    expect(hostile).not.to.match(/[^\P{Cc}\n]|\p{Cf}/u);
  });

  it('escapes the source and the time too', () => {
    const page = renderHtml(SAMPLE, { source: '</title><script>', createdAt: '"><script>' });
    expect(page.match(/<script>/g)).to.have.length(1);
  });

  it('marks the rows that wait for a button, and keeps all rows in the page', () => {
    const page = renderHtml(manyWorkloads(250), OPTIONS);
    expect(page.match(/data-l="Kind"/g)).to.have.length(250);
    expect(page.match(/<tr role="row" class="later">\s*<td role="cell" data-l="Namespace">/g)).to.have.length(50);
  });

  it('says that shares count replicas where no workload requests CPU, and that copies of nodes stand in', () => {
    const arm64 = SAMPLE.summary.targets.arm64;
    if (arm64 === undefined) throw new Error('the sample has no arm64');
    const summary = { ...SAMPLE.summary, measure: 'replicas' as const, targets: { arm64: { ...arm64, nodes: 0 } } };
    const text = textOf(renderHtml({ ...SAMPLE, summary }, OPTIONS)).replaceAll('\u00a0', ' ');
    expect(text).to.include('No workload requests CPU, so shares count replicas.');
    expect(text).to.include('The cluster has no arm64 node: copies of its other nodes stand in for one.');
    expect(text).to.include('of the replicas can run on arm64 today: 5 of 14 replicas.');
  });

  it('has a chart for the groups that were asked for', () => {
    const [group] = SAMPLE.workloads.slice(0, 1).map(() => SAMPLE.summary.targets.arm64);
    if (group === undefined) throw new Error('the sample has no arm64');
    const groups = [{ name: '', all: SAMPLE.summary.all, targets: { arm64: group } }];
    const text = textOf(renderHtml({ ...SAMPLE, groupBy: 'label:team', groups }, OPTIONS));
    expect(text).to.include('By namespace').and.include('By label team').and.include('(without the label)');
  });
});

describe('colors of the page', () => {
  const surfaces = ['page', 'surface', 'raised', 'line', 'warning'];
  for (const [theme, at] of [
    ['light', 0],
    ['dark', 1],
  ] as const) {
    it(`have contrast in ${theme}: 4.5 for text, 3 for pictures and borders of fields`, () => {
      const ratio = (one: string, other: string) => contrast(color(one, at), color(other, at));
      const low = [
        ...['text', 'muted', 'accent'].flatMap((text) =>
          surfaces
            // Only headers of sorted columns stand on a line.
            .filter((surface) => text === 'text' || (surface !== 'line' && surface !== 'warning'))
            .map((surface) => ({ pair: `${text} on ${surface}`, ratio: ratio(text, surface), least: 4.5 })),
        ),
        ...['ready', 'pinned', 'blocked', 'missing', 'unknown', 'edge'].map((each) => ({
          pair: each,
          ratio: ratio(each, 'surface'),
          least: 3,
        })),
      ].filter(({ ratio: found, least }) => found < least);
      expect(low).to.deep.equal([]);
    });
  }
});

function manyWorkloads(length: number): Report {
  const [first] = SAMPLE.workloads;
  if (first === undefined) throw new Error('the sample has no workload');
  const workloads = Array.from({ length }, (_, at): ReportedWorkload => ({ ...first, name: `agent-${at}` }));
  return { ...SAMPLE, workloads };
}

/** The color of a variable of the style in light (0) or dark (1). */
function color(name: string, at: 0 | 1): string {
  const found = new RegExp(`--${name}: light-dark\\((#\\w{6}), (#\\w{6})\\)`).exec(STYLE)?.[at + 1];
  if (found === undefined) throw new Error(`the style has no color ${name}`);
  return found;
}

/** The contrast of two colors, as WCAG 2.2 defines it. */
function contrast(one: string, other: string): number {
  const [dark = 0, light = 0] = [luminance(one), luminance(other)].sort((first, second) => first - second);
  return (light + 0.05) / (dark + 0.05);
}

function luminance(hex: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((from) => {
    const value = Number.parseInt(hex.slice(from, from + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
