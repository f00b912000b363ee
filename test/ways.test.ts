/** Follows each way of docs/development/architecture.md through the running program: its functions are called, in this order. */
import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { at } from './simulator/json.ts';
import { ours } from './support/objects.ts';
import { PODS, productForAll, tolerated, workload } from './support/product.ts';
import { type Hop, recordCalls } from './support/recorded-calls.ts';
import { arrangeWebhook, eventuallyTrusted } from './support/webhook.ts';

const PAGE = 'docs/development/architecture.md';
const MOST_HOPS = 10;

const page = await readFile(new URL(`../${PAGE}`, import.meta.url), 'utf8');

/** Reads the numbered list below the heading `The way of WHAT`. */
function waysOf(what: string): Hop[] {
  const [, section = ''] = page.split(`## The way of ${what}\n`);
  const [text = ''] = section.split('\n## ');
  return [...text.matchAll(/^[0-9]+\. `(\w+)` in `([\w/.-]+)`/gm)].map(([, name = '', file = '']) => ({ name, file }));
}

describe(`the ways in ${PAGE}`, () => {
  const product = productForAll();
  let image: string;
  before(async () => {
    image = product.image('app', ['amd64', 'arm64']);
    await product.cluster.apply(workload('DaemonSet', 'first', [image]));
    await product.run();
    await product.eventuallyTainted();
  });

  const toleratesBoth = (path: string, ...spec: readonly string[]) =>
    product.eventually('tolerations', async () => tolerated(at(await product.get(path), ...spec)).length === 2);
  const ways: Readonly<Record<string, () => Promise<unknown>>> = {
    async 'an image'() {
      const other = product.image('other', ['arm64']);
      await product.cluster.createPod({ name: 'of-other', images: [other] });
      await product.eventuallyTolerates('default', 'of-other', ours('arm64'));
    },
    async 'a pod'() {
      await product.cluster.createPod({ name: 'one', images: [image] });
      await toleratesBoth(`${PODS}/one`, 'spec');
    },
    async 'a DaemonSet'() {
      await product.cluster.apply(workload('DaemonSet', 'agent', [image]));
      await toleratesBoth('/apis/apps/v1/namespaces/default/daemonsets/agent', 'spec', 'template', 'spec');
    },
    async 'a node'() {
      await product.cluster.createNode({ name: 'arm64-2', architecture: 'arm64' });
      await product.eventuallyTainted();
    },
    async 'a pod under admission'() {
      await product.stopControllers();
      await product.run((await arrangeWebhook(product)).flags);
      await eventuallyTrusted(product);
      await product.cluster.createPod({ name: 'two', images: [image] });
      await toleratesBoth(`${PODS}/two`, 'spec');
    },
    'a key': () => product.command(['explain', 'default/one', '--taints.key', 'example.com/arch']),
  };

  for (const [what, go] of Object.entries(ways)) {
    it(`are what the program does for ${what}`, async () => {
      const hops = waysOf(what);
      expect(hops).to.have.length.within(4, MOST_HOPS);
      const calls = await recordCalls(hops, async () => void (await go()));
      let from = 0;
      for (const { file, name } of hops) {
        const call = `${file} ${name}`;
        const index = calls.indexOf(call, from);
        expect(
          index,
          `${call} after ${calls.slice(0, from).at(-1) ?? 'the start'}, among ${calls.join(', ')}`,
        ).to.be.at.least(0);
        from = index + 1;
      }
    });
  }
});
