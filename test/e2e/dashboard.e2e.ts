import { readFile, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { freePorts } from '../../hack/cluster/ports.ts';
import { binaries } from '../../hack/cluster/spawn.ts';
import { ROWS } from '../../hack/dashboard/panels.ts';
import { RESULTS, type Series } from '../../hack/dashboard/picture.ts';
import { run } from '../../hack/programs.ts';
import { startController } from '../support/controller-process.ts';
import { webhookManifest } from '../support/manifest.ts';
import { type Product, startProduct } from '../support/product.ts';
import type { RunningController } from '../support/running.ts';

/** What a running controller without trouble does not give. */
const NOT_HERE = /writes_refused/;
/** Scrapes are as far apart as Prometheus makes them, whatever the time that passed here. */
const SCRAPE_MS = 15_000;
const SCRAPES = 60;
const START = Date.UTC(2026, 0, 1);

describe('the queries of the dashboard', function () {
  this.timeout(240_000);
  let product: Product;
  let controller: RunningController;
  let limited: Server | undefined;
  let left = 100;
  const queries = ROWS.flatMap(({ panels }) => panels.flatMap((panel) => panel.queries.map(({ expr }) => expr)));
  let results: readonly { readonly series: readonly Series[]; readonly error?: string }[];

  before(async () => {
    product = await startProduct({ nodes: ['amd64', 'arm64', 's390x'] });
    const [port = 0, limitedPort = 0] = await freePorts(2);
    limited = createServer((request, response) => void answerWithLimit(request, response)).listen(
      limitedPort,
      '127.0.0.1',
    );
    await product.cluster.apply(await webhookManifest(`https://127.0.0.1:${port}`));
    const insecure = `${product.registry.host},127.0.0.1:${limitedPort}`;
    const flags = ['--webhook.enabled', '--webhook.address', `127.0.0.1:${port}`, '--placement.mode', 'both'];
    for (const [name, platforms] of Object.entries({ ready: ['amd64', 'arm64'], old: ['amd64'], older: ['amd64'] })) {
      const resources = { requests: { cpu: name === 'ready' ? '3' : '1' } };
      const containers = [{ name: 'main', image: product.image(name, platforms), resources }];
      await product.cluster.createPod({ name, spec: { containers } });
    }
    // A process of its own, so that the memory is that of the controller.
    controller = await startController([...product.flags, '--registries.insecure', insecure, ...flags]);
    await product.eventuallyTainted();
    const scrapes: { at: number; instance: string; text: string }[] = [];
    for (let turn = 0; turn < SCRAPES; turn += 1) {
      const image =
        turn % 9 === 4
          ? product.image(`missing-${turn}`, []).replace(':1', ':none')
          : product.image(`app-${turn}`, turn % 3 === 0 ? ['amd64'] : ['amd64', 'arm64']);
      const here = turn % 4 === 1 ? image.replace(product.registry.host, `127.0.0.1:${limitedPort}`) : image;
      const images = turn % 17 === 5 ? [image, product.image(`other-${turn}`, ['s390x'])] : [here];
      await product.cluster.createPod({ name: `pod-${turn}`, images });
      if (turn === 30) await product.cluster.createNode({ name: 'arm64-2', architecture: 'arm64' });
      // The controller renders its metrics at most each second, and a picture should not show steps.
      if (process.env.ARCHAWARE_RECORD !== undefined) await delay(1_500);
      const at = START + turn * SCRAPE_MS;
      scrapes.push({ at, instance: 'one', text: (await controller.get('/metrics')).text });
      // As a kubelet names it.
      const bytes = 1024 * Number(/VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${controller.pid}/status`, 'utf8'))?.[1]);
      const labels = 'pod="archaware-controller-0",container="archaware-controller"';
      scrapes.push({ at, instance: 'kubelet', text: `container_memory_working_set_bytes{${labels}} ${bytes}\n` });
    }
    const end = START + (SCRAPES - 1) * SCRAPE_MS;
    results = await evaluated({ scrapes, queries, start: START + 4 * SCRAPE_MS, end, step: SCRAPE_MS });
  });

  /** The registry's answer, with what is left of a limit, as Docker Hub says it. */
  async function answerWithLimit({ method = '', url }: IncomingMessage, response: ServerResponse): Promise<void> {
    const answer = await fetch(`http://${product.registry.host}${url}`, { method, headers: { accept: '*/*' } });
    left -= 1;
    const limit = { 'ratelimit-limit': '100;w=21600', 'ratelimit-remaining': `${Math.max(left, 0)};w=21600` };
    response.writeHead(answer.status, { ...Object.fromEntries(answer.headers), ...limit });
    response.end(Buffer.from(await answer.arrayBuffer()));
  }

  after(async () => {
    await controller?.stop();
    limited?.close();
    await product?.stop();
    if (process.env.ARCHAWARE_RECORD === undefined) return;
    const recorded = Object.fromEntries(queries.map((query, index) => [query, results[index]?.series ?? []]));
    const rounded = (_: string, value: unknown) =>
      typeof value === 'number' && value < START ? Number(value.toPrecision(3)) : value;
    // The registries have other ports each time.
    const text = JSON.stringify(recorded, rounded).replaceAll(product.registry.host, 'registry.example.com');
    await writeFile(RESULTS, `${text.replaceAll(/127\.0\.0\.1:\d+/g, 'hub.example.com')}\n`);
  });

  it('are queries that Prometheus takes', () => {
    expect(results.map(({ error }, index) => error && `${queries[index]}: ${error}`).filter(Boolean)).to.deep.equal([]);
  });

  it('find the metrics of a running controller', () => {
    const empty = queries.filter((query, index) => !NOT_HERE.test(query) && results[index]?.series.length === 0);
    expect(empty).to.deep.equal([]);
  });
});

/** Evaluates queries on scrapes with the engine of Prometheus. */
async function evaluated(request: object): Promise<{ series: Series[]; error?: string }[]> {
  return JSON.parse(await run(join(binaries(), 'promquery'), [], { input: JSON.stringify(request) }));
}
