/** CHANGELOG.md: a section for each version (`## 0.2.0 (2026-11-23)`), with parts (`### Security`) of bullets. */

/** The text of a version. */
export type Section = {
  readonly version: string;
  /** As written, such as `2026-11-23`. */
  readonly date: string | undefined;
  /** Without the heading. */
  readonly text: string;
  readonly parts: readonly Part[];
};

export type Part = {
  /** Undefined: what stands before the first heading. */
  readonly title: string | undefined;
  readonly text: string;
  /** The top-level bullets, each on one line. */
  readonly bullets: readonly string[];
};

/** The part with the steps of an update, which release notes begin with. */
export const STEPS = 'Before you update';
/** The part with the few changes that most readers want to know. */
export const HIGHLIGHTS = 'In short';
/** Its changes are security updates. */
export const SECURITY = 'Security';

/** A change as Artifact Hub shows it. */
export type Change = {
  readonly kind: 'added' | 'changed' | 'deprecated' | 'removed' | 'fixed' | 'security';
  readonly description: string;
};

/** Of a part without highlights, at most this many changes are shown. */
const MOST_CHANGES = 20;

/** Returns the section of a version, or undefined. `Unreleased` is a version, too. */
export function sectionOf(changelog: string, version: string): Section | undefined {
  const lines = changelog.split('\n');
  const start = lines.findIndex((line) => headingOf(line)?.version === version);
  if (start === -1) return undefined;
  const length = lines
    .slice(start + 1)
    .findIndex((line) => headingOf(line) !== undefined || /^\[[^\]]+\]: /.test(line));
  const text = lines
    .slice(start + 1, length === -1 ? undefined : start + 1 + length)
    .join('\n')
    .trim();
  return { version, date: headingOf(lines[start] ?? '')?.date, text, parts: partsOf(text) };
}

/** Returns a few changes for people who choose: the highlights, or else the bullets that begin in bold letters. */
export function changesOf({ parts }: Section): Change[] {
  const highlights = parts.find(({ title }) => title === HIGHLIGHTS)?.bullets ?? [];
  if (highlights.length > 0) return highlights.map((bullet) => ({ kind: kindOf(bullet), description: plain(bullet) }));
  return parts
    .filter(({ title }) => title !== STEPS)
    .flatMap(({ title, bullets }) =>
      bullets
        .filter((bullet) => bullet.startsWith('**'))
        .map((bullet) => ({
          kind: title === SECURITY ? 'security' : kindOf(bullet),
          description: firstSentence(plain(bullet)),
        })),
    )
    .slice(0, MOST_CHANGES);
}

/** The kind by the first word of a bullet. */
function kindOf(bullet: string): Change['kind'] {
  const word = /^\W*(\w+)/.exec(bullet)?.[1]?.toLowerCase();
  switch (word) {
    case 'new':
    case 'added':
      return 'added';
    case 'fixed':
      return 'fixed';
    case 'removed':
      return 'removed';
    case 'deprecated':
      return 'deprecated';
    case 'security':
      return 'security';
    default:
      return 'changed';
  }
}

/** Without Markdown. */
function plain(bullet: string): string {
  return bullet.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll(/\*\*|`/g, '');
}

const firstSentence = (text: string): string => /^.*?[.:](?=\s|$)/.exec(text)?.[0].replace(/:$/, '.') ?? text;

function headingOf(line: string): { readonly version: string; readonly date: string | undefined } | undefined {
  const found = /^## \[?([^\s\]]+)\]?(?: \((.+)\))?$/.exec(line);
  return found?.[1] === undefined ? undefined : { version: found[1], date: found[2] };
}

function partsOf(text: string): Part[] {
  const [before = '', ...parts] = `\n${text}`.split(/\n### /);
  const titled = parts.map((part) => {
    const [title = '', ...lines] = part.split('\n');
    return partOf(title.trim(), lines.join('\n'));
  });
  return before.trim() === '' ? titled : [partOf(undefined, before), ...titled];
}

function partOf(title: string | undefined, text: string): Part {
  const bullets = `\n${text}`
    .split(/\n- /)
    .slice(1)
    .map((bullet) => (bullet.split(/\n(?=\S)|\n\n/)[0] ?? '').replaceAll(/\s*\n\s*/g, ' ').trim());
  return { title, text: text.trim(), bullets };
}
