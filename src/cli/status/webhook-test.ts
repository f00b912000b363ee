import { type JsonObject, listAt, objectAt, stringAt } from '../../kit/json.ts';
import type { ApiError } from '../../kube/errors.ts';
import { MANAGED_ANNOTATION } from '../../names.ts';
import { isSystemNamespace, settingsFor, skipTemplate } from '../../placement/eligibility.ts';
import type { Namespace } from '../../placement/objects/namespace.ts';
import type { Settings } from '../../placement/settings.ts';
import type { WebhookFact } from './facts.ts';

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
export function judgeAnswer(pod: JsonObject, namespace: string): WebhookFact {
  const marked = stringAt(objectAt(objectAt(pod, 'metadata'), 'annotations'), MANAGED_ANNOTATION) !== undefined;
  if (marked) return { state: 'reached', why: `a pod in ${namespace}, created as a dry run, came back changed` };
  return {
    state: 'not-reached',
    why: `a pod in ${namespace}, created as a dry run, came back unchanged: the API server does not reach the webhook, or the MutatingWebhookConfiguration is missing or leaves ${namespace} out`,
  };
}

/** Judges a refusal of the API server. */
export function judgeRefusal(error: ApiError, namespace: string): WebhookFact {
  if (/failed calling webhook "[^"]*archaware/.test(error.message)) return { state: 'not-reached', why: error.message };
  if (error.status === 403 && /cannot create resource "pods"/.test(error.message)) {
    return { state: 'unknown', why: `needs the right to create pods in namespace ${namespace}` };
  }
  return { state: 'unknown', why: `the API server refused the test: ${error.message}` };
}
