import { expect } from 'chai';
import { createPaths } from '../../src/webhook/paths.ts';

describe('the paths that are served', () => {
  const calling = (...paths: (string | undefined)[]) => ({
    webhooks: paths.map((path) => ({ clientConfig: { service: { name: 's', namespace: 'n', path } } })),
  });
  const SECRET = '/mutate/abc';
  const ALL = [SECRET, '/mutate', '/', '/x'];
  const rows: [given: string, wanted: string | undefined, seen: Parameters<typeof calling>[0][][], served: string[]][] =
    [
      ['nothing was seen', SECRET, [], [SECRET]],
      ['callers use it', SECRET, [[SECRET, SECRET]], [SECRET]],
      ['callers use that of an earlier version', SECRET, [['/mutate']], [SECRET, '/mutate', '/']],
      ['one caller uses another', SECRET, [[SECRET, '/x']], [SECRET, '/', '/x']],
      ['callers use none', SECRET, [[undefined]], [SECRET, '/']],
      ['callers used another a moment ago', SECRET, [['/mutate'], [SECRET]], [SECRET, '/mutate']],
      ['there is no secret', undefined, [['/mutate']], ['/mutate', '/']],
      ['there is no secret, and nothing was seen', undefined, [], ['/']],
    ];
  for (const [given, wanted, seen, served] of rows) {
    it(`${given}: ${served}`, () => {
      const paths = createPaths(
        () => wanted,
        () => 0,
      );
      for (const called of seen) paths.saw(calling(...called));
      expect(ALL.filter(paths.isServed)).to.deep.equal(served);
    });
  }
});
