import { type HardSpread, readHardSpread } from '../../analysis/workloads/workload.ts';
import { type JsonObject, objectAt } from '../../kit/json.ts';
import { type Demands, readDemands } from '../../placement/fit.ts';
import { hasEnded } from '../../placement/objects/containers.ts';
import { isForOneNode } from '../../placement/objects/kinds.ts';
import type { Pod } from '../../placement/objects/pod.ts';
import type { Placed } from '../../placement/patch/affinity.ts';
import { usesAffinity } from '../../placement/placing.ts';
import type { Settings } from '../../placement/settings.ts';

/** What the watches do not keep of a pod's `spec`, because only this command needs it. Each is absent where there is nothing. */
type PodSpec = {
  /** Its hard topology spread constraints. Nearly no pod has any. */
  readonly spread?: readonly HardSpread[];
  /** How it selects nodes, in modes with affinity. `false`: it is for one node. */
  readonly selecting?: Placed | false;
  /** What it asks of nodes, for `--pools`; absent for pods that are for one node, have ended, or are too large. */
  readonly demands?: Demands;
};

/** By uid of the pod. */
export type PodSpecs = ReadonlyMap<string, PodSpec>;

/** Creates a memory of pods' specs. `isForPools`: whether demands are needed. */
export function createPodSpecs(settings: Settings, isForPools: boolean) {
  const specs = new Map<string, PodSpec>();
  return {
    specs,
    onPod(object: JsonObject, pod: Pod): void {
      const spec = objectAt(object, 'spec');
      const isForOne = isForOneNode(pod.owner, spec);
      const { affinity, nodeSelector } = spec;
      const selects = usesAffinity(settings) && (isForOne || affinity !== undefined || nodeSelector !== undefined);
      const spread = isForOne ? [] : readHardSpread(spec);
      const isPooled = isForPools && !isForOne && pod.tooLarge === undefined && !hasEnded(pod.phase);
      if (!selects && !isPooled && spread.length === 0) return;
      specs.set(pod.uid, {
        ...(spread.length > 0 && { spread }),
        ...(selects && { selecting: isForOne ? (false as const) : { affinity, nodeSelector } }),
        ...(isPooled && { demands: readDemands(spec) }),
      });
    },
  };
}
