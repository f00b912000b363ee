import { readdirSync, readFileSync } from 'node:fs';
import { sep } from 'node:path';
import { expect } from 'chai';
import { pumpedFor, textOf } from './support/pumped.ts';
import { literalsIn } from './support/regexp-literals.ts';
import { createStepCounter } from './support/regexp-steps.ts';

const SOURCES = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));

/** Of the texts of this length, those that take most steps are tried again when they are long. */
const SHORT = 256;
const TRIED_AGAIN = 2;
const LONG = [1024, 64 * 1024];
/** For n times the text a linear expression needs about n times the steps, a quadratic one n times n. */
const MARGIN = 3;

/** Returns a text, and how it is repeated, that an expression needs more than linear time for; undefined if there is none. */
function slowText(expression: RegExp): string | undefined {
  const stepsFor = createStepCounter(expression);
  const worst = pumpedFor(expression)
    .map((pumped) => ({ pumped, steps: stepsFor(textOf(pumped, SHORT), Number.POSITIVE_INFINITY) }))
    .sort((one, other) => other.steps - one.steps)
    .slice(0, TRIED_AGAIN);
  const slow = worst.find(({ pumped, steps }) =>
    LONG.some((length) => {
      const most = ((steps * length) / SHORT) * MARGIN;
      return stepsFor(textOf(pumped, length), most) > most;
    }),
  );
  return slow && JSON.stringify(slow.pumped);
}

function textIn(name: string): string {
  return readFileSync(`src/${name}`, 'utf8');
}

/** Returns the expressions that files build of parts while they are loaded. */
async function builtBy(names: readonly string[]): Promise<RegExp[]> {
  const built: RegExp[] = [];
  await import(new URL('support/load.mjs', import.meta.url).href);
  const Native = RegExp;
  globalThis.RegExp = new Proxy(Native, {
    construct(target, parts, called) {
      const made: unknown = Reflect.construct(target, parts, called);
      if (!(made instanceof Native)) throw new TypeError('no regular expression');
      built.push(made);
      return made;
    },
  });
  try {
    // Loaded again, if another test has loaded them.
    for (const name of names) await import(new URL(`../src/${name}?built`, import.meta.url).href);
  } finally {
    globalThis.RegExp = Native;
  }
  return [...new Map(built.map((each) => [String(each), each])).values()];
}

describe('the time of regular expressions is linear for every text, however long:', () => {
  for (const folder of new Set(SOURCES.map((name) => name.split(sep)[0] ?? ''))) {
    it(`those in src/${folder}`, () => {
      const files = SOURCES.filter((name) => name.split(sep)[0] === folder);
      const slow = files.flatMap((name) =>
        literalsIn(textIn(name)).flatMap(({ line, expression }) => {
          const text = slowText(expression);
          return text === undefined ? [] : [`src/${name}:${line} ${expression}: ${text}`];
        }),
      );
      expect(slow).to.deep.equal([]);
    });
  }

  it('those that are built of parts, all when their file is loaded', async () => {
    const files = SOURCES.filter((name) => textIn(name).includes('new RegExp('));
    const places = files.flatMap((name) => textIn(name).match(/new RegExp\(/g) ?? []);
    const built = await builtBy(files);
    expect(built).to.have.length.at.least(places.length);
    const slow = built.flatMap((expression) => slowText(expression) ?? []);
    expect(slow).to.deep.equal([]);
  });

  const quadratic = [/\s+$/, /(\/[^\s:]*): exec format error/i, /"[^"\\]*(?:\\.[^"\\]*)*"/g, /^(?:a|b.*c.*d)/];
  for (const expression of quadratic) {
    it(`${expression} would be found out`, () => expect(slowText(expression)).to.be.a('string'));
  }
});
