import { isDeepStrictEqual } from 'node:util';
import type { Logger } from '../observability/log.ts';
import { withCompatible } from '../placement/images.ts';
import { type Node, reportedBy } from '../placement/nodes/node.ts';
import { type Config, schema } from './schema.ts';

/** A key that names architectures which no node of the cluster has: a typing error, or a pool that has no nodes now. */
export type Absent = { readonly key: string; readonly architectures: readonly string[] };

/**
 * Returns the keys of a configuration that name absent architectures, given the architectures of the cluster's nodes;
 * none if the cluster has no nodes.
 */
export function absentArchitectures(config: Config, cluster: readonly string[]): Absent[] {
  if (cluster.length === 0) return [];
  const { architectures, policies, images } = config;
  const named: (readonly [key: string, names: readonly string[]])[] = [
    ['architectures.schedulable', architectures.schedulable],
    [
      'architectures.compatible',
      Object.keys(architectures.compatible).filter((name) => !isDefault(name, architectures)),
    ],
    ['architectures.preferred', Object.keys(architectures.preferred)],
    ['architectures.fallback', architectures.fallback],
    ...policies.flatMap(({ schedulable = [], preferred = {}, fallback = [] }, index) => [
      [`policies[${index}].schedulable`, schedulable] as const,
      [`policies[${index}].preferred`, Object.keys(preferred)] as const,
      [`policies[${index}].fallback`, fallback] as const,
    ]),
    // An image may run on more architectures than the cluster has. Only an image that would run nowhere is suspicious.
    ...images.overrides.flatMap(({ architectures: names }, index) => {
      const able = withCompatible(new Set(names), architectures.compatible);
      const runsNowhere = !able.some((name) => cluster.includes(name));
      return runsNowhere ? [[`images.overrides[${index}].architectures`, names] as const] : [];
    }),
  ];
  return named.flatMap(([key, names]) => {
    const absent = names.filter((name) => !cluster.includes(name));
    return absent.length === 0 ? [] : { key, architectures: absent };
  });
}

/** `architectures.schedulable names riscv64, which no node of the cluster has (nodes: amd64, arm64)`. */
export function absentNote({ key, architectures }: Absent, cluster: readonly string[]): string {
  return `${key} names ${architectures.join(', ')}, which no node of the cluster has (nodes: ${cluster.join(', ')})`;
}

/** Nobody wrote the default value, so it is not a mistake. */
function isDefault(name: string, { compatible }: Config['architectures']): boolean {
  const byDefault = schema.shape.architectures.shape.compatible.parse(undefined);
  return isDeepStrictEqual(byDefault[name], compatible[name]);
}

/** Returns a line for each configuration key that names an architecture that no node has. */
export function absentNotes(config: Config, nodes: Iterable<Node>): string[] {
  const cluster = reportedBy(nodes);
  return absentArchitectures(config, cluster).map((absent) => absentNote(absent, cluster));
}

/** Creates a function that logs these lines once for each configuration. They are not errors: a pool may have no node now. */
export function absentArchitectureLog(log: Pick<Logger, 'warn'>): (config: Config, nodes: Iterable<Node>) => void {
  let last = '';
  return (config, nodes) => {
    const cluster = reportedBy(nodes);
    const absent = absentArchitectures(config, cluster);
    const id = JSON.stringify(absent);
    if (id !== last) {
      for (const { key, architectures } of absent) {
        log.warn({ key, architectures, nodes: cluster }, 'the configuration names architectures that no node has');
      }
    }
    last = id;
  };
}
