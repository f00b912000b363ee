import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import type { Report } from '../../src/analysis/readiness/report.ts';
import { renderHtml } from '../../src/cli/report/html/html.ts';

export type Look = Pick<BrowserContextOptions, 'viewport' | 'colorScheme' | 'javaScriptEnabled' | 'deviceScaleFactor'>;

export type OpenPage = {
  readonly page: Page;
  /** Messages of the console, errors of the script, and requests, but for the page itself. */
  readonly complaints: readonly string[];
};

export type TestBrowser = {
  /** Opens a report as a file, as somebody does who got it by mail. */
  readonly open: (report: Report, look?: Look) => Promise<OpenPage>;
  readonly close: () => Promise<void>;
};

const OPTIONS = { source: 'https://cluster.example.com:6443', createdAt: '2026-11-22T14:00:00.000Z' };

/** Starts Debian's Chromium (`CHROMIUM` names another one) without a sandbox, because tests may run as root. */
export async function startBrowser(): Promise<TestBrowser> {
  const folder = await mkdtemp(join(tmpdir(), 'archaware-browser-'));
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu'],
  });
  let pages = 0;
  return {
    open: async (report, look = {}) => {
      pages += 1;
      const file = join(folder, `${pages}.html`);
      await writeFile(file, renderHtml(report, OPTIONS));
      const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...look });
      const page = await context.newPage();
      const complaints: string[] = [];
      const address = pathToFileURL(file).href;
      page.on('console', (message) => complaints.push(`${message.type()}: ${message.text()}`));
      page.on('pageerror', (error) => complaints.push(`error: ${error.message}`));
      page.on('request', (request) => {
        const url = request.url();
        // The icon of the tab is in the page itself.
        if (url !== address && !url.startsWith('data:')) complaints.push(`request: ${url}`);
      });
      await page.goto(address);
      return { page, complaints };
    },
    close: async () => {
      await browser.close();
      await rm(folder, { recursive: true });
    },
  };
}
