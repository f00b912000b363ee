import { milliseconds } from '../kit/duration.ts';
import { parseSelector } from '../kit/label-syntax.ts';
import { spellings } from '../placement/image-patterns.ts';
import type { Settings } from '../placement/settings.ts';
import type { Config } from './schema.ts';

/**
 * Returns the part of the configuration that decides placement, in the form that the pure functions read. A key of `placement`,
 * `architectures` or `pods` keeps its name there.
 */
export function toSettings(config: Config): Settings {
  const { taints, architectures, placement, pods, images, systemNamespaces, policies } = config;
  const global: Settings = {
    // If archaware manages no taints, no node carries one of its own, and a taint with the same key belongs to somebody else.
    taints: {
      ...taints,
      manage: taints.manage && placement.mode !== 'affinity',
      nodeSelector: parseSelector(taints.nodeSelector),
    },
    ...placement,
    ...architectures,
    ...pods,
    namespaceSelector: parseSelector(pods.namespaceSelector),
    systemNamespaces,
    // The configuration is checked for it, but a changed file applies `pods` while the mode waits for a restart.
    onWrongNode: placement.mode === 'observe' ? 'warn' : pods.onWrongNode,
    unresolvable: images.unresolvable,
    fallbackAfterMs: milliseconds(images.fallbackAfter),
    overrides: images.overrides.flatMap(({ pattern, architectures: names }) =>
      spellings(pattern).map((spelling) => ({ pattern: spelling, architectures: names })),
    ),
    policies: [],
  };
  return {
    ...global,
    policies: policies.map(({ name, namespaces, namespaceSelector, podSelector, ...own }) => ({
      name,
      namespaces,
      namespaceSelector: parseSelector(namespaceSelector),
      podSelector: parseSelector(podSelector),
      settings: {
        ...global,
        policy: name,
        schedulable: own.schedulable ?? global.schedulable,
        preferred: own.preferred ?? global.preferred,
        fallback: own.fallback ?? global.fallback,
        unresolvable: own.unresolvable ?? global.unresolvable,
        noCommonArchitecture: own.noCommonArchitecture ?? global.noCommonArchitecture,
      },
    })),
  };
}

/**
 * Returns the loops that run. In the mode `observe` the loops that only write to nodes do not: without them, a label or taint of an
 * earlier mode cannot be touched.
 */
export function loopsThatRun({ loops, placement }: Pick<Config, 'loops' | 'placement'>): Config['loops'] {
  return placement.mode === 'observe' ? loops.filter((loop) => loop !== 'nodes' && loop !== 'labels') : loops;
}
