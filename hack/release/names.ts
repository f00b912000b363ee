/** The names of a release in place of those that the sources have, which nobody can own (RFC 2606: `.invalid` never resolves). */
import { posix } from 'node:path';
import type { Release } from './types.ts';

/** What a name depends on. */
export type Names = Pick<Release, 'tag' | 'registry' | 'repository' | 'source' | 'downloads'>;

/** What the sources have in place of each name of a release. */
export const PLACEHOLDER = {
  /** Stands before `archaware-controller` and `charts/archaware-controller`. */
  registry: 'registry.invalid/',
  source: 'https://source.invalid/archaware-controller',
  downloads: 'https://releases.invalid/archaware',
} as const;

/** Returns a text with the names of a release in place of the placeholders. Links to pages lead to the release's, not to the newest. */
export function withRealNames(text: string, { registry, repository, source, downloads, tag }: Names): string {
  return text
    .replaceAll(`${PLACEHOLDER.source}/blob/main/`, `${source}/blob/${tag}/`)
    .replaceAll(PLACEHOLDER.registry, `${registry}/${repository}/`)
    .replaceAll(PLACEHOLDER.source, source)
    .replaceAll(PLACEHOLDER.downloads, downloads);
}

/** Returns the URL of a file of the repository, as it is in the release. */
export function pageOf({ source, tag }: Names, path: string): string {
  return `${source}/blob/${tag}/${path}`;
}

/**
 * Returns a Markdown page of the repository as a release carries it to other places, such as Artifact Hub and the registry of npm:
 *
 * - without the lines from `<!-- unreleased -->` to `<!-- /unreleased -->`, which are true before a release only;
 * - with the lines between `<!-- released` and `-->`, which the sources have as a comment;
 * - with real names, and with links to the repository in place of relative ones.
 *
 * `path` is the page's own, from the root of the repository. Throws if a mark has no end.
 */
export function releasedPage(text: string, path: string, names: Names): string {
  return withRealNames(withAbsoluteLinks(releasedLines(text, path), path, names), names);
}

const BEGIN_CUT = '<!-- unreleased -->';
const END_CUT = '<!-- /unreleased -->';
const BEGIN_KEPT = '<!-- released';
const END_KEPT = '-->';

function releasedLines(text: string, path: string): string {
  let inside: 'cut' | 'kept' | undefined;
  const lines = text.split('\n').filter((line) => {
    const mark = line.trim();
    if (inside === undefined && mark === BEGIN_CUT) inside = 'cut';
    else if (inside === undefined && mark === BEGIN_KEPT) inside = 'kept';
    else if (inside === 'cut' && mark === END_CUT) inside = undefined;
    else if (inside === 'kept' && mark === END_KEPT) inside = undefined;
    else return inside !== 'cut';
    return false;
  });
  if (inside === 'cut') throw new Error(`${path}: "${BEGIN_CUT}" has no "${END_CUT}"`);
  if (inside === 'kept') throw new Error(`${path}: "${BEGIN_KEPT}" has no "${END_KEPT}"`);
  return lines.join('\n');
}

/** Pictures first: of a picture the file itself is wanted, which is not what /blob/ shows. */
function withAbsoluteLinks(text: string, path: string, names: Names): string {
  const absolute = (to: string) => {
    if (/^(?:[a-z]+:|#)/i.test(to)) return to;
    const [file = '', fragment] = to.split('#');
    const page = pageOf(names, posix.join(posix.dirname(path), file));
    return fragment === undefined ? page : `${page}#${fragment}`;
  };
  return text
    .replaceAll(/(!\[[^\][]*\])\(([^()\s]+)\)/g, (_, shown: string, to: string) => {
      return `${shown}(${absolute(to).replace(`/blob/${names.tag}/`, `/raw/${names.tag}/`)})`;
    })
    .replaceAll(/\]\(([^()\s]+)\)/g, (_, to: string) => `](${absolute(to)})`);
}
