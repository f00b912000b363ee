/** A regular expression in a source file. */
export type Literal = { readonly line: number; readonly expression: RegExp };

/** What stands before a regular expression and not before a division. */
const BEFORE = /(?:[(,=:[!&|?{};+*%~^<>-]|\b(?:return|typeof|case|in|of|void|throw|await|else|do))(?:\s|\/\/[^\n]*\n)*/;
const LITERAL = /\/(?![*/])((?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\]\n])+)\/([a-z]*)/;
const PLACE = new RegExp(`(?<=${BEFORE.source})(?=${LITERAL.source})`, 'g');

/** Returns the literals of a file in TypeScript, and what looks like one in its strings and comments. A `]` outside of a class has to be escaped. */
export function literalsIn(text: string): Literal[] {
  return [...text.matchAll(PLACE)].flatMap(({ index, 1: source = '', 2: flags = '' }) => {
    try {
      return [{ line: text.slice(0, index).split('\n').length, expression: new RegExp(source, flags) }];
    } catch {
      return [];
    }
  });
}
