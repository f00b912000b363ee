import { createServer } from 'node:http';
import { expect } from 'chai';
import { objectAt, stringAt } from '../../src/kit/json.ts';
import { listen } from '../../src/kit/network/listen.ts';
import { readAll } from '../../src/kube/read.ts';
import { createRetryingClient } from '../../src/kube/retry.ts';
import { clientAt, createSetClock } from './cluster.ts';

const NAMES = ['p1', 'p2', 'p3', 'p4'];
const item = (name: string) => ({ metadata: { name, uid: name }, spec: { note: '},{"metadata":{' }, status: {} });
const page = (names: readonly string[], token: string) =>
  `${JSON.stringify({ kind: 'PodList', apiVersion: 'v1', metadata: { resourceVersion: '9', continue: token }, items: names.map(item) })}\n`;
const PAGES = [page(NAMES.slice(0, 2), 'next'), page(NAMES.slice(2), '')] as const;

/** How the body of an answer ends too early: the connection is reset, or a proxy ends the body as if it were complete. */
type End = 'reset' | 'short';

/** The two pages of a list, of which one is cut at an offset the first time, and what a retrying client reads. */
async function readCut(broken: 0 | 1, offset: number, end: End): Promise<{ names: string[]; requests: number }> {
  const names = (object: Parameters<typeof objectAt>[0]) => stringAt(objectAt(object, 'metadata'), 'name');
  let requests = 0;
  let cuts = 1;
  const server = createServer(({ url = '' }, response) => {
    requests += 1;
    const index = url.includes('continue=') ? 1 : 0;
    response.writeHead(200, { 'content-type': 'application/json' });
    if (index !== broken || cuts === 0) return void response.end(PAGES[index]);
    cuts = 0;
    const part = PAGES[index].slice(0, offset);
    if (end === 'short') return void response.end(part);
    response.write(part, () => response.destroy());
  });
  const port = await listen(server, '127.0.0.1:0');
  const client = clientAt(`http://127.0.0.1:${port}`);
  const { signal } = new AbortController();
  try {
    const retrying = createRetryingClient(client, { clock: createSetClock(), signal });
    return { names: (await readAll(retrying, '/api/v1/pods', names, signal)).map(String), requests };
  } finally {
    await client.close();
    server.close();
  }
}

describe('a list whose answer breaks off', () => {
  for (const end of ['reset', 'short'] as const) {
    for (const broken of [0, 1] as const) {
      it(`is read again from the start of page ${broken + 1} at every offset (${end})`, async () => {
        // The last byte is the line feed, without which the list is complete.
        for (let offset = 1; offset < PAGES[broken].length - 1; offset++) {
          expect(await readCut(broken, offset, end), `offset ${offset}`).to.deep.equal({ names: NAMES, requests: 3 });
        }
      });
    }
  }
});
