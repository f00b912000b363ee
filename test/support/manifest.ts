import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { parseAllDocuments, stringify } from 'yaml';
import { at, isObject, type JsonObject, object, objects, text } from '../simulator/json.ts';
import { filesBelow } from './platforms.ts';

const MANIFEST = new URL('../../manifests/archaware-controller.yaml', import.meta.url);
/** The right for pods.onWrongNode: evict. */
const EVICT = new URL('../../manifests/kustomize/components/evict/role.yaml', import.meta.url);
const MANIFEST_OF_1_30 = new URL('../../manifests/archaware-controller-1.30.yaml', import.meta.url);
const MANIFEST_OF_OBSERVE = new URL('../../manifests/archaware-controller-observe.yaml', import.meta.url);
const WEBHOOK_MANIFEST = new URL('../../manifests/webhook.yaml', import.meta.url);

/** What the policies that guard our account let through, where that is not what the manifest says. */
export type Guard = {
  /** `key:effect` of what `taints.key` and `taints.effect` are set to. */
  readonly taints?: readonly string[];
  /** The domains of the labels of `nodeLabels.directory`. */
  readonly labels?: readonly string[];
  /** The keys of `pods.matchNodeLabels`, in addition to architecture and operating system. */
  readonly nodeLabels?: readonly string[];
};

/** The manifest without its Deployment, because the test runs the controller itself, with the right to evict. */
export async function manifestWithoutDeployment(guard: Guard = {}): Promise<string> {
  return [await manifestWithout(['Deployment'], MANIFEST, guard), await readFile(EVICT, 'utf8')].join('---\n');
}

/** The manifest for Kubernetes 1.30 to 1.35, without its webhook too, which nobody would answer. */
export async function manifestOf130(guard: Guard = {}): Promise<string> {
  const manifest = await manifestWithout(['Deployment', 'MutatingWebhookConfiguration'], MANIFEST_OF_1_30, guard);
  return [manifest, await readFile(EVICT, 'utf8')].join('---\n');
}

/** The manifest for placement.mode observe, without its Deployment. */
export function manifestOfObserve(): Promise<string> {
  return manifestWithout(['Deployment'], MANIFEST_OF_OBSERVE, {});
}

/** To read a manifest takes longer than most tests do. */
const made = new Map<string, Promise<string>>();

function manifestWithout(kinds: readonly string[], manifest: URL, guard: Guard): Promise<string> {
  const key = JSON.stringify([kinds, manifest, guard]);
  const found = made.get(key) ?? makeManifest(kinds, manifest, guard);
  made.set(key, found);
  return found;
}

async function makeManifest(kinds: readonly string[], manifest: URL, guard: Guard): Promise<string> {
  const documents = parseAllDocuments(await readFile(manifest, 'utf8'));
  return documents
    .map((document) => ({ object: object(document.toJS()), text: String(document) }))
    .filter(({ object }) => !kinds.includes(text(object.kind)))
    .map(({ object, text }) => (object.kind === 'ValidatingAdmissionPolicy' ? stringify(guarded(object, guard)) : text))
    .join('---\n');
}

/** The policy with other values in its variables. */
export function guarded(policy: JsonObject, { taints, labels, nodeLabels }: Guard): JsonObject {
  const values: Readonly<Record<string, readonly string[] | undefined>> = {
    taints,
    labels,
    nodeLabels: nodeLabels && ['kubernetes.io/arch', 'kubernetes.io/os', ...nodeLabels],
  };
  const spec = object(policy.spec);
  const variables = objects(spec.variables).map((variable) => {
    const value = values[text(variable.name)];
    return value === undefined ? variable : { ...variable, expression: JSON.stringify(value) };
  });
  return { ...policy, spec: { ...spec, variables } };
}

/**
 * The manifest of the webhook with an address of this machine in the place of the Service. `changed`: what each webhook
 * of another configuration has of its own.
 */
export async function webhookManifest(url: string, changed: JsonObject = {}): Promise<string> {
  const documents = parseAllDocuments(await readFile(WEBHOOK_MANIFEST, 'utf8')).map((document) => document.toJS());
  const here = documents.map((object) =>
    at(object, 'kind') === 'MutatingWebhookConfiguration'
      ? {
          ...object,
          webhooks: objects(at(object, 'webhooks')).map((webhook) => ({
            ...webhook,
            clientConfig: { url },
            ...changed,
          })),
        }
      : object,
  );
  return here.map((object) => stringify(object)).join('---\n');
}

/** The documents of every file below manifests/, with its path in it: objects and lists of patches. The chart's are its policies, as its templates are no YAML. */
export const manifestDocuments = (): readonly (readonly [file: string, document: unknown])[] =>
  filesBelow('manifests')
    .filter((file) => file.endsWith('.yaml') && !file.includes('/templates/'))
    .flatMap((file) =>
      parseAllDocuments(readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8')).map(
        (document) => [file.replace('manifests/', ''), document.toJS()] as const,
      ),
    );
export const manifestObjects = () =>
  manifestDocuments().flatMap(([file, found]) => (isObject(found) ? [[file, found] as const] : []));
