/**
 * Makes text from outside safe for a log line, an Event, a metric label or a terminal. Control, format and separator
 * characters and unpaired surrogates are escaped as `\\u…`. A text longer than `maxBytes` of UTF-8 is cut and ends in
 * `…`.
 */
export function printable(text: string, maxBytes = 200): string {
  // Cut before escaping: the text may be megabytes long, and escapes only make it longer.
  const short = text.length > maxBytes ? text.slice(0, maxBytes) : text;
  const escaped = short.replace(
    /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`,
  );
  if (short === text && Buffer.byteLength(escaped) <= maxBytes) return escaped;
  const cut = Buffer.from(escaped)
    .subarray(0, maxBytes - 3)
    .toString('utf8')
    .replace(/\uFFFD+$/, '');
  return `${cut}…`;
}
