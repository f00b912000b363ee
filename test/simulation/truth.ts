import { ARCHITECTURE_GATE, ARCHITECTURE_LABEL, ARCHITECTURES_ANNOTATION } from '../../src/names.ts';
import { at, type JsonObject, object, objects, text } from '../simulator/json.ts';
import { uidOf } from '../simulator/objects/store.ts';
import type { ModelServer } from './api-server.ts';
import type { ModelRegistry } from './registry.ts';

/** The key of archaware's taints in the simulation. */
export const TAINT_KEY = 'supported-arch';

/**
 * The architectures that are right for an object. While images and settings change, an earlier or a later decision may be the one in
 * force: it has all of `least` and nothing outside of `most`.
 */
export type Right = { readonly least: readonly string[]; readonly most: readonly string[] };

/** What is right in a history, from what happened in it. */
export type Truth = {
  /** Undefined if the registry does not have one of the images. */
  ofImages(images: readonly string[]): Right | undefined;
  /** The same for a pod, whose author may have stated its architectures. */
  ofPod(pod: JsonObject): Right | undefined;
  /** Records that pods are restricted from now on if a policy and its namespace meet, or that DaemonSets are ignored. */
  selected(what: 'policy' | 'namespace' | 'daemons'): void;
  /** Records that the restriction is over for every pod that is not bound. */
  unrestricted(): void;
  /** Whether pods were restricted at some time. */
  wasRestricted(): boolean;
  wasSelected(what: 'policy' | 'namespace' | 'daemons'): boolean;
  /** Records that a node reported another architecture than before. */
  reported(uid: string): void;
};

const ALL = ['amd64', 'arm64', 's390x'];
/** What the policy allows. */
const ALLOWED = ['arm64'];

/** Creates the truth for one history. */
export function createTruth(registry: ModelRegistry, server: () => ModelServer): Truth {
  const selected = new Set<string>();
  let isRestricted = false;
  const unsteady = new Set<string>();

  const allowed = (names: readonly string[]) => (isRestricted ? names.filter((name) => ALLOWED.includes(name)) : names);

  function ofImages(images: readonly string[]): Right | undefined {
    const always = images.map(registry.always);
    if (always.some((set) => set === undefined)) return undefined;
    return {
      least: allowed(ALL.filter((name) => always.every((set) => set?.includes(name)))),
      most: ALL.filter((name) => images.every((image) => registry.sometimes(image).includes(name))),
    };
  }

  /** The architectures of the nodes. A node that reported another one than before proves nothing. */
  function ofCluster(): Right {
    const steady = server()
      .all('v1', 'nodes')
      .filter((node) => !unsteady.has(uidOf(node)))
      .map((node) => text(at(node, 'status', 'nodeInfo', 'architecture')));
    return { least: allowed(ALL.filter((name) => steady.includes(name))), most: ALL };
  }

  return {
    ofImages,
    ofPod: (pod) =>
      at(pod, 'metadata', 'annotations', ARCHITECTURES_ANNOTATION) ? ofCluster() : ofImages(imagesOf(object(pod.spec))),
    selected(what) {
      selected.add(what);
      isRestricted = selected.has('policy') && selected.has('namespace');
    },
    unrestricted() {
      isRestricted = false;
    },
    wasRestricted: () => selected.has('policy') && selected.has('namespace'),
    wasSelected: (what) => selected.has(what),
    reported: (uid) => void unsteady.add(uid),
  };
}

/** The images of the containers of a spec. */
export function imagesOf(spec: JsonObject): string[] {
  return objects(spec.containers).map(({ image }) => text(image));
}

/** The images of a spec as one text. */
export function imagesKey(spec: JsonObject): string {
  return imagesOf(spec).join();
}

/** The values of archaware's tolerations in a spec. */
export function oursOf(spec: JsonObject): string[] {
  return objects(spec.tolerations).flatMap(({ key, value }) => (key === TAINT_KEY ? text(value) : []));
}

/** Whether a pod has archaware's gate. */
export function isGated(pod: JsonObject): boolean {
  return objects(at(pod, 'spec', 'schedulingGates')).some(({ name }) => name === ARCHITECTURE_GATE);
}

/** Whether a pod is being deleted. */
export function isEnding(pod: JsonObject): boolean {
  return at(pod, 'metadata', 'deletionTimestamp') !== undefined;
}

/** The architectures that the node affinity of a pod requires; undefined: it requires none. */
export function requiredOf(pod: JsonObject): readonly string[] | undefined {
  const required = at(pod, 'spec', 'affinity', 'nodeAffinity', 'requiredDuringSchedulingIgnoredDuringExecution');
  const [term] = objects(at(required, 'nodeSelectorTerms'));
  const values = objects(term?.matchExpressions).find(({ key }) => key === ARCHITECTURE_LABEL)?.values;
  return Array.isArray(values) ? values.map(String) : undefined;
}

/** The values of archaware's taints on a node. */
export function taintsOf(node: JsonObject): string[] {
  return objects(at(node, 'spec', 'taints')).flatMap(({ key, value }) => (key === TAINT_KEY ? text(value) : []));
}
