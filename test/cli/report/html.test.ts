import { createHash } from 'node:crypto';
import { runInNewContext, Script } from 'node:vm';
import { expect } from 'chai';
import type { ReportedWorkload } from '../../../src/analysis/readiness/report.ts';
import { renderHtml } from '../../../src/cli/report/html/html.ts';
import { html } from '../../../src/cli/report/html/markup.ts';
import { SCRIPT } from '../../../src/cli/report/html/script.ts';
import { headlines } from '../../../src/cli/report/texts.ts';
import { SAMPLE } from '../../analysis/readiness/sample.ts';
import { HOSTILE_NAMES, hostileReport } from '../../browser/reports.ts';

const OPTIONS = { source: 'https://cluster.example.com:6443', createdAt: '2026-11-22T14:00:00.000Z' };

const { arm64: ARM64 } = SAMPLE.summary.targets;
if (ARM64 === undefined) throw new Error('the sample has no arm64');

/** The text of a page without its markup, its style and its script. */
function textOf(page: string): string {
  return page
    .replace(/<(style|script)>[\s\S]*?<\/\1>/g, '')
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ');
}

describe('the template html', () => {
  it('escapes every text, also in lists and attributes, and keeps markup', () => {
    const name = `<b title="x" id='y'>&`;
    const written = html`<p title="${name}">${[name, html`<i>${1}</i>`, undefined]}</p>`.markup;
    const escaped = '&lt;b title=&quot;x&quot; id=&#39;y&#39;&gt;&amp;';
    expect(written).to.equal(`<p title="${escaped}">${escaped}<i>1</i></p>`);
  });

  it('shows control and format characters as escapes', () =>
    expect(html`${'a\u0000\n\u202eb'}`.markup).to.equal('a\\u0000\\u000a\\u202eb'));
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
    const counts = { workloads: 1, replicas: 3, cpu: 0, memory: 0 };
    const arm64 = { ...ARM64, withoutCpu: { all: counts, ready: { ...counts, workloads: 0, replicas: 0 } } };
    const summary = { ...SAMPLE.summary, targets: { arm64 } };
    const page = renderHtml({ ...SAMPLE, summary, workloads: [...SAMPLE.workloads, quiet] }, OPTIONS);
    expect(textOf(page)).to.contain(
      '1 workload requests no CPU and is not in this share: 0 of 3 replicas can run there.',
    );
    expect(textOf(page)).to.match(/ quiet 1 3 0 – /);
    expect(textOf(renderHtml(SAMPLE, OPTIONS))).not.to.contain('no CPU');
  });

  it('says that it sums up the first images, where there are more', () => {
    const alike = (one: (typeof ARM64.rebuilds)[number]) =>
      Array.from({ length: 6 }, (_, index) => ({ ...one, image: `i${index}`, share: 0.05 }));
    const rebuilds = ARM64.rebuilds.slice(0, 1).flatMap(alike);
    const summary = { ...SAMPLE.summary, targets: { arm64: { ...ARM64, rebuilds } } };
    expect(headlines({ ...SAMPLE, summary }, 'arm64')).to.include('The first 5 images hold back 25 % more; see below.');
  });

  it('shows the numbers of the report', () => {
    const text = textOf(renderHtml(SAMPLE, OPTIONS));
    for (const words of [
      'Readiness for arm64',
      'Workloads: 6. Replicas: 14. Requested: 10 cores, 20Gi of memory.',
      'Source: https://cluster.example.com:6443. Made at 2026-11-22 14:00 UTC by',
      'This report is not complete the right to list cronjobs.batch in the cluster is missing: CronJobs are left out',
      'nodes: 2',
      '50 % arm64: 50 % of the requested CPU can run there today (5 of 10 cores, 2 of 6 workloads).',
      '2 images hold back 30 % more; see below.',
      'ready 2 workloads; replicas: 5, cores: 5',
      'pinned 1 workload; replicas: 1, cores: 1',
      'blocked 1 workload; replicas: 2, cores: 2',
      'missing 1 workload; replicas: 5, cores: 1',
      'unknown 1 workload; replicas: 1, cores: 1',
      'ops 1 5 1 0 %',
      'shop 5 9 9 55 %',
      'The newer tag 2.0 has a build for arm64.',
      '2 registry.example.com/ops/agent:3 linux/amd64 1 1 1 80 %',
      'denied: 401 Unauthorized',
      'its nodeSelector asks for disktype=ssd',
    ]) {
      expect(text).to.include(words);
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

  const cells: readonly (readonly [text: string, cell: string])[] = [
    ['web', '"web"'],
    ['a "b", c', '"a ""b"", c"'],
    ['5-1', '"5-1"'],
    ['=HYPERLINK("x","y")', `"'=HYPERLINK(""x"",""y"")"`],
    ...['+1', '-1', '@x', ' \t=1', '\r\n=1', '\uff1d1', '\uff0b1', '\uff0d1', '\uff201'].map(
      (text): [string, string] => [text, `"'${text}"`],
    ),
  ];
  for (const [text, cell] of cells) {
    it(`exports ${JSON.stringify(text)} to a spreadsheet as text: ${JSON.stringify(cell)}`, () => {
      const [definition = ''] = /^const quoted = [\s\S]*?;$/m.exec(SCRIPT) ?? [];
      expect(runInNewContext(`${definition} quoted(text)`, { text })).to.equal(cell);
    });
  }

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

  it('says that shares count replicas where no workload requests CPU, and that copies of nodes stand in', () => {
    const summary = { ...SAMPLE.summary, measure: 'replicas' as const, targets: { arm64: { ...ARM64, nodes: 0 } } };
    const text = textOf(renderHtml({ ...SAMPLE, summary }, OPTIONS));
    expect(text).to.include('No workload requests CPU, so shares count replicas.');
    expect(text).to.include('The cluster has no arm64 node: copies of its other nodes stand in for one.');
    expect(text).to.include('of the replicas can run there today (5 of 14 replicas, 2 of 6 workloads).');
  });

  it('has the groups that were asked for, else the namespaces', () => {
    const groups = [{ name: '', all: SAMPLE.summary.all, targets: { arm64: ARM64 } }];
    const text = textOf(renderHtml({ ...SAMPLE, groupBy: 'label:team', groups }, OPTIONS));
    expect(text).to.match(/By label:team label:team Workloads .* \(none\) 6 14 10 50 %/);
    expect(textOf(renderHtml(SAMPLE, OPTIONS))).to.include('By namespace');
  });

  it('has a bar as long as the shares', () => {
    const page = renderHtml(SAMPLE, OPTIONS);
    expect(page).to.include('aria-label="arm64: ready 50 %, pinned 10 %, blocked 20 %, missing 10 %, unknown 10 %"');
    expect(page).to.include('<rect class="blocked" x="60%" width="20%" height="100%"/>');
  });
});
