/**
 * The URL that a text names, or undefined. In place of `URL.canParse`, which, once it is optimised, takes some texts with
 * characters from U+0080 to U+00FF for URLs that are none (Node.js 20); and headers are made of those.
 */
export function parseUrl(text: string, base?: URL): URL | undefined {
  try {
    return new URL(text, base);
  } catch {
    return undefined;
  }
}
