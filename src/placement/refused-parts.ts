import { ARCHITECTURE_GATE, ARCHITECTURE_LABEL, OLD_ARCHITECTURE_LABEL } from '../names.ts';

/** What archaware adds to a pod, in parts that the API server may refuse one by one. */
export type PlacedPart = 'tolerations' | 'affinity' | 'gate';

/** The parts as texts for people say them. */
export const PART_TEXTS: Readonly<Record<PlacedPart, string>> = {
  tolerations: 'tolerations',
  affinity: 'node affinity',
  gate: 'scheduling gates',
};

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
    affinity: [ARCHITECTURE_LABEL, OLD_ARCHITECTURE_LABEL],
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
