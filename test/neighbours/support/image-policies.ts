import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseAllDocuments, stringify } from 'yaml';
import { createAuthority } from '../../../hack/cluster/certificates.ts';
import { expectSuccess } from '../../../hack/cluster/client.ts';
import type { Cluster } from '../../../hack/cluster/cluster.ts';
import { at, listAt } from '../../../hack/cluster/json.ts';
import { freePorts } from '../../../hack/cluster/ports.ts';
import { binaries, type Component, startComponent } from '../../../hack/cluster/spawn.ts';
import type { Trust } from './keyless.ts';
import { applyKinds } from './pod-writers.ts';

const WEBHOOKS = '/apis/admissionregistration.k8s.io/v1';

/** Starts Kyverno's admission controller (`build-image-policies.sh`) beside the cluster, with all rights. */
export async function startKyverno(cluster: Cluster): Promise<Component> {
  await applyKinds(cluster, 'kyverno');
  await cluster.apply(
    [object('v1', 'Namespace', 'kyverno'), configMap('kyverno', 'kyverno'), configMap('kyverno', 'kyverno-metrics')]
      .map((one) => stringify(one))
      .join('---\n'),
  );
  const [port = 0] = await freePorts(1);
  const component = await startComponent({
    name: 'kyverno',
    directory: cluster.directory,
    args: [
      ...[`--kubeconfig=${cluster.kubeconfig}`, `--serverIP=127.0.0.1:${port}`],
      ...[`--webhookServerHost=127.0.0.1`, `--webhookServerPort=${port}`],
      ...['--caSecretName=kyverno-ca', '--tlsSecretName=kyverno-pair'],
      ...[
        '--disableMetrics=true',
        '--controllerRuntimeMetricsAddress=0',
        '--admissionReports=false',
        '--enableReporting=',
      ],
    ],
    env: {
      ...{ INIT_CONFIG: 'kyverno', METRICS_CONFIG: 'kyverno-metrics', KYVERNO_NAMESPACE: 'kyverno' },
      ...{ KYVERNO_POD_NAME: 'kyverno', KYVERNO_SVC: 'kyverno', KYVERNO_DEPLOYMENT: 'kyverno' },
      ...{ KYVERNO_SERVICEACCOUNT_NAME: 'kyverno', KYVERNO_ROLE_NAME: 'kyverno' },
      TUF_ROOT: join(cluster.directory, 'kyverno-tuf'),
    },
  });
  // It writes its webhooks before it can serve them.
  const probe = {
    ...object('policies.kyverno.io/v1', 'ImageValidatingPolicy', 'probe'),
    spec: { attestors: [], validations: [{ expression: 'true' }] },
  };
  const path = '/apis/policies.kyverno.io/v1/imagevalidatingpolicies?dryRun=All';
  const called = `${WEBHOOKS}/validatingwebhookconfigurations/kyverno-policy-validating-webhook-cfg`;
  await orStop(component, () =>
    cluster.waitFor('Kyverno to be called', async () => {
      const { status } = await cluster.request('GET', called);
      return status === 200 && (await cluster.request('POST', path, probe)).status === 201;
    }),
  );
  return component;
}

/** The address of policy-controller's webhook, which its flag --secure-port does not change; it takes 8080 and 8008, too. */
const POLICY_CONTROLLER = 'https://127.0.0.1:8443';

/**
 * Starts Sigstore's policy-controller (`build-image-policies.sh`) beside the cluster, with all rights. It trusts what `trust` says in the
 * place of the public Sigstore. Only one at a time: its ports are fixed.
 *
 * It writes rules, paths and authority into webhooks that name a Service, which nothing here serves. So those call nobody, and others
 * call the program's address in their place.
 */
export async function startPolicyController(cluster: Cluster, trust: Trust): Promise<Component> {
  const authority = createAuthority('policy-controller');
  const { certificate, key } = authority.issue('webhook', ['127.0.0.1']);
  const namespace = 'cosign-system';
  const settings = ['config-policy-controller', 'config-image-policies', 'config-sigstore-keys', 'config-logging'];
  const secret = {
    ...object('v1', 'Secret', 'webhook-certs', namespace),
    stringData: { 'server-key.pem': key, 'server-cert.pem': certificate, 'ca-cert.pem': authority.certificate },
  };
  const objects = [
    object('v1', 'Namespace', namespace),
    secret,
    ...[...settings, 'config-observability', 'config-leader-election'].map((name) => configMap(namespace, name)),
  ];
  await applyKinds(cluster, 'policy-controller');
  await cluster.apply(objects.map((one) => stringify(one)).join('---\n'));
  const conversion = {
    url: `${POLICY_CONTROLLER}/resource-conversion`,
    service: null,
    caBundle: btoa(authority.certificate),
  };
  const crd = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clusterimagepolicies.policy.sigstore.dev';
  const patch = { spec: { conversion: { webhook: { clientConfig: conversion } } } };
  expectSuccess(crd, await cluster.request('PATCH', crd, patch, 'application/merge-patch+json'));

  const configurations = await shippedConfigurations();
  await cluster.apply(configurations.map((one) => stringify(withWebhooks(one, silenced))).join('---\n'));
  const [metrics = 0] = await freePorts(1);
  const home = join(cluster.directory, 'policy-controller-tuf');
  const component = await startComponent({
    name: 'policy-controller',
    directory: cluster.directory,
    args: ['-tuf-mirror', trust.mirror, '-tuf-root', trust.root],
    env: {
      ...{ KUBECONFIG: cluster.kubeconfig, SYSTEM_NAMESPACE: namespace, WEBHOOK_NAME: 'webhook', POD_NAME: 'webhook' },
      ...{ CONFIG_LOGGING_NAME: 'config-logging', METRICS_DOMAIN: 'sigstore.dev/policy', TUF_ROOT: home },
      ...{ METRICS_PROMETHEUS_HOST: '127.0.0.1', METRICS_PROMETHEUS_PORT: String(metrics) },
    },
  });
  await orStop(component, async () => {
    for (const { kind, name } of configurations.map(nameOf)) {
      const path = `${WEBHOOKS}/${kind.toLowerCase()}s/${name}`;
      const filled = await cluster.waitFor(`rules in ${name}`, async () => {
        const { body } = await cluster.request('GET', path);
        return listAt(body, 'webhooks').every((hook) => listAt(hook, 'rules').length > 0) && body;
      });
      const called = withWebhooks(filled, calledHere);
      await cluster.apply(stringify({ ...called, metadata: { name: `${name}.here` } }));
    }
  });
  return component;
}

type Hook = (hook: unknown) => unknown;

const silenced: Hook = (hook) => Object.assign({}, hook, { matchConditions: [{ name: 'never', expression: 'false' }] });

const calledHere: Hook = (hook) => {
  const caBundle = at(hook, 'clientConfig', 'caBundle');
  const url = `${POLICY_CONTROLLER}${at(hook, 'clientConfig', 'service', 'path')}`;
  return Object.assign({}, hook, { matchConditions: [], clientConfig: { url, caBundle } });
};

const withWebhooks = (configuration: unknown, change: Hook) =>
  Object.assign({}, configuration, { webhooks: listAt(configuration, 'webhooks').map(change) });

async function shippedConfigurations(): Promise<unknown[]> {
  const documents = parseAllDocuments(await readFile(join(binaries(), 'policy-controller-crds.yaml'), 'utf8'));
  return documents
    .map((document): unknown => document.toJS())
    .filter((one) => String(at(one, 'kind')).endsWith('WebhookConfiguration'));
}

const nameOf = (one: unknown) => ({ kind: String(at(one, 'kind')), name: String(at(one, 'metadata', 'name')) });

const object = (apiVersion: string, kind: string, name: string, namespace?: string) => ({
  ...{ apiVersion, kind, metadata: { name, ...(namespace === undefined ? {} : { namespace }) } },
});
const configMap = (namespace: string, name: string) => object('v1', 'ConfigMap', name, namespace);

async function orStop(component: Component, act: () => Promise<unknown>): Promise<void> {
  try {
    await act();
  } catch (error) {
    await component.stop();
    throw error;
  }
}

/** Writes the policy of docs/examples/kyverno.yaml so that Kyverno asks `trust` and not the public Sigstore. */
export async function trusting(policy: string, trust: Trust): Promise<string> {
  const root = (await readFile(trust.root)).toString('base64');
  const tuf = `        tuf: {mirror: "${trust.mirror}", root: {data: "${root}"}}\n`;
  return policy.replace('      cosign:\n', (line) => line + tuf);
}
