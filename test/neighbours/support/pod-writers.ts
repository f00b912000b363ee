import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseAllDocuments, stringify } from 'yaml';
import { createAuthority } from '../../../hack/cluster/certificates.ts';
import type { Cluster } from '../../../hack/cluster/cluster.ts';
import { at, listAt } from '../../../hack/cluster/json.ts';
import { freePorts } from '../../../hack/cluster/ports.ts';
import { binaries, type Component, startComponent } from '../../../hack/cluster/spawn.ts';
import { run } from '../../../hack/programs.ts';

/** Starts Argo Rollouts (`build-rollouts.sh`) beside the cluster, with all rights. */
export async function startRollouts(cluster: Cluster): Promise<Component> {
  await applyKinds(cluster, 'rollouts');
  const [metrics = 0, health = 0] = await freePorts(2);
  const ports = ['--metricsPort', String(metrics), '--healthzPort', String(health)];
  return startComponent({
    name: 'rollouts',
    directory: cluster.directory,
    args: ['--kubeconfig', cluster.kubeconfig, '--leader-elect=false', ...ports],
  });
}

/**
 * Starts the updater of the Vertical Pod Autoscaler (`build-vpa-updater.sh`) beside the cluster, with all rights. It acts every second on
 * the recommendations in the status of VerticalPodAutoscalers, which a recommender would write.
 */
export async function startVpaUpdater(cluster: Cluster): Promise<Component> {
  await applyKinds(cluster, 'vpa-updater');
  const [metrics = 0] = await freePorts(1);
  return startComponent({
    name: 'vpa-updater',
    directory: cluster.directory,
    args: [
      ...['--kubeconfig', cluster.kubeconfig, '--address', `127.0.0.1:${metrics}`],
      ...['--updater-interval=1s', '--use-admission-controller-status=false', '--v=4'],
    ],
  });
}

/**
 * Starts Istio's sidecar injector (`build-istio.sh`) with the templates, the values and the webhook configuration of its chart. `image`:
 * that of the proxy, a whole reference. The API server calls it under the name of the configuration in the chart.
 */
export async function startIstioInjector(cluster: Cluster, image: string): Promise<Component> {
  const values = ['--set', `global.proxy.image=${image}`, '--set', `global.proxy_init.image=${image}`];
  const words = ['template', 'istiod', join(binaries(), 'istio-chart'), '--namespace', 'istio-system', ...values];
  const stdout = await run(join(binaries(), 'helm'), words);
  const objects = parseAllDocuments(stdout).map((document): unknown => document.toJS());
  const named = (kind: string, name: string) =>
    objects.find((object) => at(object, 'kind') === kind && at(object, 'metadata', 'name') === name);
  const injection = named('ConfigMap', 'istio-sidecar-injector');
  const { certificate, key, bundle } = certificates();
  const files = {
    'istio.crt': certificate,
    'istio.key': key,
    'istio-config.yaml': String(at(injection, 'data', 'config')),
    'istio-values.json': String(at(injection, 'data', 'values')),
  };
  const paths = Object.keys(files).map((name) => join(cluster.directory, name));
  await Promise.all(Object.values(files).map((text, index) => writeFile(String(paths[index]), text)));
  const [port = 0] = await freePorts(1);
  const component = await startComponent({
    name: 'istio',
    directory: cluster.directory,
    args: [`127.0.0.1:${port}`, ...paths],
    env: { ENABLE_NATIVE_SIDECARS: 'true' },
  });
  const configuration = named('MutatingWebhookConfiguration', 'istio-sidecar-injector');
  const clientConfig = { url: `https://127.0.0.1:${port}/inject`, caBundle: bundle };
  const webhooks = listAt(configuration, 'webhooks').map((hook) => Object.assign({}, hook, { clientConfig }));
  await cluster.apply(stringify(Object.assign({}, configuration, { webhooks })));
  return component;
}

function certificates() {
  const authority = createAuthority('istio');
  const bundle = Buffer.from(authority.certificate).toString('base64');
  return { ...authority.issue('istiod', ['127.0.0.1']), bundle };
}

/** Applies the kinds that a build script has put beside the binary. */
export async function applyKinds(cluster: Cluster, name: string): Promise<void> {
  const text = await readFile(join(binaries(), `${name}-crds.yaml`), 'utf8');
  const kinds = parseAllDocuments(text)
    .map((document): unknown => document.toJS())
    .filter((object) => at(object, 'kind') === 'CustomResourceDefinition');
  // Client-side apply would keep a copy of each in an annotation, which has no room for the largest.
  const input = kinds.map((kind) => stringify(kind)).join('---\n');
  const { code, stderr } = await cluster.kubectl(['apply', '--server-side', '-f', '-'], { input });
  if (code !== 0) throw new Error(`kubectl apply: ${stderr}`);
  await cluster.kubectl(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=30s']);
}
