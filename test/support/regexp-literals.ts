/** A regular expression in a source file. */
export type Literal = { readonly line: number; readonly expression: RegExp };

/** What stands before a regular expression and not before a division. */
const BEFORE = /(?:^|[(,=:[!&|?{};+*%~^<>-]|\b(?:return|typeof|case|in|of|void|throw|await|else|do))$/;

/** Returns the literals of regular expressions of a file in TypeScript, as the formatter writes it. */
export function literalsIn(text: string): Literal[] {
  const found: Literal[] = [];
  /** The text without comments, strings and white space around it, up to here; only its end is needed. */
  let code = '';
  let line = 1;
  /** The depths of braces at which a template goes on. */
  const templates: number[] = [];
  let depth = 0;
  let at = 0;

  function take(pattern: RegExp): string | undefined {
    const sticky = new RegExp(pattern.source, 'sy');
    sticky.lastIndex = at;
    const taken = sticky.exec(text)?.[0];
    if (taken === undefined || taken === '') return undefined;
    at += taken.length;
    line += taken.split('\n').length - 1;
    return taken;
  }

  /** Reads a template from its beginning, or from the end of a value in it, to its end or the next value. */
  function readTemplate(): void {
    take(/(?:\\.|\$(?!\{)|[^\\`$])*/);
    if (take(/`/) === undefined) {
      take(/\$\{/);
      templates.push(depth);
      code = '(';
    } else code = 'x';
  }

  while (at < text.length) {
    if (take(/\s+|\/\/[^\n]*|\/\*.*?\*\//) !== undefined) continue;
    const quoted = take(/'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"/);
    if (quoted !== undefined) code = 'x';
    else if (take(/`/) !== undefined) readTemplate();
    else if (text[at] === '}' && templates.at(-1) === depth) {
      at += 1;
      templates.pop();
      readTemplate();
    } else if (text[at] === '/' && BEFORE.test(code)) {
      const begin = line;
      const literal = take(/\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\/[a-z]*/) ?? '';
      const end = literal.lastIndexOf('/');
      found.push({ line: begin, expression: new RegExp(literal.slice(1, end), literal.slice(end + 1)) });
      code = 'x';
    } else {
      const word = take(/[\w$]+/) ?? take(/./) ?? '';
      if (word === '{') depth += 1;
      if (word === '}') depth -= 1;
      code = word;
    }
  }
  return found;
}
