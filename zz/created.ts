import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { startCluster } from '../hack/cluster/cluster.ts';
import { startRegistry } from '../hack/cluster/registry.ts';
import { pushImages } from '../hack/bench/images.ts';
import { createAndWatch, prepareNamespace, podOf, removePods } from '../hack/bench/load.ts';
import { cpuOf } from '../hack/bench/process.ts';
import { startController } from '../test/support/controller-process.ts';
const publish = process.argv[2] !== 'loop';
const cluster = await startCluster({});
const registry = await startRegistry();
try {
  await prepareNamespace(cluster);
  const images = await pushImages(registry);
  await cluster.apply(JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'archaware' } }));
  if (publish) await cluster.apply(await readFile(new URL('../manifests/publish.yaml', import.meta.url), 'utf8'));
  const controller = await startController(['--kubeconfig', cluster.kubeconfig, '--registries.insecure', registry.host, '--leaderElection.namespace', 'archaware', ...(publish ? ['--placement.publish'] : [])],
    process.argv[3] === 'prof' ? { bundle: '/tmp/w/M/zz/prof.mjs' } : {});
  await createAndWatch(cluster, { count: 20, images, prefix: 'w' });
  if (publish) for (const image of images) await cluster.waitFor(image, async () => JSON.stringify((await cluster.request('POST', '/api/v1/namespaces/bench/pods?dryRun=All', podOf('tried', image))).body).includes('supported-arch'));
  for (let round = 0; round < 5; round++) {
    const text = async () => (await controller.get('/metrics')).text;
    const before = await text();
    const cpu = cpuOf(controller.pid); const api = cpuOf(cluster.component('kube-apiserver').pid);
    const { totalMs, delays } = await createAndWatch(cluster, { count: 2000, images, prefix: `r${round}` });
    await delay(1500);
    const used = (cpuOf(controller.pid) - cpu) / 2000; const usedApi = (cpuOf(cluster.component('kube-apiserver').pid) - api) / 2000;
    const after = await text();
    const diff = (re: RegExp) => { const sum = (t: string) => [...t.matchAll(re)].reduce((s, m) => s + Number(m[1]), 0); return sum(after) - sum(before); };
    delays.sort((a, b) => a - b);
    console.log(`round ${round}: ${(2000 / totalMs * 1000).toFixed(0)} pods/s, cpu ${used.toFixed(2)} ms, api ${usedApi.toFixed(2)}, p50 ${delays[1000]?.toFixed(1)}; reconciles ${diff(/^archaware_reconcile_total\{controller="pod".*\} (\d+)$/gm)} patches ${diff(/^archaware_api_requests_total\{verb="patch".*\} (\d+)$/gm)} all api ${diff(/^archaware_api_requests_total\{.*\} (\d+)$/gm)}`);
    await removePods(cluster);
    await delay(1500);
  }
  await controller.stop();
} finally { await cluster.stop(); await registry.stop(); await registry.remove(); }
