/** Where the version of the program stands in the repository, and how it changes. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { type Section, sectionOf } from './changelog.ts';
import { PLACEHOLDER } from './names.ts';

/** `1.2.3`, or `1.2.3-rc.1` */
export const VERSION = /^\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?$/;

/** The files with the version in a field; npm run generate writes the other manifests from them. */
const FIELDS: readonly { readonly file: string; readonly field: string; readonly read: (text: string) => unknown }[] = [
  { file: 'package.json', field: 'version', read: (text) => JSON.parse(text).version },
  { file: 'package-lock.json', field: 'version', read: (text) => JSON.parse(text).version },
  {
    file: 'package-lock.json',
    field: 'packages[""].version',
    read: (text) => JSON.parse(text).packages?.['']?.version,
  },
  { file: 'manifests/helm/archaware-controller/Chart.yaml', field: 'version', read: (text) => parse(text).version },
  {
    file: 'manifests/helm/archaware-controller/Chart.yaml',
    field: 'appVersion',
    read: (text) => parse(text).appVersion,
  },
  { file: 'manifests/krew/archaware.yaml', field: 'spec.version', read: (text) => parse(text).spec?.version?.slice(1) },
  ...[
    'manifests/kustomize/base/deployment.yaml',
    'manifests/archaware-controller.yaml',
    'manifests/archaware-controller-1.30.yaml',
    'manifests/archaware-controller-observe.yaml',
  ].map((file) => ({ file, field: "the image's tag", read: imageTag })),
];

/** What stands before the version of archaware in texts. */
const BEFORE = [
  'archaware-controller(?:-npm|-kustomize)?[:-]',
  'archaware-controller, (?:newT|t)ag: ',
  'charts/archaware-controller[\'" ]+--version ',
  'https://releases\\.invalid/archaware/v',
  '@refs/tags/v',
  'hack/release\\.sh v?',
  'dist/release/',
  '^version=',
  '^Version ',
];
const NAMED = new RegExp(
  `(${BEFORE.join('|')})(\\d+\\.\\d+\\.\\d+(?:-[0-9A-Za-z]+(?:\\.[0-9A-Za-z]+)*)?)(?![\\w.]*\\d)`,
  'gm',
);

/**
 * Returns what does not have the version, or is missing: a line for each, with the file, what it has, and what is expected. The
 * file's paths are from the root of the checkout.
 */
export async function checkVersions(checkout: string, version: string): Promise<string[]> {
  const problems: string[] = [];
  for (const { file, field, read } of FIELDS) {
    const text = await readFile(join(checkout, file), 'utf8').catch(() => undefined);
    if (text === undefined) problems.push(`${file}: not found`);
    else {
      const found = attempt(() => read(text));
      if (found !== version) problems.push(`${file}: ${field} is ${String(found)}, expected ${version}`);
    }
  }
  for (const file of await pagesOf(checkout)) {
    const text = await readFile(join(checkout, file), 'utf8');
    for (const [, before = '', found] of text.matchAll(NAMED)) {
      if (found !== version) problems.push(`${file}: names ${before.trimStart()}${found}, expected ${version}`);
    }
  }
  const changelog = await readFile(join(checkout, 'CHANGELOG.md'), 'utf8').catch(() => '');
  const section = sectionOf(changelog, version);
  if (section === undefined) problems.push(`CHANGELOG.md: no section "## ${version}"`);
  else problems.push(...sectionProblems(section));
  return problems;
}

function sectionProblems({ version, date, text }: Section): string[] {
  return [
    ...(text === '' ? [`CHANGELOG.md: the section "## ${version}" is empty`] : []),
    ...(date === undefined || !/^\d{4}-\d\d-\d\d$/.test(date)
      ? [`CHANGELOG.md: the date of "## ${version}" is ${date ?? 'missing'}, expected "## ${version} (YYYY-MM-DD)"`]
      : []),
  ];
}

/** Returns the text with another version in every place that names the version `from` of archaware. */
export function withVersion(text: string, from: string, to: string): string {
  return text.replaceAll(NAMED, (all, before: string, found: string) => (found === from ? before + to : all));
}

/** The same for a page for users, where every such number is a version of archaware. `1\.2\.3` is a number in a regular expression. */
export function pageWithVersion(text: string, from: string, to: string): string {
  const numbers = from.split('.').map(literal).join(String.raw`(\\?)\.`);
  const number = new RegExp(String.raw`(?<![\d.])${numbers}(?![\w-]|\.\d)`, 'g');
  return text.replaceAll(number, (_, escaped: string) => to.replaceAll('.', `${escaped}.`));
}

/**
 * Returns the changelog with what is unreleased as a section of the version, and an empty section above it. If there is a section of
 * the version, nothing changes. Throws if nothing is unreleased. `date` is `YYYY-MM-DD`; `from` is the version before.
 */
export function withSection(changelog: string, { from, to, date }: { from: string; to: string; date: string }): string {
  if (sectionOf(changelog, to) !== undefined) return changelog;
  const unreleased = sectionOf(changelog, 'Unreleased');
  if (unreleased === undefined || unreleased.text === '') {
    throw new Error('CHANGELOG.md: nothing stands below "## Unreleased", so there is nothing to release');
  }
  const { source } = PLACEHOLDER;
  const [latest, link] = [
    `[unreleased]: ${source}/compare/v${to}...main`,
    `[${to}]: ${source}/compare/v${from}...v${to}`,
  ];
  const headed = changelog.replace(/^## Unreleased$/m, `## Unreleased\n\n## ${to} (${date})`);
  if (/^\[unreleased\]: /m.test(headed)) return headed.replace(/^\[unreleased\]: .*$/m, `${latest}\n${link}`);
  return `${headed.trimEnd()}\n\n${latest}\n${link}\n`;
}

/**
 * Returns the pages for users, whose commands name the version. Decisions and the changelog name older ones, the pages for developers
 * those that were measured; the page about versions names invented ones.
 */
export async function pagesOf(checkout: string): Promise<string[]> {
  const pages = await readdir(join(checkout, 'docs'), { recursive: true });
  return [
    'README.md',
    'manifests/helm/archaware-controller/README.md',
    ...pages
      .filter((name) => name.endsWith('.md') && !/^(?:decisions\/|development\/|versions\.md)/.test(name))
      .sort()
      .map((name) => `docs/${name}`),
  ];
}

function imageTag(text: string): unknown {
  return new RegExp(`image: ${literal(PLACEHOLDER.registry)}archaware-controller:(\\S+)`).exec(text)?.[1];
}

function literal(text: string): string {
  return text.replaceAll(/[.*+?^$()[\]{}|\\]/g, '\\$&');
}

function attempt(read: () => unknown): unknown {
  try {
    return read();
  } catch {
    return 'unreadable';
  }
}
