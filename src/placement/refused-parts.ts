import { strangersText } from '../kit/cut.ts';
import { type JsonObject, objectAt, stringAt } from '../kit/json.ts';
import { printable } from '../kit/printable.ts';
import { ARCHITECTURE_GATE, ARCHITECTURE_LABEL, ARCHITECTURE_LABELS } from '../names.ts';
import { usesAffinity, usesTaints } from './placing.ts';
import type { Settings } from './settings.ts';

/** What archaware adds to a pod, in parts that the API server may refuse one by one. */
export type PlacedPart = 'tolerations' | 'affinity' | 'gate';

/** The parts as texts for people say them. */
export const PART_TEXTS: Readonly<Record<PlacedPart, string>> = {
  tolerations: 'tolerations',
  affinity: 'node affinity',
  gate: 'scheduling gates',
};

/** Returns what archaware adds to pods in a mode; without a review of their creation only tolerations. */
export function addedParts(settings: Pick<Settings, 'mode'>, isReviewed: boolean): PlacedPart[] {
  return [
    ...(usesTaints(settings) ? (['tolerations'] as const) : []),
    ...(isReviewed && usesAffinity(settings) ? (['affinity'] as const) : []),
    ...(isReviewed ? (['gate'] as const) : []),
  ];
}

/** The words of the API server's plug-ins, of expressions of policies, and of paths that policy engines print. */
const WORDS: Readonly<Record<PlacedPart, RegExp>> = {
  tolerations: /tolerat(?:ion|e)/i,
  affinity: /affinity/i,
  gate: /scheduling[\s_-]?gate/i,
};
/** A rejection of archaware itself, and a webhook that does not answer, which says nothing about the object. */
const NOT_A_POLICY = /archaware\.dev" denied the request|failed (?:calling|to call) webhook/;

/**
 * Returns which parts the message of a refusal names; empty if it names none, so that nothing is known. The rule is the author's
 * words: a policy may say "tolerations are not allowed" or print the path `spec.tolerations[0].key`, but hardly any names the taint
 * itself. `key`: the key of the taint.
 */
export function refusedParts(message: string, key: string): readonly PlacedPart[] {
  if (NOT_A_POLICY.test(message)) return [];
  const names: Readonly<Record<PlacedPart, readonly string[]>> = {
    tolerations: [key],
    affinity: ARCHITECTURE_LABELS,
    gate: [ARCHITECTURE_GATE],
  };
  const isNamed = (part: PlacedPart) => WORDS[part].test(message) || names[part].some((name) => hasName(message, name));
  return (['tolerations', 'affinity', 'gate'] as const).filter(isNamed);
}

/** Whether a text has a name that is not a part of a longer one: `kubernetes.io/arch` in `kubernetes.io/archive` is another. */
function hasName(text: string, name: string): boolean {
  for (let at = text.indexOf(name); at >= 0; at = text.indexOf(name, at + 1)) {
    if (!isOfName(text[at - 1]) && !isOfName(text[at + name.length])) return true;
  }
  return false;
}

function isOfName(character: string | undefined): boolean {
  return character !== undefined && /[\w./-]/.test(character);
}

/** A creation of a pod that the API server refused, as the Event of the pod's owner says it. */
export type FailedCreation = {
  /** The owner; its namespace is that of the Event. */
  readonly owner: { readonly [field in 'apiVersion' | 'kind' | 'namespace' | 'name' | 'uid']: string };
  readonly message: string;
};

const NAME = /^[\w.-]{1,253}$/;
const KIND = /^[A-Z][A-Za-z]{0,62}$/;

/**
 * Reads an Event with the reason `FailedCreate` (events.k8s.io/v1); undefined if it is not about an owner in its own namespace. Anybody
 * who may create Events in a namespace can write one, so it is a word about that namespace only.
 */
export function readFailedCreation(event: JsonObject): FailedCreation | undefined {
  const regarding = objectAt(event, 'regarding');
  const namespace = stringAt(objectAt(event, 'metadata'), 'namespace') ?? '';
  const [kind = '', name = '', uid = ''] = ['kind', 'name', 'uid'].map((field) => stringAt(regarding, field));
  const apiVersion = stringAt(regarding, 'apiVersion') ?? '';
  if (stringAt(event, 'reason') !== 'FailedCreate' || stringAt(regarding, 'namespace') !== namespace) return undefined;
  if (!KIND.test(kind) || !NAME.test(name) || !NAME.test(uid) || apiVersion.length > 100) return undefined;
  const message = strangersText(stringAt(event, 'note') ?? '');
  return { owner: { apiVersion, kind, namespace, name, uid }, message };
}

/** The most bytes of the refusal in a note: what to do comes after it. */
const REFUSAL_BYTES = 500;

/** What archaware does about the refused part. */
const REACTIONS = {
  withdraw: 'archaware leaves it out of the next pods for a time, and then tries again',
  keep: 'archaware goes on adding it (placement.refused: keep)',
  template: 'it stays in the template',
} as const;

/**
 * Returns the note of the Event `RefusedByPolicy`. The names of pods, which differ each time, are left out, so that repetitions are
 * one Event.
 */
export function refusedNote(
  { message }: Pick<FailedCreation, 'message'>,
  parts: readonly PlacedPart[],
  reaction: keyof typeof REACTIONS,
  taintKey: string,
): string {
  const what = parts.map((part) => PART_TEXTS[part]).join(' and ');
  const allowed = parts.map((part) => ALLOWED[part](taintKey)).join(', ');
  return (
    `pods cannot be created, and the refusal names ${what}, which archaware adds: ${printable(withoutPodName(message), REFUSAL_BYTES)}; ` +
    `${REACTIONS[reaction]}. Allow in the policy that refuses it: ${allowed} (docs/security.md, "Other admission plug-ins")`
  );
}

/** What to allow in the policy of others. */
const ALLOWED: Readonly<Record<PlacedPart, (taintKey: string) => string>> = {
  tolerations: (key) => `tolerations of ${key}`,
  affinity: () => `node affinity on ${ARCHITECTURE_LABEL}`,
  gate: () => `the gate ${ARCHITECTURE_GATE}`,
};

/** Returns a message of a controller about a failed creation without its beginning and the name of the pod. */
function withoutPodName(message: string): string {
  return message
    .replace(/^\(combined from similar events\): /, '')
    .replace(/^Error creating: /, '')
    .replace(/^create Pod \S+ in StatefulSet \S+ failed error: /, '')
    .replace(/^([Pp]ods?) "[^"]*"/, '$1');
}
