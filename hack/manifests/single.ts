import { readFile } from 'node:fs/promises';
import type { GeneratedFile } from '../write-between.ts';
import { CLEAN, FROM_SOURCES } from './heads.ts';
import { kustomize, type ManifestObject } from './kustomize.ts';
import { readSources, writeObjects } from './sources.ts';

const MANIFESTS = new URL('../../manifests/', import.meta.url);
const LABELS = new URL('../../labels/', import.meta.url);

const END = `# To remove everything again:
#   kubectl -n archaware scale deployment archaware-controller --replicas=0
#   ${CLEAN} && kubectl delete --ignore-not-found -f`;
const KEY = `# If you change taints.key, change the configuration (ConfigMap) and the Deployment's own toleration. The policies archaware-guard-*
# recognize taints and tolerations of archaware by their form; docs/security.md says how to limit them to one key.
${FROM_SOURCES}`;

/** The order for people who read and apply the manifests: rights and policies before the objects that use them. */
const KINDS = [
  'Namespace',
  'ServiceAccount',
  'ClusterRole',
  'Role',
  'ConfigMap',
  'CustomResourceDefinition',
  'ValidatingAdmissionPolicy',
  'MutatingAdmissionPolicy',
  'Service',
  'PodDisruptionBudget',
  'Deployment',
  'MutatingWebhookConfiguration',
];

const SINGLE = [
  {
    name: 'archaware-controller.yaml',
    from: 'overlays/taints',
    head: `# archaware-controller for Kubernetes 1.36 and later: kubectl apply -f archaware-controller.yaml
# (before that: archaware-controller-1.30.yaml)
${END} archaware-controller.yaml
${KEY}`,
  },
  {
    name: 'archaware-controller-1.30.yaml',
    from: 'overlays/taints-1.30',
    head: `# archaware-controller for Kubernetes 1.30 to 1.35: kubectl apply -f archaware-controller-1.30.yaml
# The admission webhook keeps tolerations in DaemonSets; on later versions a policy in the API server does.
${END} archaware-controller-1.30.yaml
${KEY}`,
  },
  {
    name: 'archaware-controller-observe.yaml',
    from: 'overlays/observe',
    head: `# archaware-controller in placement.mode observe: kubectl apply -f archaware-controller-observe.yaml
# It decides, counts and writes Events, and has no right to write anything else: docs/first-week.md.
# Where another mode ran before, first run clean, and delete the objects of that mode. Take everything away again with:
#   kubectl delete --ignore-not-found -f archaware-controller-observe.yaml
${FROM_SOURCES}`,
  },
  {
    name: 'publish.yaml',
    from: 'publish',
    head: `# Placement of pods as they are created, on top of archaware-controller.yaml: kubectl apply -f publish.yaml (Kubernetes 1.36 and later)
# It has an effect once the configuration (ConfigMap archaware-controller) has placement: {publish: true}; then restart the Deployment.
# archaware-controller clean removes the policy and what was published. To stop it, delete this file's objects first: kubectl delete --ignore-not-found -f publish.yaml
# Generated from manifests/kustomize/publish (hack/manifests.ts).`,
  },
  {
    name: 'webhook.yaml',
    from: 'webhook',
    head: `# The admission webhook of archaware-controller, on top of one of the single manifests: kubectl apply -f webhook.yaml
# It has an effect once the configuration (ConfigMap archaware-controller) has webhook: {enabled: true}; then restart the
# Deployment. archaware clean removes it again, and all gates. With cert-manager: manifests/kustomize/overlays/cert-manager.
# Generated from manifests/kustomize/webhook (hack/manifests.ts).`,
  },
] as const;

/** Returns the single manifests, and the copies of the label rules that kustomize may read. */
export async function singleManifests(): Promise<GeneratedFile[]> {
  const sources = await readSources(new URL('kustomize/', MANIFESTS));
  const manifests = SINGLE.map(async ({ name, from, head }) => {
    const objects = await kustomize(new URL(`kustomize/${from}/`, MANIFESTS));
    const sorted = [...objects].sort(
      (one, other) => rank(one.kind) - rank(other.kind) || placeOf(one).localeCompare(placeOf(other)),
    );
    return { file: new URL(name, MANIFESTS), content: `${head}\n${writeObjects(sorted, sources)}` };
  });
  // kustomize reads no file outside its folder.
  const copies = ['accelerators/edgetpu', 'accelerators/ncs2'].map(async (rules) => ({
    file: new URL(`kustomize/components/labels/${rules}`, MANIFESTS),
    content: await readFile(new URL(rules, LABELS), 'utf8'),
  }));
  return Promise.all([...manifests, ...copies]);
}

/** Sorts by name; an object comes before its binding. */
function placeOf({ kind, metadata }: ManifestObject): string {
  return `${metadata.name} ${kind}`;
}

/** A binding comes directly after what it binds. */
function rank(kind: string): number {
  const found = KINDS.indexOf(kind.replace(/Binding$/, ''));
  return found === -1 ? KINDS.length : found;
}
