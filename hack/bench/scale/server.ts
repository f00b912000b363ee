// An API server for benchmarks, of a cluster of any size: its objects are texts with numbers, so that it needs little memory and
// time. It has what the controller uses: lists with pages, watches with bookmarks, patches, Leases, Events. Started by cluster.ts,
// which sends it commands.
import { createServer } from 'node:https';
import { createKinds, type Kinds } from './kinds.ts';
import type { Command, Commands, Setup } from './protocol.ts';
import { type Counts, createRoutes } from './routes.ts';

/** Milliseconds between two looks at what is due. Most of them send one event, as an API server does. */
const TICK_MS = 1;

/** Calls back as often in a second as `rate` says, until the returned function is called. */
function atRate(rate: number, act: (count: number) => void, most = Number.POSITIVE_INFINITY): () => void {
  const started = performance.now();
  let done = 0;
  const timer = setInterval(() => {
    const due = Math.min(most, Math.floor(((performance.now() - started) * rate) / 1000));
    for (; done < due; done += 1) act(done);
    if (done >= most) clearInterval(timer);
  }, TICK_MS);
  return () => clearInterval(timer);
}

function commandsOf(kinds: Kinds, counts: Counts): Commands {
  const { pods, nodes } = kinds;
  const running = pods.size;
  let stopLoad = () => {};
  return {
    load({ heartbeats, updates }) {
      stopLoad();
      const ends = [
        atRate(heartbeats, (count) => nodes.touch(count % nodes.size)),
        // A prime number of steps, so that neighbours in the list do not follow each other.
        atRate(updates, (count) => pods.touch((count * 7_919) % running)),
      ];
      stopLoad = () => {
        for (const end of ends) end();
      };
    },
    create({ count, perSecond }) {
      atRate(perSecond, () => pods.add(1), count);
    },
    join({ count, architecture }) {
      kinds.join(count, architecture);
    },
    patched: () => ({ pods: pods.patched, nodes: nodes.patched }),
    requests: () => Object.fromEntries(counts),
    forgetRequests: () => counts.clear(),
  };
}

async function main({ shape, key, certificate }: Setup): Promise<void> {
  const counts: Counts = new Map();
  const kinds = createKinds(shape);
  const commands = commandsOf(kinds, counts);
  const answer = createRoutes(kinds, counts);
  const server = createServer({ key, cert: certificate }, (request, response) => {
    answer(request, response).catch((error: unknown) => response.destroy(error instanceof Error ? error : undefined));
  });
  server.keepAliveTimeout = 300_000;
  process.on('message', ({ id, name, argument }: Command) => {
    const result: unknown = Reflect.apply(commands[name], undefined, [argument]);
    process.send?.({ id, result });
  });
  process.once('disconnect', () => process.exit());
  server.listen(0, '127.0.0.1', () => {
    const address = server.address();
    process.send?.({ port: typeof address === 'object' ? address?.port : undefined });
  });
}

process.once('message', (setup: Setup) => void main(setup));
