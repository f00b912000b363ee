import { explainPlacement, imagesToAsk } from '../../../src/analysis/explain/explain.ts';
import type { Explanation } from '../../../src/analysis/explain/explanation.ts';
import type { ExplainInput } from '../../../src/analysis/explain/input.ts';
import type { LookupResult } from '../../../src/analysis/lookup-results.ts';
import { readWorkload } from '../../../src/analysis/workloads/workload.ts';
import type { JsonObject } from '../../../src/kit/json.ts';
import { readNode } from '../../../src/placement/nodes/node.ts';
import type { Settings } from '../../../src/placement/settings.ts';
import { known, settings, taint, toleration } from '../../placement/objects.ts';

/** What can be looked up in both architectures of the cluster. */
export const BOTH = 'amd64,arm64';
export const IGNORED = { labels: { 'archaware.dev/ignore': 'true' } };

/** What is explained. */
export type Given = {
  /**
   * The lookup result of each of the pod's images: platforms (`arm64` for `linux/arm64`), or an error code after `!`. A text has those of
   * the images `a`, `b` and so on: `amd64,arm64 !denied`.
   */
  readonly images?: string | Readonly<Record<string, string | LookupResult>>;
  readonly kind?: 'Pod' | 'Deployment' | 'DaemonSet';
  readonly applied?: boolean;
  readonly isTemplate?: boolean;
  readonly spec?: JsonObject;
  readonly metadata?: JsonObject;
  readonly status?: JsonObject;
  readonly apiVersion?: string;
  readonly settings?: Partial<Settings>;
  /** `unreadable`: they may not be listed. */
  readonly nodes?: readonly JsonObject[] | 'unreadable';
  readonly controller?: ExplainInput['controller'];
  readonly secrets?: readonly { readonly name: string; readonly problem?: string }[];
  readonly patience?: ExplainInput['patience'];
  readonly said?: ExplainInput['said'];
  readonly refusal?: ExplainInput['refusal'];
  readonly namespace?: { readonly name: string; readonly labels: Readonly<Record<string, string>> };
};

/** The spec of a pod with these tolerations of archaware. */
export function tolerating(...values: readonly string[]): JsonObject {
  return { tolerations: values.map((value) => toleration(`supported-arch=${value}:NoSchedule`)) };
}

/** A node, by default with archaware's taint. */
export function node(name: string, architecture: string, more: JsonObject = {}, labels: JsonObject = {}): JsonObject {
  const taints = [taint(`supported-arch=${architecture}:NoSchedule`)];
  return {
    metadata: { name, labels },
    spec: { taints, ...more },
    status: { nodeInfo: { architecture }, conditions: [{ type: 'Ready', status: 'True' }] },
  };
}

const CLUSTER = [node('amd-1', 'amd64'), node('arm-1', 'arm64'), node('arm-2', 'arm64')];

/** Returns the input of an explanation. */
export function inputOf(given: Given): ExplainInput {
  const { kind = 'Pod', metadata = {}, status = {}, namespace = { name: 'shop', labels: {} } } = given;
  const containers = Object.keys(imagesOf(given)).map((image) => ({ image }));
  const spec = { containers, ...given.spec };
  const workload = readWorkload({
    kind,
    apiVersion: given.apiVersion,
    metadata: { name: 'p', namespace: namespace.name, ...metadata },
    spec: kind === 'Pod' ? spec : { template: { metadata, spec } },
    status,
  });
  if (workload === undefined) throw new Error(`there is no ${kind}`);
  return {
    workload,
    applied: given.applied ?? kind === 'Pod',
    namespace: { preferred: undefined, ...namespace },
    settings: settings(given.settings),
    nodes: given.nodes === 'unreadable' ? undefined : (given.nodes ?? CLUSTER).map(readNode),
    controller: given.controller,
    namesOf: (image) => [`registry.example.com/${image}`],
    isTemplate: given.isTemplate ?? false,
    patience: given.patience,
    said: given.said,
    refusal: given.refusal,
  };
}

function imagesOf({ images = {} }: Given): Readonly<Record<string, string | LookupResult>> {
  if (typeof images !== 'string') return images;
  return Object.fromEntries(images.split(' ').map((text, index) => ['abcdef'.charAt(index), text]));
}

function lookup(text: string | LookupResult): LookupResult {
  if (typeof text !== 'string') return text;
  if (text.startsWith('!')) {
    // `!denied pull secret "old"`: the login that was refused.
    const [code = '', ...login] = text.slice(1).split(' ');
    const refused = login.length === 0 ? {} : { login: login.join(' ') };
    return { error: { code, message: 'no', registry: 'registry.example.com', ...refused } };
  }
  const answer = known(text.replaceAll(/(^|,)(\w+)(?=,|$)/g, '$1linux/$2'));
  const platforms = answer.kind === 'known' ? answer.platforms : [];
  return { platforms, skipped: [], digest: 'sha256:1' };
}

/** Explains a pod or a workload with these lookup results. */
export function explained(given: Given): Explanation {
  const { secrets = [] } = given;
  const images = imagesOf(given);
  const input = inputOf(given);
  // Keyed by the image objects themselves, as in the command.
  const found = new Map(
    imagesToAsk(input).map((asked) => {
      const text = images[asked.image];
      if (text === undefined) throw new Error(`${asked.image} was asked for`);
      return [asked, lookup(text)];
    }),
  );
  return explainPlacement(input, {
    lookupOf: (image) => found.get(image),
    pullSecrets: secrets,
    sourceOf: (key, policy) => ({ value: key, source: policy ?? 'default' }),
  });
}
