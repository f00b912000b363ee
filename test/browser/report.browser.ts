import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import type { Report } from '../../src/analysis/readiness/report.ts';
import { printable } from '../../src/kit/printable.ts';
import { type Look, startBrowser, type TestBrowser } from './browser.ts';
import { fleetReport, HOSTILE_NAMES, hostileReport, largeReport } from './reports.ts';

const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
const PICTURES = new URL('../../docs/pictures/', import.meta.url).pathname;
/** The table of workloads. */
const TABLE = 'table[aria-labelledby="workloads"]';
const PHONE: Look = { viewport: { width: 320, height: 640 } };

describe('the page of report -o html, in Chromium', () => {
  let browser: TestBrowser;
  let opened: (readonly string[])[] = [];

  before(async () => {
    browser = await startBrowser();
  });
  after(() => browser?.close());
  afterEach(() => {
    const complaints = opened.flat();
    opened = [];
    expect(complaints, 'console messages, errors and requests').to.deep.equal([]);
  });

  async function open(report: Report, look: Look = {}): Promise<Page> {
    const { page, complaints } = await browser.open(report, look);
    opened.push(complaints);
    return page;
  }

  /** The names of the workloads that are shown, in their order. */
  function names(page: Page): Promise<string[]> {
    return page.locator(`${TABLE} tbody tr:visible th`).allInnerTexts();
  }

  async function exported(page: Page): Promise<string> {
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByText('Export CSV').click()]);
    expect(download.suggestedFilename()).to.equal('archaware-report.csv');
    return readFile(await download.path(), 'utf8');
  }

  it('sorts each table by keyboard, and says so', async () => {
    const page = await open(fleetReport());
    const button = page.locator(TABLE).getByRole('button', { name: 'Cores' });
    await button.focus();
    await page.keyboard.press('Enter');
    expect((await names(page)).at(-1)).to.equal('cart');
    expect(await page.locator(`${TABLE} [aria-sort]`).getAttribute('aria-sort')).to.equal('ascending');
    await page.keyboard.press('Enter');
    expect((await names(page)).slice(0, 3)).to.deep.equal(['cart', 'legacy', 'ledger']);
    expect(await page.locator(`${TABLE} [aria-sort]`).getAttribute('aria-sort')).to.equal('descending');
    const groups = page.locator('table[aria-labelledby="groups"]');
    await groups.getByRole('button', { name: 'namespace' }).click();
    expect(await groups.locator('tbody th').allInnerTexts()).to.deep.equal(['data', 'media', 'ops', 'pay', 'shop']);
  });

  it('filters by text and state', async () => {
    const page = await open(fleetReport(['amd64', 'arm64']));
    await page.getByLabel('Text').fill('LEDGER only');
    expect(await names(page)).to.deep.equal(['fraud', 'ledger']);
    expect(await page.getByRole('status').innerText()).to.equal('2 of 18 workloads');
    await page.getByLabel('Text').fill('ops');
    expect(await names(page)).to.deep.equal(['agent', 'logs']);
    await page.getByLabel('State').selectOption('not ready');
    expect(await names(page)).to.deep.equal(['agent']);
    await page.getByLabel('State').selectOption('pinned');
    expect(await page.getByRole('status').innerText()).to.equal('0 of 18 workloads');
  });

  it('exports what the filters leave as CSV', async () => {
    const page = await open(fleetReport());
    await page.getByLabel('Text').fill('daemonset');
    expect(await exported(page)).to.equal(
      [
        '\ufeff"namespace","kind","name","replicas","cores","memory","arm64","arm64 why","images"',
        '"ops","DaemonSet","agent","1","1","1073741824","missing","registry.example.com/ops/agent:3 (app) is only for linux/amd64","registry.example.com/ops/agent:3"',
        '"ops","DaemonSet","logs","1","1","1073741824","ready","","registry.example.com/ops/logs:2.2"',
        '',
      ].join('\r\n'),
    );
  });

  it('shows and exports hostile names as text', async () => {
    const page = await open(hostileReport());
    const shown = await names(page);
    // The layout of a line joins spaces; the text in the page keeps them.
    expect(shown.length).to.equal(HOSTILE_NAMES.length);
    const written = await page.locator(`${TABLE} tbody th`).allTextContents();
    expect(written.sort()).to.deep.equal(HOSTILE_NAMES.map((name) => printable(name, 1_000)).sort());
    expect(await page.evaluate('window.broken')).to.equal(undefined);
    expect(await page.locator('script, img, iframe').count()).to.equal(1);
    const csv = await exported(page);
    expect(csv.slice(1).match(/(?:^|,)"\s*[=+\-@]/gm)).to.equal(null);
    expect(csv).to.include('"\'=HYPERLINK(""http://example.com"",""click"")"');
  });

  it('allows no other script and no request, by its policy', async () => {
    let requests = 0;
    const server = createServer((_, response) => {
      requests += 1;
      response.end();
    });
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
    const { port } = server.address() as AddressInfo;
    const { page, complaints } = await browser.open(fleetReport());
    const outcome = await page.evaluate(`new Promise((done) => {
      const script = document.createElement('script');
      script.textContent = 'window.broken = 1';
      const image = document.createElement('img');
      image.src = 'http://127.0.0.1:${port}/image.png';
      image.onerror = () => fetch('http://127.0.0.1:${port}/').then(() => done('answered'), () => done('refused'));
      document.body.append(script, image);
    })`);
    server.close();
    expect(outcome).to.equal('refused');
    expect(requests).to.equal(0);
    expect(await page.evaluate('window.broken')).to.equal(undefined);
    expect(complaints.join('\n')).to.include('Content Security Policy');
  });

  it('follows the system to dark', async () => {
    const background = async (colorScheme: 'light' | 'dark') => {
      const page = await open(fleetReport(), { colorScheme });
      return page.evaluate('getComputedStyle(document.body).backgroundColor');
    };
    expect(await background('dark')).to.equal('rgb(16, 20, 27)');
    expect(await background('light')).to.equal('rgb(244, 246, 249)');
  });

  for (const [title, report] of [
    ['one target', fleetReport()],
    ['three targets', fleetReport(['amd64', 'arm64', 's390x'])],
    ['hostile names', hostileReport()],
  ] as const) {
    it(`fits 320 px with every verdict in view: ${title}`, async () => {
      const page = await open(report, PHONE);
      const edges = "Array.from(document.querySelectorAll('.s'), (mark) => mark.getBoundingClientRect().right)";
      expect(await page.evaluate(`Math.max(document.documentElement.scrollWidth, ...${edges})`)).to.equal(320);
    });
  }

  it('prints all rows and no controls', async () => {
    const page = await open(largeReport());
    await page.emulateMedia({ media: 'print' });
    const visible = (selector: string) => page.locator(`${selector}:visible`).count();
    expect(await visible(`${TABLE} tbody tr`)).to.equal(2_500);
    expect(await visible(':is(form, nav, details)')).to.equal(0);
    const pdf = await page.pdf({ format: 'A4', landscape: true });
    expect(pdf.subarray(0, 5).toString()).to.equal('%PDF-');
    expect(pdf.toString('latin1').match(/\/Type\s*\/Page\b/g)?.length).to.be.above(50);
  });

  it('finds each of 2,500 workloads', async () => {
    const page = await open(largeReport());
    expect(await names(page)).to.have.length(2_500);
    await page.getByLabel('Text').fill('service-1999:');
    expect(await names(page)).to.deep.equal(['workload-1999']);
  });

  it('shows all rows and no dead controls without a script', async () => {
    const page = await open(largeReport(), { javaScriptEnabled: false });
    expect(await page.locator(`${TABLE} tbody tr:visible`).count()).to.equal(2_500);
    expect(await page.locator(':is(form, button):visible').count()).to.equal(0);
  });

  it('shows where the focus is', async () => {
    const page = await open(fleetReport());
    await page.keyboard.press('Tab');
    expect(await page.evaluate('document.activeElement.textContent')).to.equal('arm64');
    expect(await page.evaluate('getComputedStyle(document.activeElement).outlineWidth')).to.equal('3px');
  });

  for (const [title, report, look] of [
    ['light', fleetReport(), {}],
    ['dark', fleetReport(), { colorScheme: 'dark' }],
    ['at 320 px', fleetReport(['amd64', 'arm64']), PHONE],
    ['with hostile names', hostileReport(), {}],
  ] as const) {
    it(`has nothing that axe-core complains about: ${title}`, async () => {
      const page = await open(report, look);
      await page.evaluate(await readFile(AXE, 'utf8'));
      const found = await page.evaluate<string[]>(`axe.run({ resultTypes: ['violations'] }).then(({ violations }) =>
        violations.map(({ id, impact, nodes }) => id + ' (' + impact + '): ' + nodes.map((node) => node.html).join(' ')))`);
      expect(found).to.deep.equal([]);
    });
  }

  if (process.env.WRITE_PICTURES) {
    it('writes the pictures of docs/report.md', async () => {
      const viewport = { width: 1180, height: 860 };
      const summary = await open(fleetReport(), { viewport });
      await summary.screenshot({ path: `${PICTURES}report-summary.png` });
      const table = await open(fleetReport(), { viewport, colorScheme: 'dark' });
      await table.getByLabel('State').selectOption('not ready');
      await table.evaluate('document.getElementById("workloads").scrollIntoView({ behavior: "instant" })');
      await table.screenshot({ path: `${PICTURES}report-workloads.png` });
    });
  }
});
