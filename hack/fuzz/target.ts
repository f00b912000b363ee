import type fc from 'fast-check';

/** A parser under test, which reads text from outside. */
export type Target = {
  readonly name: string;
  /** Inputs that it takes. */
  readonly valid: fc.Arbitrary<string>;
  /** Pieces of its grammar: what inputs are mutated with, joined of, and what is repeated in growing ones. */
  readonly pieces: readonly string[];
  /** What the pieces are repeated after, in growing inputs; the empty text always is. */
  readonly openings?: readonly string[];
  /**
   * Parses, and checks what comes of it.
   *
   * @returns whether the input was taken
   * @throws what the parser may not throw, or {@link Violation}
   */
  readonly run: (text: string) => boolean;
};

/** A parser gave something that it never may. */
export class Violation extends Error {
  override readonly name = 'Violation';
}

/** @throws Violation */
export function must(condition: boolean, rule: string): asserts condition {
  if (!condition) throw new Violation(rule);
}

/** Whether a text may be shown: bounded, and nothing in it moves a cursor, hides, or is half a character. */
export function isShowable(text: string, most = 1000): boolean {
  return text.length <= most && !/[\p{C}\u2028\u2029]/u.test(text);
}

/**
 * What a parser returns, or undefined where it refuses.
 *
 * @param refusals the classes that a refusal may have; not those derived from them
 * @throws Violation for a message that may not be shown; whatever else the parser throws
 */
export function refusing<T>(refusals: readonly (new (...args: never[]) => Error)[], parse: () => T): T | undefined {
  try {
    return parse();
  } catch (error) {
    if (!(error instanceof Error) || !refusals.some((refusal) => error.constructor === refusal)) throw error;
    must(isShowable(error.message), `a message can be shown: ${JSON.stringify(error.message.slice(0, 300))}`);
    return undefined;
  }
}
