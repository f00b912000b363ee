/**
 * Text from outside, fit for a log line, an Event or a table: control, format and separator characters and halves of surrogate
 * pairs are escaped as `\u…`, and what is longer than `max` bytes of UTF-8 is cut and ends in `…`.
 */
export function printable(text: string, max: number): string {
  // Cut before escaping: the input may be megabytes. Each character is at least one byte, so one more is left to cut.
  const escaped = text
    .slice(0, max + 1)
    .replace(
      /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu,
      (character) => `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`,
    );
  if (Buffer.byteLength(escaped) <= max) return escaped;
  const cut = Buffer.from(escaped)
    .subarray(0, max - 3)
    .toString('utf8')
    .replace(/\uFFFD{1,3}$/, '');
  return `${cut}…`;
}

/**
 * The same for what a stranger chose, as a registry does: everything but printable ASCII is escaped as `\u{…}`, so that no letter
 * looks like another one, and what is longer than `max` characters is cut and ends in `...`.
 */
export function printableAscii(text: string, max = 200): string {
  // Cut before escaping: the input may be megabytes, and an escape only makes it longer.
  const cut = text.length > max ? text.slice(0, max) : text;
  const escaped = cut.replace(/[^\x20-\x7e]/gu, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
  const limited = escaped.length > max ? escaped.slice(0, max) : escaped;
  return text.length > max || escaped.length > max ? `${limited}...` : limited;
}

/**
 * Returns a text whose control, format and separator characters are escaped as `\\u…`; line feeds stay. `backslash`: what stands for the
 * one of an escape.
 */
export function escaped(text: string, backslash = '\\'): string {
  return text.replace(/(?!\n)[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, (character) =>
    Array.from({ length: character.length }, (_, index) => character.charCodeAt(index))
      .map((unit) => `${backslash}u${unit.toString(16).padStart(4, '0')}`)
      .join(''),
  );
}
