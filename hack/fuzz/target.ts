import type fc from 'fast-check';

/** A parser under test, which reads text from outside. */
export type Target = {
  readonly name: string;
  /** Valid inputs. */
  readonly valid: fc.Arbitrary<string>;
  /** Pieces of its grammar, used to mutate inputs, to build them, and to repeat in growing ones. */
  readonly pieces: readonly string[];
  /** The texts before the repeated pieces in growing inputs; the empty text is always used. */
  readonly openings?: readonly string[];
  /**
   * Parses, and checks the result.
   *
   * @returns whether the input was accepted
   * @throws what the parser may not throw, or {@link Violation}
   */
  readonly run: (text: string) => boolean;
};

/** A parser returned something that it never may. */
export class Violation extends Error {
  override readonly name = 'Violation';
}

/** @throws Violation */
export function must(condition: boolean, rule: string): asserts condition {
  if (!condition) throw new Violation(rule);
}

/** Whether a text may be shown: bounded, and nothing in it moves a cursor, is hidden, or is half a character. */
export function isShowable(text: string, most = 1000): boolean {
  return text.length <= most && !/[\p{C}\u2028\u2029]/u.test(text);
}

/**
 * Returns the parser's result, or undefined if it refuses the input.
 *
 * @param refusals the exact classes of allowed refusals, without derived ones
 * @throws Violation for a message that may not be shown; any other error of the parser
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
