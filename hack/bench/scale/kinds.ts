import { type Collection, createCollection } from './collection.ts';
import {
  architectureOf,
  daemonSetText,
  NAMESPACES,
  namespaceText,
  nodeText,
  plainNumbers,
  podNumbers,
  podText,
  type Shape,
} from './objects.ts';

/** The collections of a big cluster, by the last part of their path. */
export type Kinds = {
  readonly pods: Collection;
  readonly nodes: Collection;
  readonly namespaces: Collection;
  readonly daemonsets: Collection;
  /** Adds nodes without a taint, and sends their events. */
  join(count: number, architecture: string): void;
};

const DAEMON_SETS = 10;

/** Creates the cluster: all pods run and tolerate, all nodes have the taint. What is added later has neither. */
export function createKinds(shape: Shape): Kinds {
  const [running, created] = [podText(shape, true), podText(shape, false)];
  const tainted = new Map(['amd64', 'arm64'].map((architecture) => [architecture, nodeText(architecture, true)]));
  const untainted = new Map<string, string>();
  const joined: string[] = [];
  const [namespace, daemonSet] = [namespaceText(), daemonSetText(shape)];
  const common = { apiVersion: 'v1', numbersOf: plainNumbers };
  const nodes = createCollection(
    {
      ...common,
      kind: 'Node',
      textOf: (index) =>
        (index < shape.nodes ? tainted.get(architectureOf(index)) : untainted.get(joined[index - shape.nodes] ?? '')) ??
        '{}',
    },
    shape.nodes,
  );
  return {
    nodes,
    pods: createCollection(
      {
        ...common,
        kind: 'Pod',
        numbersOf: (index) => podNumbers(index, shape),
        textOf: (index) => (index < shape.pods ? running : created),
      },
      shape.pods,
    ),
    namespaces: createCollection({ ...common, kind: 'Namespace', textOf: () => namespace }, NAMESPACES),
    daemonsets: createCollection(
      { ...common, kind: 'DaemonSet', apiVersion: 'apps/v1', textOf: () => daemonSet },
      DAEMON_SETS,
    ),
    join(count, architecture) {
      untainted.set(architecture, untainted.get(architecture) ?? nodeText(architecture, false));
      joined.push(...Array.from({ length: count }, () => architecture));
      nodes.add(count);
    },
  };
}
