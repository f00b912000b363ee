import { printableAscii } from '../../kit/printable.ts';
import { isTable, type Table, wrong } from './toml-table.ts';

/** Returns the repository of an image at a host, as the host's rules say. */
export type Rewrite = (repository: string) => string;

/**
 * The most ways to go on that one pattern may leave open: repetitions, what may be absent, and alternatives. A search in every place is one
 * more. The author of a pod chooses the name that it is matched with, up to 255 characters.
 */
const MOST_CHOICES = 3;

/**
 * Reads the `rewrite` table of a host, which the containerd of k3s and RKE2 knows: regular expressions of Go, and what replaces them. The
 * first in the file that changes the repository counts.
 *
 * @throws Error naming the pattern and what is wrong with it
 */
export function readRewrite({ at, fields }: Table): Rewrite | undefined {
  const table = fields.get('rewrite');
  if (table === undefined) return undefined;
  if (!isTable(table)) throw wrong(`${at}rewrite`, table, 'a table of patterns and their replacements');
  const rules = Object.entries(table).map(([pattern, to]): Rewrite => {
    const field = `${at}rewrite."${printableAscii(pattern, 60)}"`;
    if (typeof to !== 'string') throw wrong(field, to, 'a text');
    const expression = compiled(pattern, field);
    return (repository) => {
      let end = -1;
      return repository.replace(expression, (...found: unknown[]) => {
        const [whole, start] = [String(found[0]), Number(found.at(-2))];
        // Go leaves out an empty match at the end of the one before.
        if (whole === '' && start === end) return '';
        end = start + whole.length;
        return to.replaceAll(/\$(?:\$|(\w+)|\{(\w+)\})/g, (all, name = '', braced = name) =>
          all === '$$' ? '$' : String(found.slice(0, -2)[Number(braced)] ?? ''),
        );
      });
    };
  });
  return (repository) => rules.map((rule) => rule(repository)).find((after) => after !== repository) ?? repository;
}

function compiled(pattern: string, field: string): RegExp {
  const shape = pattern.replaceAll(/\\.|\[\^?\]?[^\][]*\]/g, 'x');
  const choices = shape.match(/[*+|]|(?<!\()\?|\{\d*,/g)?.length ?? 0;
  const isAnchored = shape.startsWith('^') && !shape.includes('|');
  if (/\\\d|\(\?[^:]|\)[*+{]/.test(pattern) || choices + (isAnchored ? 0 : 1) > MOST_CHOICES) {
    throw new Error(
      `${field}: expected a pattern from ^ on with at most ${MOST_CHOICES} of * + ? { |, none of * + { after a group, and no look-around`,
    );
  }
  try {
    return new RegExp(pattern, 'g');
  } catch {
    throw new Error(`${field}: not a regular expression`);
  }
}
