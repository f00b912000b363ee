import { OLD_OS_LABEL, OS_LABEL } from '../../names.ts';
import type { ExplainInput } from './input.ts';

/** Returns the pod's operating system if no node has it; undefined if one has, or if no node is known. */
export function missingOs({ workload, nodes = [] }: Pick<ExplainInput, 'workload' | 'nodes'>): string | undefined {
  const { os } = workload.template;
  // The kubelet labels every node; a node without the label is none of Windows.
  const isThere = nodes.some(({ labels }) => (labels[OS_LABEL] ?? labels[OLD_OS_LABEL] ?? 'linux') === os);
  return isThere || nodes.length === 0 ? undefined : os;
}
