/** The state that the rules say, for the objects of these tests. */
import { at, type JsonObject, objects, text } from '../../simulator/json.ts';
import { TAINT_KEY } from './foreign.ts';

/** What an object of the load is; the label `faults/kind` carries it. */
export type Kind = keyof typeof KINDS;

/** The platforms of each container's image, and the architectures that the pod must tolerate then. */
export const KINDS = {
  both: { images: [['amd64', 'arm64']], tolerates: ['amd64', 'arm64'] },
  wide: { images: [['amd64', 'arm64', 's390x', 'ppc64le']], tolerates: ['amd64', 'arm64', 'ppc64le', 's390x'] },
  amd64: { images: [['amd64']], tolerates: ['amd64'] },
  arm64: { images: [['arm64', 'arm/v7']], tolerates: ['arm', 'arm64'] },
  narrowed: { images: [['amd64', 'arm64'], ['arm64']], tolerates: ['arm64'] },
  // No node could run it: it is held, and nothing is added.
  divided: { images: [['amd64'], ['arm64']], tolerates: [] },
  // The registry does not have the image. The time after which such a pod may go anywhere is an hour in these tests.
  missing: { images: [undefined], tolerates: [] },
  // Its label says that archaware leaves it alone.
  ignored: { images: [['amd64', 'arm64']], tolerates: [] },
} as const satisfies Record<
  string,
  { images: readonly (readonly string[] | undefined)[]; tolerates: readonly string[] }
>;

export const KIND_LABEL = 'faults/kind';

/** Returns why a pod, or a template, is not as the rules say; undefined if it is, or if it is not of the load. */
export function wrongTolerations(item: JsonObject, podSpec: unknown, labels: unknown): string | undefined {
  const kind = text(at(labels, KIND_LABEL));
  if (!isKind(kind)) return undefined;
  const present = objects(at(podSpec, 'tolerations'))
    .filter(({ key }) => key === TAINT_KEY)
    .map(({ value, effect, operator }) => `${text(value)}:${text(effect)}${operator === 'Equal' ? '' : ` ${operator}`}`)
    .sort();
  const wanted = KINDS[kind].tolerates.map((architecture) => `${architecture}:NoSchedule`).sort();
  if (present.join() === wanted.join()) return undefined;
  const name = `${text(at(item, 'metadata', 'namespace'))}/${text(at(item, 'metadata', 'name'))}`;
  return `${name} (${kind}) tolerates ${present.join(' ') || 'nothing'}, expected ${wanted.join(' ') || 'nothing'}`;
}

/** Returns why a node is not as the rules say; undefined if it carries the taint of its architecture, once. */
export function wrongTaints(node: JsonObject): string | undefined {
  const architecture = text(at(node, 'status', 'nodeInfo', 'architecture'));
  const present = objects(at(node, 'spec', 'taints'))
    .filter(({ key }) => key === TAINT_KEY)
    .map(({ value, effect }) => `${text(value)}:${text(effect)}`);
  if (present.join() === `${architecture}:NoSchedule`) return undefined;
  return `node ${text(at(node, 'metadata', 'name'))} (${architecture}) has ${present.join(' ') || 'no taint'}`;
}

function isKind(kind: string): kind is Kind {
  return Object.hasOwn(KINDS, kind);
}
