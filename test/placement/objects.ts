import { loadConfig } from '../../src/config/load.ts';
import { toSettings } from '../../src/config/settings.ts';
import type { JsonObject } from '../../src/kit/json.ts';
import type { Platform } from '../../src/kit/platform.ts';
import { type Decision, decide, type Knowledge, type Placement } from '../../src/placement/decide.ts';
import type { ImageAnswer } from '../../src/placement/images.ts';
import { type Node, readNode } from '../../src/placement/nodes/node.ts';
import type { DaemonSet } from '../../src/placement/objects/daemonset.ts';
import { type PodTemplate, readTemplate } from '../../src/placement/objects/pod.ts';
import type { Policy, Settings } from '../../src/placement/settings.ts';
import { readDaemonSetSubject, readTemplateSubject, type Subject } from '../../src/placement/subject.ts';

const DEFAULTS = toSettings(loadConfig({ file: undefined, environment: {}, flags: {} }).config);

/** The settings of the default configuration, with these changes. */
export function settings(given: Partial<Settings> = {}): Settings {
  return { ...DEFAULTS, ...given };
}

/** A policy with these settings, for every pod unless `selects` says otherwise. */
export function policyOf(name: string, given: Partial<Settings>, selects: Partial<Policy> = {}): Policy {
  const everything = { namespaces: undefined, namespaceSelector: [], podSelector: [] };
  return { name, ...everything, ...selects, settings: { ...settings(given), policy: name } };
}

/** A template with one container for each image; `spec` and `metadata` as the API server would send them. */
export function template(images: readonly string[], spec: JsonObject = {}, metadata: JsonObject = {}): PodTemplate {
  return readTemplate(metadata, { containers: images.map((image) => ({ image })), ...spec });
}

/** `linux/amd64,linux/arm64` as an answer that is known. */
export function known(platforms: string): ImageAnswer {
  return { kind: 'known', platforms: platforms === '' ? [] : platforms.split(',').map(platform) };
}

function platform(text: string): Platform {
  const [os = '', architecture = '', variant] = text.split('/');
  return { os, architecture, ...(variant === undefined ? {} : { variant }) };
}

/** A digest that stands for a name. */
export function digest(name: string): string {
  return `sha256:${Buffer.from(name).toString('hex').padEnd(64, '0').slice(0, 64)}`;
}

export const pending: ImageAnswer = { kind: 'pending' };

/** A failed lookup, this many seconds after its first failure, to be retried after 10 s. */
export function failed(sinceSeconds: number, retryInMs = 10_000): ImageAnswer {
  return {
    kind: 'failed',
    code: 'unavailable',
    message: 'connection refused',
    registry: 'registry.example.com',
    sinceMs: sinceSeconds * 1000,
    retryInMs,
  };
}

/** A template, and what is known at its decision. */
export type Case = Knowledge & {
  readonly template: PodTemplate;
  readonly namespace: string;
  readonly settings: Settings;
};

/** What decides in a case. `preferred`: the annotation of the namespace. */
export function subjectOf(
  { template, namespace, settings }: Pick<Case, 'template' | 'namespace' | 'settings'>,
  preferred?: string,
): Subject {
  return readTemplateSubject(template, { name: namespace, labels: {}, preferred }, settings);
}

/** What decides about the template of a DaemonSet. */
export function daemonSetSubject(daemonSet: DaemonSet, given: Settings): Subject {
  return readDaemonSetSubject(daemonSet, { name: 'shop', labels: {} }, given);
}

/** A placement by known images. */
export function place(architectures: readonly string[], more: Partial<Placement> = {}): Placement {
  return {
    ...{ kind: 'place', architectures, basis: 'images', followsCluster: false, os: undefined },
    ...{ failed: [], unknown: [], images: [], ...more },
  };
}

export function decideCase(given: Case): Decision {
  return decide(subjectOf(given), given);
}

/** A case: answers by image, a cluster of two architectures, a user's namespace. */
export function input(
  answers: Readonly<Record<string, ImageAnswer>>,
  given: Partial<Omit<Case, 'settings'>> & { settings?: Partial<Settings> } = {},
): Case {
  return {
    template: template(Object.keys(answers)),
    namespace: 'shop',
    clusterArchitectures: ['amd64', 'arm64'],
    namesOf: (image) => [`docker.io/library/${image.split(':')[0]}`, `docker.io/library/${image}`],
    answerOf({ image }) {
      const answer = answers[image];
      if (answer === undefined) throw new Error(`${image} was asked for`);
      return answer;
    },
    waitedMs: 0,
    ...given,
    settings: settings(given.settings),
  };
}

/** `key=value:effect` as the object of a taint; a field of its own in it shows that it is kept as it is. */
export function taint(text: string, more: JsonObject = {}): JsonObject {
  const [, key = '', value, effect = ''] = /^([^=:]+)(?:=([^:]*))?:(.+)$/.exec(text) ?? [];
  return { key, ...(value === undefined ? {} : { value }), effect, ...more };
}

/** `key=value:effect` as a toleration in archaware's form. */
export function toleration(text: string) {
  const [, key = '', value = '', effect = ''] = /^([^=]+)=([^:]*):(.+)$/.exec(text) ?? [];
  return { key, operator: 'Equal', value, effect } as const;
}

/** A node as it is read from the API server. */
export function node(given: {
  architecture?: string;
  taints?: readonly JsonObject[];
  managed?: readonly string[] | string;
  labels?: JsonObject;
  deleting?: boolean;
  /** Default: ready. */
  ready?: boolean;
  uid?: string;
}): Node {
  const { managed } = given;
  const annotation = typeof managed === 'string' ? managed : JSON.stringify({ taints: managed });
  return readNode({
    metadata: {
      name: 'n1',
      uid: given.uid ?? 'u1',
      labels: given.labels ?? {},
      ...(managed === undefined ? {} : { annotations: { 'archaware.dev/managed': annotation } }),
      ...(given.deleting ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
    },
    spec: given.taints === undefined ? {} : { taints: given.taints },
    status: {
      nodeInfo: { architecture: given.architecture ?? 'arm64' },
      conditions: [{ type: 'Ready', status: given.ready === false ? 'Unknown' : 'True' }],
    },
  });
}
