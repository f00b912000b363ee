import * as z from 'zod';
import { DURATION, parseDuration } from '../kit/duration.ts';
import { parseSelector } from '../kit/label-syntax.ts';
import { ARCHITECTURE_EXPECTED, ARCHITECTURES, didYouMean } from '../kit/platform.ts';
import { shown } from './shown-problems.ts';

/**
 * Attaches the texts for `--help`, the reference and error lines to the schema of a key. `expected`: what is allowed, as the text that
 * follows "expected". `pattern`: for the JSON Schema, if the rule itself is code.
 */
export function leaf<T extends z.ZodType>(schema: T, description: string, expected: string, pattern?: RegExp): T {
  return schema.meta({ description, expected, ...(pattern ? { pattern: pattern.source } : {}) });
}

/** Makes a key of a policy from the schema of a global key. In a policy the field may be absent; then the global value applies. */
export function inPolicy<T extends z.ZodType>(part: z.ZodDefault<T>) {
  return part
    .unwrap()
    .optional()
    .meta(part.meta() ?? {});
}

/** One of a few words. */
export function choice<const T extends readonly [string, ...string[]]>(
  values: T,
  fallback: T[number],
  description: string,
) {
  return leaf(z.enum(values).default(fallback), description, `one of ${values.join(', ')}`);
}

/** `true` or `false`. */
export function flag(fallback: boolean, description: string) {
  return leaf(z.boolean().default(fallback), description, 'true or false');
}

/** A whole number between two bounds. */
export function whole(least: number, most: number, fallback: number, description: string) {
  const schema = z.int().min(least).max(most).default(fallback);
  return leaf(schema, description, `a whole number from ${least} to ${most}`);
}

/** A duration between two bounds, kept as its text. */
export function duration(least: string, most: string, fallback: string, description: string) {
  const [low, high] = [parseDuration(least) ?? 0, parseDuration(most) ?? 0];
  const schema = z
    .string()
    .refine((text) => {
      const ms = parseDuration(text);
      return ms !== undefined && ms >= low && ms <= high;
    })
    .default(fallback);
  return leaf(schema, description, `a duration from ${least} to ${most}, such as 30s or 10m`, DURATION);
}

/** A label selector. */
export function selector(description: string) {
  const schema = z
    .string()
    .refine((text) => {
      try {
        parseSelector(text);
        return true;
      } catch {
        return false;
      }
    })
    .default('');
  return leaf(
    schema,
    description,
    'a label selector, such as key=value,key!=value,key in (a,b),!key, or an empty text',
  );
}

/** An architecture's name in the spelling that nodes report. */
export const architecture = z
  .string()
  .refine((text) => ARCHITECTURES.includes(text), {
    error: ({ input }) =>
      `got ${shown(input)}, expected ${ARCHITECTURE_EXPECTED}${typeof input === 'string' ? didYouMean(input) : ''}`,
  })
  .meta({ enum: ARCHITECTURES });

/** A list of architectures. */
export function architectures(description: string) {
  return leaf(z.array(architecture).default([]), description, 'a list of architectures, such as amd64,arm64');
}

/** A list of texts, each checked by a pattern. */
export function texts(pattern: RegExp, fallback: string[], description: string, expected: string) {
  return leaf(z.array(z.string().regex(pattern)).default(fallback), description, expected);
}

/** The form of a {@link bindAddress}; its port has a further limit. */
export const ADDRESS = /^(?:\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]*):[0-9]{1,5}$/;

/** `host:port` or `:port`. */
export const bindAddress = z.string().refine(isBindAddress);

/** `host:port`, `:port`, or empty for no address. */
export function listenAddress(fallback: string, description: string) {
  const schema = z
    .string()
    .refine((text) => text === '' || isBindAddress(text))
    .default(fallback);
  return leaf(schema, description, 'host:port or :port; empty for none', new RegExp(`^$|${ADDRESS.source}`));
}

function isBindAddress(text: string): boolean {
  return ADDRESS.test(text) && Number(text.slice(text.lastIndexOf(':') + 1)) <= 65_535;
}
