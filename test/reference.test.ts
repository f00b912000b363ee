import { expect } from 'chai';
import type { Page } from '../hack/reference/markdown.ts';
import { readMetrics } from '../hack/reference/metrics.ts';
import { referencePages, writtenPage } from '../hack/reference.ts';

describe('docs/reference', () => {
  let pages: Page[];

  before(async () => {
    pages = await referencePages();
  });

  for (const file of ['configuration.md', 'flags.md', 'metrics.md', 'events.md', 'errors.md', 'rbac.md']) {
    it(`${file} is what the sources say (else: npx tsx hack/reference.ts)`, async () => {
      const page = pages.find((found) => found.file === file);
      expect(page).not.to.equal(undefined);
      if (page !== undefined) expect(await writtenPage(page)).to.equal(page.text);
    });
  }

  it('has rows for a few known facts', () => {
    const rows: [file: string, row: RegExp][] = [
      [
        'configuration.md',
        /^\| `taints\.key`<br>`ARCHAWARE_TAINTS__KEY` \| `supported-arch` \|.*\| after a restart \|$/m,
      ],
      ['configuration.md', /^\| `images\.overrides`.*\| at once \|$/m],
      ['configuration.md', /^\| `images\.cache\.maxEntries`.*\| after a restart \|$/m],
      ['flags.md', /^\| `--stop` \| Scale the Deployment of archaware to 0 first, and wait for the leader to end \|$/m],
      ['metrics.md', /^\| `archaware_reconcile_total` \| counter \| `controller`, `result` \|/m],
      ['metrics.md', /^\| `archaware_admission_duration_seconds` \| histogram \| {2}\|/m],
      ['errors.md', /^\| `rate-limited` \|/m],
      ['errors.md', /^\| 2 \|/m],
      ['rbac.md', /^\| `pull-secrets` \| `ClusterRole archaware-controller-pull-secrets` \| `secrets` \| get \|/m],
    ];
    for (const [file, row] of rows) expect(pages.find((page) => page.file === file)?.text, file).to.match(row);
  });
});

describe('the text of metrics', () => {
  it('is read with the labels of its samples', () => {
    const text =
      '# HELP a_total All.\n# TYPE a_total counter\na_total{x="1",y="b c"} 0\n\n# HELP b B b.\n# TYPE b gauge\nb 0\n';
    expect(readMetrics(text)).to.deep.equal([
      { name: 'a_total', type: 'counter', labels: ['x', 'y'], help: 'All.' },
      { name: 'b', type: 'gauge', labels: [], help: 'B b.' },
    ]);
  });

  it('is refused if a metric has no sample, because its labels are unknown', () => {
    expect(() => readMetrics('# HELP a_total All.\n# TYPE a_total counter\n')).to.throw('a_total has labels');
  });
});
