import { Session } from 'node:inspector/promises';

/** A function of src: `placement/decide.ts decide`. */
export type Hop = { readonly file: string; readonly name: string };

/** What a breakpoint of {@link recordCalls} writes to. */
const RECORD = '__recordedCalls';

/** Where a function begins in the text of a script; undefined: it is not in this script. A script is a source, or a bundle of several. */
function placeOf(
  url: string,
  text: string,
  { file, name }: Hop,
): { lineNumber: number; columnNumber: number } | undefined {
  const path = `src/${file}`;
  const marker = text.indexOf(`\n// ${path}\n`);
  if (marker < 0 && !url.endsWith(path)) return undefined;
  const begin = Math.max(marker, 0);
  const part = text.slice(begin);
  // The body begins after the parameters, which may be an object that is taken apart.
  const bodyOf = (start: string) => new RegExp(`${start}${name}\\d*\\([^;]*?\\) ?\\{`).exec(part);
  const found = bodyOf('\\bfunction\\*? ') ?? bodyOf('[{,;\\s]');
  if (found === null) return undefined;
  const before = text.slice(0, begin + found.index + found[0].length);
  return { lineNumber: before.split('\n').length - 1, columnNumber: before.length - before.lastIndexOf('\n') - 1 };
}

/**
 * Returns the calls of these functions during some work, in their order, and those that were not found in any script. V8 notes them: a
 * breakpoint whose condition writes the name down and is false.
 */
export async function recordCalls(hops: readonly Hop[], work: () => Promise<void>): Promise<string[]> {
  const session = new Session();
  session.connect();
  const scripts: { scriptId: string; url: string }[] = [];
  session.on('Debugger.scriptParsed', ({ params }) => void scripts.push(params));
  const calls: string[] = [];
  Object.assign(globalThis, { [RECORD]: calls });
  try {
    await session.post('Debugger.enable');
    const missing = new Set(hops);
    for (const { scriptId, url } of scripts) {
      if (!/\/(src|\.cache\/test)\//.test(url)) continue;
      const { scriptSource } = await session.post('Debugger.getScriptSource', { scriptId });
      for (const hop of hops) {
        const place = placeOf(url, scriptSource, hop);
        if (place === undefined) continue;
        missing.delete(hop);
        const condition = `${RECORD}.push(${JSON.stringify(`${hop.file} ${hop.name}`)}), false`;
        await session.post('Debugger.setBreakpoint', { location: { scriptId, ...place }, condition });
      }
    }
    if (missing.size > 0) throw new Error(`no such function: ${JSON.stringify([...missing])}`);
    await work();
  } finally {
    await session.post('Debugger.disable');
    session.disconnect();
    Reflect.deleteProperty(globalThis, RECORD);
  }
  return calls;
}
