import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { freePorts } from '../../hack/cluster/ports.ts';
import { binaries } from '../../hack/cluster/spawn.ts';
import { ROWS } from '../../hack/dashboard/panels.ts';
import { RESULTS, type Series } from '../../hack/dashboard/picture.ts';
import { webhookManifest } from '../support/manifest.ts';
import { type Product, startProduct } from '../support/product.ts';

/** What a running controller without trouble does not give: the kubelet's figures, limits that no registry named, refusals. */
const NOT_HERE = /container_memory|ratelimit_remaining|writes_refused/;
/** Scrapes are as far apart as Prometheus makes them, whatever the time that passed here. */
const SCRAPE_MS = 15_000;
const SCRAPES = 60;
const START = Date.UTC(2026, 0, 1);

describe('the queries of the dashboard', function () {
  this.timeout(120_000);
  let product: Product;
  const queries = ROWS.flatMap(({ panels }) => panels.flatMap((panel) => panel.queries.map(({ expr }) => expr)));
  let results: readonly { readonly series: readonly Series[]; readonly error?: string }[];

  before(async () => {
    product = await startProduct({ nodes: ['amd64', 'arm64', 's390x'] });
    const [port = 0] = await freePorts(1);
    await product.cluster.apply(await webhookManifest(`https://127.0.0.1:${port}`));
    const flags = ['--webhook.enabled', '--webhook.address', `127.0.0.1:${port}`, '--placement.mode', 'both'];
    const controller = await product.run(flags);
    await product.eventuallyTainted();
    const scrapes: { at: number; instance: string; text: string }[] = [];
    for (let turn = 0; turn < SCRAPES; turn += 1) {
      const image =
        turn % 9 === 4
          ? product.image(`missing-${turn}`, []).replace(':1', ':none')
          : product.image(`app-${turn}`, turn % 3 === 0 ? ['amd64'] : ['amd64', 'arm64']);
      const images = turn % 17 === 5 ? [image, product.image(`other-${turn}`, ['s390x'])] : [image];
      await product.cluster.createPod({ name: `pod-${turn}`, images });
      if (turn === 30) await product.cluster.createNode({ name: 'arm64-2', architecture: 'arm64' });
      scrapes.push({ at: START + turn * SCRAPE_MS, instance: 'one', text: (await controller.get('/metrics')).text });
    }
    const end = START + (SCRAPES - 1) * SCRAPE_MS;
    results = await evaluated({ scrapes, queries, start: START + 4 * SCRAPE_MS, end, step: SCRAPE_MS });
  });

  after(async () => {
    await product?.stop();
    if (process.env.ARCHAWARE_RECORD === undefined) return;
    const recorded = Object.fromEntries(queries.map((query, index) => [query, results[index]?.series ?? []]));
    const rounded = (_: string, value: unknown) =>
      typeof value === 'number' && value < START ? Number(value.toPrecision(3)) : value;
    await writeFile(RESULTS, `${JSON.stringify(recorded, rounded)}\n`);
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
  const child = spawn(join(binaries(), 'promquery'), { stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.end(JSON.stringify(request));
  return JSON.parse(await text(child.stdout));
}
