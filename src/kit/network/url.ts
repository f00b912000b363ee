/**
 * Parses a URL; returns undefined if the text is not one. Used instead of `URL.canParse`, which in Node.js 20, once it
 * is optimised, accepts some invalid texts with characters from U+0080 to U+00FF; headers can contain such texts.
 */
export function parseUrl(text: string, base?: URL): URL | undefined {
  try {
    return new URL(text, base);
  } catch {
    return undefined;
  }
}
