import type { Context } from '../../app/surroundings.ts';
import { isObject, type JsonObject, listAt, objectAt, stringAt } from '../../kit/json.ts';
import type { ApiClient } from '../../kube/api-client.ts';
import { ApiError } from '../../kube/errors.ts';
import { find, readAll } from '../../kube/read.ts';
import { ARCHITECTURES_ANNOTATION, MANAGED_ANNOTATION, WEBHOOK_CONFIGURATION } from '../../names.ts';
import { isSystemNamespace, settingsFor, skipTemplate } from '../../placement/eligibility.ts';
import { onlySchedulable } from '../../placement/images.ts';
import { architecturesOf, type Node } from '../../placement/nodes/node.ts';
import { type Namespace, readNamespace } from '../../placement/objects/namespace.ts';
import { skipNote } from '../../placement/reasons.ts';
import type { Settings } from '../../placement/settings.ts';
import { type Facts, mapped, type Read, tried, type WebhookFact } from './facts.ts';

const NAMESPACES = '/api/v1/namespaces';

type Test = {
  /** The namespace of `-n`; undefined: one is chosen. */
  readonly namespace: string | undefined;
  /** The namespace of the installation, whose pods are not reviewed. */
  readonly own: string;
  readonly nodes: readonly Node[];
  readonly settings: Settings;
};

/** Whether the API server calls the webhook for pods; undefined: it has no configuration to call it. */
type Hooks = { readonly reviewsPods: boolean } | undefined;

const WITHOUT_CONFIGURATION: WebhookFact = {
  state: 'not-reached',
  why: `there is no MutatingWebhookConfiguration ${WEBHOOK_CONFIGURATION}, so the API server calls no webhook`,
};

/** Reads the configuration of the webhook, and lets the API server create a pod as a dry run, to see whether the webhook changes it. */
export async function lookAtWebhook(
  { config, signal }: Context,
  client: ApiClient,
  test: Test,
): Promise<Pick<Facts, 'webhook' | 'webhookConfiguration'>> {
  if (!config.webhook.enabled) {
    return { webhook: { state: 'off', why: '' }, webhookConfiguration: { kind: 'read', value: true } };
  }
  const hooks = await readHooks(client, signal);
  const webhook = await testWebhook(client, test, hooks, signal);
  return { webhook, webhookConfiguration: mapped(hooks, (found) => found !== undefined) };
}

function readHooks(client: ApiClient, signal: AbortSignal): Promise<Read<Hooks>> {
  const path = `/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/${WEBHOOK_CONFIGURATION}`;
  const right = `get mutatingwebhookconfigurations.admissionregistration.k8s.io ${WEBHOOK_CONFIGURATION}`;
  return tried(right, async () => {
    const found = await find(client, path, signal);
    return found && { reviewsPods: reviewsPods(found) };
  });
}

async function testWebhook(
  client: ApiClient,
  test: Test,
  hooks: Read<Hooks>,
  signal: AbortSignal,
): Promise<WebhookFact> {
  if (hooks.kind === 'read' && hooks.value === undefined) return WITHOUT_CONFIGURATION;
  if (hooks.kind === 'read' && hooks.value?.reviewsPods === false)
    return unknown('it is called for DaemonSets only; the line guard says whether that works');
  if (test.namespace !== undefined) return testIn(client, test.namespace, test, signal);
  // Which namespaces are reviewed is not known: a pod that comes back unchanged would say nothing.
  if (hooks.kind === 'unread') return unknown('-n NAMESPACE tests it there with a dry run of a pod');
  const namespaces = await tried('list namespaces', () => readAll(client, NAMESPACES, readNamespace, signal));
  if (namespaces.kind === 'unread') return unknown(namespaces.why);
  const chosen = namespaceToTest(namespaces.value, test.own, test.settings);
  if (chosen !== undefined) return testIn(client, chosen, test, signal);
  return unknown('no namespace was found whose pods are reviewed; -n NAMESPACE tests it there');
}

const unknown = (why: string): WebhookFact => ({ state: 'unknown', why });

async function testIn(
  client: ApiClient,
  name: string,
  { own, nodes, settings }: Test,
  signal: AbortSignal,
): Promise<WebhookFact> {
  if (name === own) return unknown(`pods of ${name} are not reviewed; give another namespace`);
  const path = `${NAMESPACES}/${encodeURIComponent(name)}`;
  try {
    const namespace = { ...readNamespace((await find(client, path, signal)) ?? {}), name };
    const applied = settingsFor(settings, { namespace, labels: {} });
    const skipped = skipTemplate({ labels: {} }, namespace, applied);
    if (skipped !== undefined) return unknown(`pods of ${name} are left alone: ${skipNote(skipped)}`);
    const [architecture = 'amd64'] = [...onlySchedulable(architecturesOf(nodes), applied), ...applied.schedulable];
    // The annotation states the architecture, so that the webhook changes the pod and asks no registry.
    const annotations = { [ARCHITECTURES_ANNOTATION]: architecture };
    const body = testPod({ generateName: 'archaware-status-', annotations });
    const pod = await client.request('create', `${path}/pods?dryRun=All`, { signal, body });
    return judgeAnswer(isObject(pod) ? pod : {}, name);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return judgeRefusal(error, name);
  }
}

/**
 * Returns the namespace in which the webhook is tested if the user names none: `default`, or the first other one by name whose pods
 * are reviewed. Not a system namespace, so that a test never meets what guards those. Undefined: there is none.
 */
export function namespaceToTest(
  namespaces: readonly Pick<Namespace, 'name' | 'labels'>[],
  own: string,
  settings: Settings,
): string | undefined {
  const reviewed = namespaces.filter((namespace) => {
    const { name } = namespace;
    if (name === own || isSystemNamespace(name, settings)) return false;
    const labels = {};
    return skipTemplate({ labels }, namespace, settingsFor(settings, { namespace, labels })) === undefined;
  });
  const names = reviewed.map(({ name }) => name).sort();
  return names.includes('default') ? 'default' : names[0];
}

/** Whether the API server calls the webhook for new pods. `configuration`: a MutatingWebhookConfiguration. */
export function reviewsPods(configuration: JsonObject): boolean {
  const rules = (listAt(configuration, 'webhooks') ?? []).flatMap((hook) => listAt(hook, 'rules') ?? []);
  return rules.some(({ resources }) => Array.isArray(resources) && resources.includes('pods'));
}

/**
 * Returns a pod for dry runs: the API server never stores it (`dryRun=All`). It meets the Pod Security level `restricted` and names
 * resources, so that neither refuses it.
 */
export function testPod(metadata: JsonObject, image = 'registry.invalid/archaware-status:none') {
  const resources = { cpu: '1m', memory: '1Mi' };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata,
    spec: {
      automountServiceAccountToken: false,
      securityContext: { runAsNonRoot: true, runAsUser: 65532, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          name: 'none',
          image,
          resources: { requests: resources, limits: resources },
          securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
        },
      ],
    },
  };
}

/**
 * Judges the API server's answer: the webhook records what it adds to a pod in the annotation `archaware.dev/managed`, which
 * nobody else writes. With the failure policy Ignore a webhook that is not reached leaves the pod unchanged.
 */
function judgeAnswer(pod: JsonObject, namespace: string): WebhookFact {
  const marked = stringAt(objectAt(objectAt(pod, 'metadata'), 'annotations'), MANAGED_ANNOTATION) !== undefined;
  if (marked) return { state: 'reached', why: `a pod in ${namespace}, created as a dry run, came back changed` };
  return {
    state: 'not-reached',
    why: `a pod in ${namespace}, created as a dry run, came back unchanged: the API server does not reach the webhook, or the MutatingWebhookConfiguration is missing or leaves ${namespace} out`,
  };
}

function judgeRefusal(error: ApiError, namespace: string): WebhookFact {
  if (/failed calling webhook "[^"]*archaware/.test(error.message)) return { state: 'not-reached', why: error.message };
  if (error.status === 403 && /cannot create resource "pods"/.test(error.message)) {
    return unknown(`needs the right to create pods in namespace ${namespace}`);
  }
  return unknown(`the API server refused the test: ${error.message}`);
}
