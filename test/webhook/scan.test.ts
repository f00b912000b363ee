import { expect } from 'chai';
import { createScanner, RequestError } from '../../src/webhook/body.ts';

/** Scans a body in chunks of this size. */
function scanned(text: string, size = text.length): string {
  const scan = createScanner({ tokens: 5, depth: 3 });
  const bytes = Buffer.from(text);
  try {
    for (let at = 0; at < bytes.length; at += size) scan(bytes.subarray(at, at + size));
    return 'passes';
  } catch (error) {
    if (error instanceof RequestError) return `${error.status} ${error.message}`;
    throw error;
  }
}

describe('the bytes of a body', () => {
  const rows: [given: string, text: string, expected: RegExp][] = [
    ['an object', '{"a":1}', /^passes$/],
    ['nothing', '', /^passes$/],
    ['a list', '[]', /^400 .* JSON object/],
    ['a text', '"{}"', /^400/],
    ['space before the object', ' {}', /^400/],
    ['as many values as there may be', '{"a":[1,2,3,4]}', /^passes$/],
    ['one more', '{"a":[1,2,3,4,5]}', /^413 .* more than 5 values/],
    ['objects', '{"a":{},"b":{},"c":{}}', /^413 .* values/],
    ['lists', '[[],[]]', /^400/],
    ['as deep as it may be', '{"a":[{}]}', /^passes$/],
    ['deeper', '{"a":[[[', /^413 .* 3 levels/],
    ['depth that ends again', '{"a":{},"b":{}}', /^passes$/],
    ['structure in a text', `{"a":"${'{[,'.repeat(100)}"}`, /^passes$/],
    ['structure in a name', `{"${'{[,'.repeat(100)}":1}`, /^passes$/],
    ['an escaped quote', `{"a":"\\"${'[,'.repeat(100)}"}`, /^passes$/],
    ['an escaped backslash, which ends no text', `{"a":"\\\\",${'[],'.repeat(9)}`, /^413/],
    ['an escaped backslash and quote', `{"a":"\\\\\\"${'[,'.repeat(100)}"}`, /^passes$/],
    ['characters of several bytes', `{"a":"${'ä€𝄞,'.repeat(50)}"}`, /^passes$/],
    ['a text without end', `{"a":"${',['.repeat(50)}`, /^passes$/],
  ];
  for (const [given, text, expected] of rows) {
    it(`${given}: ${expected.source}, in chunks of any size`, () => {
      for (const size of [1, 2, 3, 7, 1000]) expect(scanned(text, size), `${size}`).to.match(expected);
    });
  }
});
