import { cut } from '../../kit/cut.ts';
import { type JsonObject, listAt, objectAt, stringAt } from '../../kit/json.ts';
import { ARCHITECTURES } from '../../kit/platform.ts';
import { ARCHITECTURE_LABEL, ARCHITECTURE_LABELS, OS_LABEL } from '../../names.ts';
import { type Demands, meetsLabel, readDemands, requirementText } from '../fit.ts';

/** The fields of a pod or a template that decide, with the platforms of an image, on which architectures the image runs. */
export type PodRuntime = {
  /**
   * The OS that it asks for: `spec.os.name`, else the node selector, else the one value that all required terms of the node affinity
   * agree on, else `linux`.
   */
  readonly os: string;
  /** Whether `spec.runtimeClassName` names a RuntimeClass. */
  readonly hasRuntimeClass: boolean;
};

/** Reads from a pod's spec what decides on which architectures its images run. */
export function readRuntime(spec: JsonObject): PodRuntime {
  return { os: readOs(spec), hasRuntimeClass: Boolean(stringAt(spec, 'runtimeClassName')) };
}

function readOs(spec: JsonObject): string {
  const selected = stringAt(objectAt(spec, 'nodeSelector'), OS_LABEL);
  return stringAt(objectAt(spec, 'os'), 'name') || selected || osOfTerms(spec) || 'linux';
}

/** The longest value of a label. Older API servers accept longer values in an affinity, which fit no node. */
const LONGEST_OS = 63;

/** Terms are alternatives, so an OS is certain only if every term names it. */
function osOfTerms(spec: JsonObject): string | undefined {
  // Nearly no pod has an affinity, and this runs for each pod.
  if (spec.affinity === undefined) return undefined;
  const affinity = objectAt(objectAt(spec, 'affinity'), 'nodeAffinity');
  const terms = listAt(objectAt(affinity, 'requiredDuringSchedulingIgnoredDuringExecution'), 'nodeSelectorTerms') ?? [];
  const [first, ...others] = terms.map(osOfTerm);
  return others.every((os) => os === first) ? first : undefined;
}

function osOfTerm(term: JsonObject): string | undefined {
  for (const expression of listAt(term, 'matchExpressions') ?? []) {
    const { key, operator, values } = expression;
    if (key !== OS_LABEL || operator !== 'In' || !Array.isArray(values) || values.length !== 1) continue;
    const [value]: unknown[] = values;
    if (typeof value === 'string' && value !== '') return cut(value, LONGEST_OS);
  }
  return undefined;
}

type ArchitectureDemand = {
  /** The architectures that the pod names and that all its demands together allow. */
  readonly named: readonly string[];
  readonly allows: (architecture: string) => boolean;
  /** The part of the spec that asks: `nodeSelector`, `node affinity`. */
  readonly where: string;
  /** What it asks for: `kubernetes.io/arch=arm64 by its nodeSelector`. */
  readonly text: string;
};

/** Returns the architectures that a pod asks for; undefined if it accepts any. */
export function architectureAsked({ nodeSelector, terms }: Demands): ArchitectureDemand | undefined {
  const selectors = ARCHITECTURE_LABELS.filter((label) => Object.hasOwn(nodeSelector, label));
  const selected = selectors.map((label) => String(nodeSelector[label]));
  const spoken = (terms ?? []).map(({ expressions }) =>
    expressions.filter(({ key }) => ARCHITECTURE_LABELS.includes(key)),
  );
  const isBound = spoken.length > 0 && spoken.every((each) => each.length > 0);
  if (selected.length === 0 && !isBound) return undefined;
  const allows = (architecture: string) =>
    selected.every((value) => value === architecture) &&
    (!isBound || spoken.some((each) => each.every((requirement) => meetsLabel(requirement, architecture))));
  const listed = spoken.flatMap((each) => each.flatMap(({ operator, values }) => (operator === 'In' ? values : [])));
  const named = [...new Set([...selected, ...listed])].filter(allows).sort();
  const where = [selected.length > 0 ? 'nodeSelector' : '', isBound ? 'node affinity' : ''].filter(Boolean);
  const wishes = spoken.map((each) => each.map(requirementText).join(' and '));
  const texts = [
    ...(selected.length > 0
      ? [`${selectors.map((label) => `${label}=${nodeSelector[label]}`).join(' and ')} by its nodeSelector`]
      : []),
    ...(isBound ? [`${[...new Set(wishes)].join(', or ')} by its node affinity`] : []),
  ];
  return { named, allows, where: where.join(' and its '), text: texts.join(' and ') };
}

/** The architectures that a pod asks for, as a pod's memory keeps them. */
export type Asked = {
  /** `kubernetes.io/arch=arm64 by its nodeSelector`; cut, because its author chose it. */
  readonly text: string;
  /** Those of the architectures that a node can have. */
  readonly architectures: readonly string[];
};

/** Longer than any demand that is written by hand. */
const LONGEST_TEXT = 200;

/** Reads the architectures that the `spec` of a pod or of a template asks for; undefined if it accepts any. */
export function readAsked(spec: JsonObject): Asked | undefined {
  // Most pods have neither, and every pod is read.
  if (spec.nodeSelector === undefined && spec.affinity === undefined) return undefined;
  const asked = architectureAsked(readDemands(spec));
  if (asked === undefined) return undefined;
  return { text: cut(asked.text, LONGEST_TEXT), architectures: ARCHITECTURES.filter(asked.allows) };
}

/** Removes the node affinity that archaware wrote to a pod: its author did not ask for it, and a new pod gets another one. */
export function withoutOurs(demands: Demands): Demands {
  const terms = (demands.terms ?? [])
    .map(({ expressions, fields }) => ({
      // Others are of a form that archaware never writes.
      expressions: expressions.filter(({ key, operator }) => operator !== 'In' || key !== ARCHITECTURE_LABEL),
      fields,
    }))
    .filter(({ expressions, fields }) => expressions.length + fields.length > 0);
  return { ...demands, terms: terms.length > 0 ? terms : undefined };
}
