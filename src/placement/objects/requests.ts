import { type JsonObject, listAt, objectAt } from '../../kit/json.ts';

/** What one pod requests: cores and bytes. */
export type Requests = { readonly cpu: number; readonly memory: number };

const NOTHING: Requests = { cpu: 0, memory: 0 };

const FACTORS: ReadonlyMap<string, number> = new Map([
  ['n', 1e-9],
  ['u', 1e-6],
  ['m', 1e-3],
  ['', 1],
  ...['k', 'M', 'G', 'T', 'P', 'E'].map((suffix, index) => [suffix, 1000 ** (index + 1)] as const),
  ...['Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'].map((suffix, index) => [suffix, 1024 ** (index + 1)] as const),
]);

/** Reads a quantity of the API (`250m`, `1.5Gi`, `2e3`, or a number as YAML has it). Anything else counts as 0. */
export function readQuantity(value: unknown): number {
  const text = typeof value === 'number' ? String(value) : typeof value === 'string' ? value.trim() : '';
  const parts = /^(\+?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?:([eE][+-]?[0-9]{1,2})|([numkMGTPE]|[KMGTPE]i)?)$/.exec(text);
  if (parts === null) return 0;
  const [, number = '', exponent = '', suffix = ''] = parts;
  return Number(number + exponent) * (FACTORS.get(suffix) ?? 0);
}

/**
 * Returns what the scheduler reserves for a pod with this spec (KEP-753 for sidecars, KEP-2837 for the pod's own resources): the
 * containers with the sidecars, or an init container with the sidecars that start before it if that is more; and the overhead of
 * the RuntimeClass, if the spec has it. A limit without a request counts as the request, as the API server does for pods.
 */
export function requestsOf(spec: JsonObject): Requests {
  const main = (listAt(spec, 'containers') ?? []).map(wantedBy).reduce(sum, NOTHING);
  let sidecars = NOTHING;
  let starting = NOTHING;
  for (const container of listAt(spec, 'initContainers') ?? []) {
    const wanted = wantedBy(container);
    if (container.restartPolicy === 'Always') sidecars = sum(sidecars, wanted);
    starting = most(starting, container.restartPolicy === 'Always' ? sidecars : sum(sidecars, wanted));
  }
  const all = most(sum(main, sidecars), starting);
  const own = amountsOf(spec);
  const reserved = { cpu: own.cpu ?? all.cpu, memory: own.memory ?? all.memory };
  const overhead = objectAt(spec, 'overhead');
  return sum(reserved, { cpu: readQuantity(overhead.cpu), memory: readQuantity(overhead.memory) });
}

function wantedBy(container: JsonObject): Requests {
  const { cpu = 0, memory = 0 } = amountsOf(container);
  return { cpu, memory };
}

/** Reads the `resources` of a container or of a pod; undefined where it says nothing. */
function amountsOf(holder: JsonObject): { cpu: number | undefined; memory: number | undefined } {
  const resources = objectAt(holder, 'resources');
  const [requests, limits] = [objectAt(resources, 'requests'), objectAt(resources, 'limits')];
  const amount = (name: 'cpu' | 'memory') => {
    const value = requests[name] ?? limits[name];
    return value === undefined || value === null ? undefined : readQuantity(value);
  };
  return { cpu: amount('cpu'), memory: amount('memory') };
}

function sum(one: Requests, other: Requests): Requests {
  return { cpu: one.cpu + other.cpu, memory: one.memory + other.memory };
}

function most(one: Requests, other: Requests): Requests {
  return { cpu: Math.max(one.cpu, other.cpu), memory: Math.max(one.memory, other.memory) };
}
