import { type Node, parse } from './regexp-steps.ts';

/** A text that may make an expression slow: `pump` repeated, so that the whole has a given length. */
export type Pumped = { readonly prefix: string; readonly pump: string; readonly suffix: string };

/** Returns the text of about this length. */
export function textOf({ prefix, pump, suffix }: Pumped, length: number): string {
  return prefix + pump.repeat(Math.max(1, Math.floor(length / pump.length))) + suffix;
}

/** How a text that an expression accepts is made: how often it repeats what it need not, and which option it takes. */
type Way = { readonly times: number; readonly option: number };
const WAYS: readonly Way[] = [
  { times: 0, option: 0 },
  { times: 1, option: 0 },
  { times: 1, option: 1 },
];

/** More pairs would only take time: what they find, two characters of one of the groups find, too. */
const MOST_IN_PAIRS = 6;

/**
 * Returns texts to try on an expression: each of its loops is led to, and then meets, again and again, each kind of character that the
 * expression can tell from the others, pairs of them, and what its loops and its parts accept; and at the end something or nothing.
 */
export function pumpedFor(expression: RegExp): Pumped[] {
  const whole = parse(expression);
  const kinds = kindsOf(whole, expression.source);
  const [stranger = '\u0001'] = [...kinds]
    .sort((one, other) => one.accepted - other.accepted)
    .map(({ character }) => character);
  const characters = kinds.filter(({ accepted }) => accepted > 0).map(({ character }) => character);
  const few = characters.length > MOST_IN_PAIRS ? [] : characters;

  const prefixes = new Set(['']);
  const pumps = new Set([...characters, ...few.flatMap((one) => few.map((other) => one + other))]);

  /** Returns a text that the node accepts. */
  function accepted(node: Node, by: Way): string {
    switch (node.kind) {
      case 'character':
        return characters.find((character) => node.accepts(character.charCodeAt(0))) ?? '';
      case 'sequence':
        return node.items.map((item) => accepted(item, by)).join('');
      case 'choice':
        return [node.options[by.option % node.options.length] ?? node].map((option) => accepted(option, by)).join('');
      case 'repeat':
        return accepted(node.body, by).repeat(Math.max(node.min, Math.min(by.times, node.max)));
      case 'place':
      case 'look':
        return '';
      default:
        return node satisfies never;
    }
  }

  /** Adds what leads to the loops of a node, and what they and its parts accept. `before`: what leads to the node. */
  function collect(node: Node, before: string, by: Way): void {
    if (node.kind === 'sequence') {
      let text = '';
      for (const item of node.items) {
        collect(item, before + text, by);
        text += accepted(item, by);
        pumps.add(text);
      }
    } else if (node.kind === 'choice') {
      for (const option of node.options) {
        pumps.add(accepted(option, by));
        collect(option, before, by);
      }
    } else if (node.kind === 'repeat') {
      if (node.max === Number.POSITIVE_INFINITY) {
        prefixes.add(before);
        pumps.add(before);
      }
      pumps.add(accepted(node.body, by));
      collect(node.body, before, by);
    } else if (node.kind === 'look') collect(node.body, before, by);
  }

  for (const by of WAYS) collect(whole, '', by);
  pumps.delete('');
  return [...prefixes].flatMap((prefix) =>
    [...pumps].flatMap((pump) => ['', stranger].map((suffix) => ({ prefix, pump, suffix }))),
  );
}

/** Returns one character of each kind that the expression can tell from the others, and how many of its parts accept it. */
function kindsOf(whole: Node, source: string): { readonly character: string; readonly accepted: number }[] {
  const parts: ((code: number) => boolean)[] = [];
  function collect(node: Node): void {
    if (node.kind === 'character') parts.push(node.accepts);
    else if (node.kind === 'sequence') node.items.forEach(collect);
    else if (node.kind === 'choice') node.options.forEach(collect);
    else if (node.kind === 'repeat' || node.kind === 'look') collect(node.body);
  }
  collect(whole);
  const ascii = Array.from({ length: 128 }, (_, code) => String.fromCharCode(code));
  const byKind = new Map<string, { character: string; accepted: number }>();
  for (const character of [...'a0/.-_ \n', ...ascii, ...source, '\u00e9', '\u2028', '\uFFFD', '\ud800']) {
    const kind = parts.map((accepts) => (accepts(character.charCodeAt(0)) ? 1 : 0));
    const key = kind.join('');
    if (!byKind.has(key)) byKind.set(key, { character, accepted: kind.filter((one) => one === 1).length });
  }
  return [...byKind.values()];
}
