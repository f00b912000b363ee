/** The first characters of a text that may be huge. What is left keeps nothing of the rest in memory, as a slice would. */
export function cut(text: string, most: number): string {
  return text.length <= most ? text : Buffer.from(text.slice(0, most)).toString();
}
