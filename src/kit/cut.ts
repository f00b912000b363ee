/**
 * Returns the first `most` characters of a text that may be huge. The result is a copy: a slice would keep the whole
 * text in memory.
 */
export function cut(text: string, most: number): string {
  return text.length <= most ? text : Buffer.from(text.slice(0, most)).toString();
}
