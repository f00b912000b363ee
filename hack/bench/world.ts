import type { Cluster } from '../cluster/cluster.ts';
import type { Registry } from '../cluster/registry.ts';

/** Where the whole benchmark runs: a real control plane, and a real registry with the images. */
export type World = {
  readonly cluster: Cluster;
  readonly registry: Registry;
  /** References. */
  readonly images: readonly string[];
};
