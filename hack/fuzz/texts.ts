import fc from 'fast-check';
import type { Target } from './target.ts';

/** Texts that confuse parsers, terminals and prototypes. */
const NASTY = [
  '\0',
  '\n',
  '\r\n',
  '\t',
  ' ',
  '\u001b[2J',
  '\u007f',
  '\u0085',
  '\u2028',
  '\u202e',
  '\ufeff',
  // Unpaired surrogates, and letters that become others in lower case.
  '\ud800',
  '\udfff',
  '\u0130',
  '\u212a',
  'é',
  '😀',
  '__proto__',
  'constructor',
  'toString',
  '%00',
  '../',
  '\\',
  '"',
  "'",
  '-1',
  '1e999',
  '99999999999999999999',
  'x'.repeat(300),
];
/** Characters; every parser accepts fewer, or is linear. */
const LONGEST = 100_000;

type Edit = { readonly at: number; readonly length: number; readonly piece: string; readonly times: number };

/** Returns ways to make inputs for a target, by name. */
export function inputsFor({ valid, pieces }: Target): Readonly<Record<string, fc.Arbitrary<string>>> {
  const piece = fc.oneof(
    { arbitrary: fc.constantFrom(...pieces), weight: 3 },
    { arbitrary: fc.constantFrom(...NASTY), weight: 2 },
    fc.string({ unit: 'binary', maxLength: 3 }),
  );
  const times = fc.oneof({ arbitrary: fc.constant(1), weight: 6 }, fc.integer({ min: 0, max: 5000 }));
  const edit: fc.Arbitrary<Edit> = fc.record({ at: fc.nat(1000), length: fc.nat(20), piece, times });
  return {
    valid,
    mutated: fc.tuple(valid, fc.array(edit, { minLength: 1, maxLength: 4 })).map(([text, edits]) => apply(text, edits)),
    spliced: fc
      .tuple(valid, valid, fc.nat(1000), fc.nat(1000))
      .map(([a, b, to, from]) => a.slice(0, place(a, to)) + b.slice(place(b, from))),
    pieces: fc.array(fc.tuple(piece, times), { maxLength: 30 }).map((parts) =>
      parts
        .map(([text, count]) => text.repeat(count))
        .join('')
        .slice(0, LONGEST),
    ),
    raw: fc.string({ unit: 'binary', maxLength: 400 }),
    // Any code unit, including unpaired surrogates.
    units: fc.array(fc.nat(0xffff), { maxLength: 200 }).map((units) => String.fromCharCode(...units)),
    bytes: fc.uint8Array({ maxLength: 400 }).map((bytes) => Buffer.from(bytes).toString('latin1')),
  };
}

/** Inserts text at each place, and removes or repeats the text there. */
function apply(text: string, edits: readonly Edit[]): string {
  return edits.reduce((current, { at, length, piece, times }) => {
    const start = place(current, at);
    const middle = times === 1 ? '' : current.slice(start, start + length).repeat(times);
    return (current.slice(0, start) + piece + middle + current.slice(start + length)).slice(0, LONGEST);
  }, text);
}

/** Returns the index of a place in thousandths. */
function place(text: string, thousandths: number): number {
  return Math.floor((text.length * thousandths) / 1000);
}

/** Returns a text that can be pasted into a program: only printable ASCII, and long ones cut. */
export function escaped(text: string): string {
  const quoted = JSON.stringify(text).replace(
    /[^\x20-\x7e]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return quoted.length > 2000 ? `${quoted.slice(0, 2000)}… (${text.length} characters)` : quoted;
}
