/** Returns the first `most` characters of a text that may be huge. The result is a copy: a slice would keep the whole text in memory. */
export function cut(text: string, most: number): string {
  return text.length <= most ? text : Buffer.from(text.slice(0, most)).toString();
}

/**
 * How many characters of a stranger's text the program looks at. Characters and not bytes, because the number of characters of a
 * string is known without reading it; they are at most 3 KiB of UTF-8.
 */
const LONGEST = 1024;

/** Stands for what was left out. Not a space, so that no word or path seems to begin after it. */
const LEFT_OUT = '…';

const HALF = (LONGEST - LEFT_OUT.length) / 2;

/**
 * Returns what the program looks at of a free text that a stranger wrote: the message of a container's status, the note of an Event,
 * an error of the API server, a line of metrics. Anybody can make such a text as long as a request may be, so nothing but this
 * function sees the whole of it.
 *
 * The beginning and the end stay: the API server names the object and the policy first, but a runtime quotes the command, of any
 * length, before it says "exec format error". The result is a copy, because a slice would keep the whole text in memory.
 */
export function strangersText(text: string): string {
  if (text.length <= LONGEST) return text;
  return Buffer.from(`${text.slice(0, Math.ceil(HALF))}${LEFT_OUT}${text.slice(-Math.floor(HALF))}`).toString();
}
