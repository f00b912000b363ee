import { intersect, onlySchedulable, statementOf } from '../../placement/images.ts';
import { type NamedObject, objectName } from '../../placement/objects/kinds.ts';
import type { Reason } from '../../placement/readiness/readiness-states.ts';
import { type Assessment, verdictOf } from '../../placement/readiness/target-verdict.ts';
import { spreadNote } from '../spread.ts';
import { type AnswerOf, assess, type Candidate, type Circumstances } from './assess.ts';
import type { Unit } from './inventory.ts';

type CheckedObject = NamedObject & {
  readonly images: readonly string[];
  /** The architectures of `--on` that all of its images run on. */
  readonly architectures: readonly string[];
};

/** Something that an object lacks for architectures. */
export type Missing = NamedObject & {
  /** Absent if not an image is the cause, but what the object or the configuration says. */
  readonly image?: string;
  readonly containers?: readonly string[];
  /** The architectures of `--on` that are missing; for an image that could not be looked up, all that are not known. */
  readonly architectures: readonly string[];
  /** The code of the lookup's error, for an image that could not be looked up. */
  readonly code?: string;
  readonly text: string;
};

/** The output of `check`. */
export type Check = {
  readonly objects: readonly CheckedObject[];
  readonly missing: readonly Missing[];
  /** What is not missing, but worth knowing; absent if there is nothing. */
  readonly notes?: readonly CheckNote[];
};

/** What a taint of archaware would do to an object. */
type CheckNote = NamedObject & Pick<Missing, 'text'>;

/** The reasons that count. What pins an object to nodes is its author's choice. */
const COUNTED: ReadonlySet<Reason['kind']> = new Set(['image', 'lookup', 'statement', 'schedulable']);

/** Which nodes there are is not known, and an object lacks nothing because of them. */
const LEAVING_OUT = () => [];

/** Checks objects by the same decisions as `run`. An object that archaware leaves alone is checked by its images all the same. */
export function checkObjects(
  units: readonly Unit[],
  on: readonly string[],
  circumstances: Circumstances,
  answerOf: AnswerOf,
): Check {
  const found = units.flatMap(({ parts }) => parts.map((part) => checkOne(part, on, circumstances, answerOf)));
  const notes = found.flatMap((each) => each.notes);
  const missing = found.flatMap((each) => each.missing);
  return { objects: found.map(({ object }) => object), missing, ...(notes.length > 0 ? { notes } : {}) };
}

function checkOne(
  candidate: Candidate,
  on: readonly string[],
  circumstances: Circumstances,
  answerOf: AnswerOf,
): { object: CheckedObject; missing: Missing[]; notes: CheckNote[] } {
  const assessment = assess(candidate, circumstances, (image) => answerOf(image, candidate));
  const named = objectName(candidate);
  const byText = new Map<string, Missing>();
  for (const architecture of on) {
    for (const reason of verdictOf(candidate, assessment, architecture, LEAVING_OUT).reasons) {
      if (!COUNTED.has(reason.kind)) continue;
      const { text } = reason;
      const architectures = [...(byText.get(text)?.architectures ?? []), architecture];
      byText.set(text, { ...named, ...causeOf(reason), architectures, text });
    }
  }
  const images = candidate.template.images.map(({ image }) => image);
  const object = { ...named, images: [...new Set(images)], architectures: commonOf(assessment, candidate, on) };
  const spread = spreadNote(candidate.spread, candidate.template, assessment.outcome, assessment.settings, on);
  const notes = spread === undefined ? [] : [{ ...named, text: spread }];
  return { object, missing: [...byText.values()], notes };
}

function causeOf(reason: Reason): Pick<Missing, 'image' | 'containers' | 'code'> {
  if (reason.kind !== 'image' && reason.kind !== 'lookup') return {};
  const { image, containers } = reason;
  return reason.kind === 'lookup' ? { image, containers, code: reason.code } : { image, containers };
}

function commonOf(
  { outcome, narrowed, settings }: Assessment,
  { template }: Candidate,
  on: readonly string[],
): string[] {
  const statement = statementOf(template.statement);
  const isKnown = narrowed.every(({ said }) => said.kind !== 'failed' && said.kind !== 'pending');
  if (outcome.kind === 'skip' || !isKnown) return [];
  const sets = narrowed.flatMap(({ said }) => (said.kind === 'set' ? [said.architectures] : []));
  const stated = Array.isArray(statement) ? [statement] : [];
  return onlySchedulable(intersect([on, ...stated, ...sets]) ?? [], settings);
}
