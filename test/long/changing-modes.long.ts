import { expect } from 'chai';
import { arrangeHelm, CHART_PATH, type Helm } from '../e2e/support/helm.ts';
import { type PodKind, streamJudged } from '../e2e/support/judged-stream.ts';
import {
  eventuallyNoObjects,
  eventuallyOn,
  isTrusted,
  nothingIsLeft,
  reviewsPods,
  whatIsThere,
} from '../e2e/support/real-checks.ts';
import { applyOverlay, uninstallOverlay, writeOverlay } from '../e2e/support/real-overlay.ts';
import { configurationEdit, needsRealWorld, type RealWorld, startRealWorld } from '../e2e/support/real-world.ts';
import type { LiveWorld } from '../e2e/support/world.ts';
import { taints } from '../support/objects.ts';

const NS = 'shop';
const DOCUMENT = 'docs/changing-modes.md';
const PODS_PER_SECOND = 20;

type Mode = 'taints' | 'both' | 'affinity';
type State = { readonly mode: Mode; readonly webhook: boolean };
const TAINTS: State = { mode: 'taints', webhook: false };
const WATCHED: State = { mode: 'taints', webhook: true };
const BOTH: State = { mode: 'both', webhook: true };
const AFFINITY: State = { mode: 'affinity', webhook: true };

/** Each state is reached from the one before. */
const WAY: readonly State[] = [TAINTS, BOTH, AFFINITY, BOTH, TAINTS, AFFINITY, TAINTS];

/** The documents say of these that pods may go to wrong nodes meanwhile, and to go over `both`. */
const isOneStep = (from: State, to: State) =>
  (from.mode === 'affinity') !== (to.mode === 'affinity') && from.mode !== 'both' && to.mode !== 'both';

const textOf = ({ mode, webhook }: State) => (mode === 'taints' && webhook ? 'taints with the webhook' : mode);

/** Rows of docs/changing-modes.md, by its blocks, while pods come all the time. */
describe('changing the mode on a real node, under a stream of pods', function () {
  this.timeout(300_000);
  let real: RealWorld;
  let world: LiveWorld;
  let kinds: PodKind[];
  const table: string[] = [];

  before(async function () {
    needsRealWorld(this);
    real = await startRealWorld();
    ({ world } = real);
    const { own, other } = real;
    // Most pods of this architecture go there, too: the real node would be busy with them alone.
    await world.cluster.createNode({ name: `fake-${own}`, architecture: own });
    const nodes = { [own]: [real.node.name, `fake-${own}`], [other]: [real.fake] };
    kinds = [own, other].map((name) => ({ image: world.image(`program-${name}`), nodes: nodes[name] ?? [] }));
    await world.namespace(NS);
  });
  after(async () => {
    console.log(['change | seconds | pods | unreviewed | on a wrong node | pending', ...table].join('\n'));
    await real?.stop();
  });
  afterEach(async function () {
    if (this.currentTest?.state === 'failed') console.log(await whatIsThere(world));
  });

  const eventually = <T>(what: string, condition: () => Promise<T | false | undefined>) =>
    eventuallyOn(world)(what, condition);

  /** Waits until the documents would call it done. */
  async function settled({ mode, webhook }: State): Promise<void> {
    await eventually(mode === 'affinity' ? 'no node to be tainted' : 'every node to be tainted', async () => {
      const nodes = await world.list('Node', '');
      return nodes.every((node) => (taints(node).length === 0) === (mode === 'affinity'));
    });
    if (!webhook) return;
    await eventually('every webhook to have a caBundle', () => isTrusted(world));
    for (const { image } of kinds) await eventually('pods to be reviewed', () => reviewsPods(world, NS, image));
  }

  /** Makes the change while pods come, and judges them. */
  async function underLoad(way: string, from: State, to: State, change: () => Promise<unknown>): Promise<void> {
    const stream = streamJudged(world, NS, kinds, PODS_PER_SECOND);
    const begun = performance.now();
    const failure = await change()
      .then(() => settled(to))
      .catch((error: unknown) => error);
    const seconds = ((performance.now() - begun) / 1000).toFixed(0);
    const { created, unreviewed, wrong, pending } = await stream.stop();
    const counts = [created, unreviewed.length, wrong.length, pending.length];
    table.push([`${textOf(from)} → ${textOf(to)}, ${way}`, seconds, ...counts].join(' | '));
    console.log(`        ${table.at(-1)}`);
    if (failure !== undefined) throw failure;
    expect(pending, 'pending').to.deep.equal([]);
    if (isOneStep(from, to)) return;
    expect(wrong, 'on wrong nodes').to.deep.equal([]);
    if (from.webhook && to.webhook) expect(unreviewed, 'unreviewed').to.deep.equal([]);
  }

  describe('with kubectl', () => {
    before(async () => {
      await applyOverlay(real, { overlay: 'taints' });
      await settled(TAINTS);
    });
    after(() => real && uninstallOverlay(real).then(() => eventuallyNoObjects(real)));

    const ALL = [...WAY, WATCHED, TAINTS];
    for (const [index, to] of ALL.slice(1).entries()) {
      const from = ALL[index] ?? TAINTS;
      it(`${textOf(from)} → ${textOf(to)}`, () => underLoad('kubectl', from, to, () => change(from, to)));
    }

    async function change(from: State, to: State): Promise<void> {
      const edit = (...lines: string[]) => configurationEdit('images: {unresolvable: open}', ...lines);
      if (to === WATCHED) {
        await real.block(DOCUMENT, 'kubectl apply -f manifests/webhook.yaml', {}, edit('webhook: {enabled: true}'));
      } else if (from.webhook && !to.webhook) {
        const lines = ['placement: {mode: taints}', 'webhook: {enabled: false}'];
        await real.block(DOCUMENT, 'no webhook: {enabled: true}', {}, edit(...lines));
      } else {
        await writeOverlay(real, { overlay: to.mode });
        await real.block(DOCUMENT, 'kubectl apply -k mine');
      }
    }
  });

  describe('with helm upgrade --wait', () => {
    let helm: Helm;
    const RELEASE = ['archaware', CHART_PATH, '--namespace', 'archaware', '--create-namespace'];

    before(async () => {
      await nothingIsLeft(world, { keepsPods: true });
      helm = await arrangeHelm(world.cluster.kubeconfig);
      await helmed(['install', ...RELEASE], TAINTS);
      await settled(TAINTS);
    });
    after(() => helm?.remove());

    async function helmed(args: readonly string[], { mode, webhook }: State): Promise<void> {
      const registries = { insecure: [world.registry.nodeHost] };
      const config = { placement: { mode }, webhook: { enabled: webhook }, registries };
      const values = { image: await real.image(), webhook: { pods: true }, config };
      const { code, stdout, stderr } = await helm.run([...args, '--wait', '--timeout', '2m'], values);
      expect(code, stdout + stderr).to.equal(0);
    }

    for (const [index, to] of WAY.slice(1).entries()) {
      const from = WAY[index] ?? TAINTS;
      it(`${textOf(from)} → ${textOf(to)}`, () =>
        underLoad('helm', from, to, () => helmed(['upgrade', ...RELEASE], to)));
    }
  });
});
