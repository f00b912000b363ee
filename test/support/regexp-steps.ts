/**
 * A matcher that backtracks as JavaScript's does and counts its steps, so that a test can tell a linear expression from a quadratic one
 * without a clock. It knows the syntax that src uses, and throws for any other.
 */
export type Node =
  | { readonly kind: 'character'; readonly accepts: (code: number) => boolean }
  | { readonly kind: 'sequence'; readonly items: readonly Node[] }
  | { readonly kind: 'choice'; readonly options: readonly Node[] }
  | { readonly kind: 'repeat'; readonly body: Node; readonly min: number; readonly max: number; readonly lazy: boolean }
  | { readonly kind: 'place'; readonly holds: (text: string, at: number) => boolean }
  | { readonly kind: 'look'; readonly body: Node; readonly negative: boolean; readonly behind: boolean };

type Fork = { readonly kind: 'fork'; readonly first: Step; readonly second: Step };
type Step =
  | (Extract<Node, { kind: 'character' | 'place' }> & { readonly next: Step })
  | (Omit<Extract<Node, { kind: 'look' }>, 'body'> & { readonly body: Step; readonly next: Step })
  | Fork
  | { readonly kind: 'end' };

const END: Step = { kind: 'end' };

/** Parses an expression. Throws for syntax that it does not know. */
export function parse({ source, flags }: RegExp): Node {
  const isMultiline = flags.includes('m');
  const own = flags.replace(/[^isu]/g, '');
  let at = 0;

  function unknown(): Error {
    return new Error(`teach test/support/regexp-steps.ts this: /${source}/${flags} at ${at}`);
  }

  function choice(): Node {
    const options = [sequence()];
    while (source[at] === '|') {
      at += 1;
      options.push(sequence());
    }
    const [only] = options;
    return options.length === 1 && only !== undefined ? only : { kind: 'choice', options };
  }

  function sequence(): Node {
    const items: Node[] = [];
    while (at < source.length && source[at] !== '|' && source[at] !== ')') items.push(repeated(atom()));
    return { kind: 'sequence', items };
  }

  function take(pattern: RegExp): string | undefined {
    const [found] = new RegExp(`^(?:${pattern.source})`, 'su').exec(source.slice(at)) ?? [];
    if (found !== undefined) at += found.length;
    return found;
  }

  function repeated(body: Node): Node {
    const mark = take(/[*+?]|\{\d+(?:,\d*)?\}/);
    if (mark === undefined) return body;
    const lazy = take(/\?/) !== undefined;
    const [low = '', high = low] = mark.slice(1, -1).split(',');
    const [min, max] =
      mark === '*'
        ? [0, Infinity]
        : mark === '+'
          ? [1, Infinity]
          : mark === '?'
            ? [0, 1]
            : [Number(low), high === '' ? Infinity : Number(high)];
    if (max === Infinity && isNullable(body)) throw unknown();
    return { kind: 'repeat', body, min, max, lazy };
  }

  function atom(): Node {
    const group = take(/\((?:\?(?:<?[=!]|:|<\w+>))?/);
    if (group !== undefined) {
      const body = choice();
      if (take(/\)/) === undefined) throw unknown();
      const look = /^\(\?(<?)([=!])/.exec(group);
      if (look === null) return body;
      const behind = look[1] === '<';
      if (behind && !isOneCharacter(body)) throw unknown();
      return { kind: 'look', body, negative: look[2] === '!', behind };
    }
    if (take(/\^/)) return { kind: 'place', holds: (text, i) => i === 0 || (isMultiline && isLineEnd(text, i - 1)) };
    if (take(/\$/))
      return { kind: 'place', holds: (text, i) => i === text.length || (isMultiline && isLineEnd(text, i)) };
    const boundary = take(/\\[bB]/);
    if (boundary !== undefined) {
      return { kind: 'place', holds: (text, i) => (isWord(text, i - 1) !== isWord(text, i)) === (boundary === '\\b') };
    }
    const raw = take(
      /\[(?:\\.|[^\]\\])*\]|\\(?:u\{[^}]*\}|u[\da-fA-F]{4}|x[\da-fA-F]{2}|[pP]\{[^}]*\}|[^1-9kcux])|[^()[\]*+?\\|]/,
    );
    if (raw === undefined) throw unknown();
    const pattern = new RegExp(`^(?:${raw})$`, own);
    // By the character's code: 0 unknown, 1 accepted, 2 not.
    const known = new Uint8Array(65_536);
    return {
      kind: 'character',
      accepts: (code) => {
        if (known[code] === 0) known[code] = pattern.test(String.fromCharCode(code)) ? 1 : 2;
        return known[code] === 1;
      },
    };
  }

  const whole = choice();
  if (at < source.length) throw unknown();
  return whole;
}

function isLineEnd(text: string, at: number): boolean {
  return '\n\r\u2028\u2029'.includes(text.charAt(at) || 'none');
}

function isWord(text: string, at: number): boolean {
  return /\w/.test(text.charAt(at));
}

function isOneCharacter(node: Node): boolean {
  return (
    node.kind === 'character' ||
    (node.kind === 'sequence' && node.items.length === 1 && node.items.every(isOneCharacter))
  );
}

function isNullable(node: Node): boolean {
  if (node.kind === 'sequence') return node.items.every(isNullable);
  if (node.kind === 'choice') return node.options.some(isNullable);
  if (node.kind === 'repeat') return node.min === 0 || isNullable(node.body);
  return node.kind !== 'character';
}

function compile(node: Node, next: Step): Step {
  switch (node.kind) {
    case 'character':
    case 'place':
      return { ...node, next };
    case 'look':
      return { ...node, body: compile(node.body, END), next };
    case 'sequence':
      return node.items.reduceRight((after, item) => compile(item, after), next);
    case 'choice':
      return node.options
        .map((option) => compile(option, next))
        .reduceRight((second, first) => ({ kind: 'fork', first, second }));
    case 'repeat': {
      const { body, min, max, lazy } = node;
      const fork = (first: Step): Fork =>
        lazy ? { kind: 'fork', first: next, second: first } : { kind: 'fork', first, second: next };
      let start = next;
      if (max === Number.POSITIVE_INFINITY) {
        const loop = fork(next);
        Object.assign(loop, fork(compile(body, loop)));
        start = loop;
      } else for (let count = min; count < max; count += 1) start = fork(compile(body, start));
      for (let count = 0; count < min; count += 1) start = compile(body, start);
      return start;
    }
    default:
      return node satisfies never;
  }
}

/**
 * Returns how many steps it takes to find the first match of an expression, or with the flag `g` all of them: a step looks at one
 * character or chooses one way. Gives up after `most`, and then returns more than that.
 */
export function createStepCounter(expression: RegExp): (text: string, most: number) => number {
  const { flags } = expression;
  const program = compile(parse(expression), END);
  const isOnce = flags.includes('y');

  return (text, most) => {
    let steps = 0;

    /** Returns where the match that begins here ends; undefined if there is none. */
    function match(start: Step, from: number): number | undefined {
      const ways: Step[] = [start];
      const places: number[] = [from];
      for (
        let step = ways.pop(), at = places.pop();
        step !== undefined && at !== undefined;
        step = ways.pop(), at = places.pop()
      ) {
        for (let now: Step | undefined = step; now !== undefined; ) {
          steps += 1;
          if (steps > most) return undefined;
          if (now.kind === 'end') return at;
          if (now.kind === 'fork') {
            ways.push(now.second);
            places.push(at);
            now = now.first;
          } else if (now.kind === 'character') {
            now = at < text.length && now.accepts(text.charCodeAt(at)) ? now.next : undefined;
            at += 1;
          } else if (now.kind === 'place') now = now.holds(text, at) ? now.next : undefined;
          else {
            const begin: number = now.behind ? at - 1 : at;
            const isFound: boolean = begin >= 0 && match(now.body, begin) !== undefined;
            now = isFound === now.negative ? undefined : now.next;
          }
        }
      }
      return undefined;
    }

    for (let from = 0; from <= text.length && steps <= most; ) {
      const end = match(program, from);
      if (isOnce || (end !== undefined && !flags.includes('g'))) break;
      from = end === undefined || end === from ? from + 1 : end;
    }
    return steps;
  };
}
