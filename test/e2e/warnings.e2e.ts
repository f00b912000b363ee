import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { ours } from '../support/objects.ts';
import type { RunningController } from '../support/running.ts';
import { runWithWebhook } from '../support/webhook.ts';
import { daemonSet, deployment, job, pod } from '../support/workloads.ts';
import { arrangeHelm } from './support/helm.ts';
import { worldForAll } from './support/world.ts';

const NS = 'warned';

describe('what the author of a workload sees as it is applied', () => {
  const world = worldForAll();

  before(async () => {
    await world.namespace(NS);
    await runAndLookUp('known');
  });

  async function runAndLookUp(name: string, ...flags: readonly string[]): Promise<RunningController> {
    const controller = await runWithWebhook(world, '--bootstrap.timeout', '2s', ...flags);
    await world.create(pod(NS, name, { images: ['multi', 'amd64'].map((tag) => world.image(tag)) }));
    await world.eventuallyTolerates(NS, name, ours('amd64'));
    return controller;
  }

  const image = (tag: string) => world.image(tag);
  const narrow = () => `image ${image('amd64')} runs on amd64 only; the pods will run on amd64 nodes`;

  /** Applies an object as its author would, and returns the warnings that kubectl prints. */
  async function applied(object: unknown, ...more: readonly string[]): Promise<string[]> {
    const input = JSON.stringify(object);
    const { code, stdout, stderr } = await world.cluster.kubectl(['apply', ...more, '-f', '-'], { input });
    expect(code, stdout + stderr).to.equal(0);
    return stderr.split('\n').flatMap((line) => /^Warning: (.*)$/.exec(line)?.[1] ?? []);
  }

  const web = (tag: string, replicas = 1) => deployment(NS, 'web', { images: [image(tag)], replicas });
  const cronJob = () => {
    const spec = { schedule: '0 0 1 1 *', jobTemplate: { spec: job(NS, 'c', { images: [image('amd64')] }).spec } };
    return { apiVersion: 'batch/v1', kind: 'CronJob', metadata: { name: 'c', namespace: NS }, spec };
  };

  it('where its pods will run, for each kind', async () => {
    expect(await applied(web('multi'))).to.deep.equal([]);
    expect(await applied(web('amd64'))).to.deep.equal(['arm64 was dropped: the running version has it', narrow()]);
    expect(await applied(web('amd64', 2)), 'only scaled').to.deep.equal([]);
    const amd = { images: [image('amd64')] };
    for (const object of [daemonSet(NS, 'd', amd), pod(NS, 'p', amd), cronJob()]) {
      expect(await applied(object, '--dry-run=server'), JSON.stringify(object)).to.deep.equal([narrow()]);
    }
  });

  it('by helm upgrade', async () => {
    const chart = await mkdtemp(join(tmpdir(), 'archaware-warned-'));
    const helm = await arrangeHelm(world.cluster.kubeconfig);
    try {
      await mkdir(join(chart, 'templates'));
      await writeFile(join(chart, 'Chart.yaml'), 'apiVersion: v2\nname: shop\nversion: 1.0.0\n');
      const object = deployment(NS, 'helmed', { images: [image('amd64')] });
      await writeFile(join(chart, 'templates', 'web.yaml'), JSON.stringify(object));
      const { code, stdout, stderr } = await helm.run(['upgrade', '--install', 'shop', chart, '-n', NS]);
      expect(code, stdout + stderr).to.equal(0);
      expect(stderr).to.include(narrow());
    } finally {
      await Promise.all([rm(chart, { recursive: true }), helm.remove()]);
    }
  });

  it('nothing with webhook.warnings: false', async () => {
    await world.stopControllers();
    const controller = await runAndLookUp('known-again', '--no-webhook.warnings');
    await world.eventually('a review that knows the image', async () => {
      expect(await applied(pod(NS, 'off', { images: [image('amd64')] }), '--dry-run=server')).to.deep.equal([]);
      return (await controller.metric('archaware_admission_reviews_total', { outcome: 'patched' })) > 0;
    });
  });
});
