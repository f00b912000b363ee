/** Mutants that do not count, each with its reason. Keep this short: a survivor is there to be read. */
/** A kind of Stryker's mutators, and the text that it replaces. */
type Change = { readonly kind: string; readonly original: string };

type Exclusion = {
  readonly reason: string;
  applies(change: Change): boolean;
};

/** A word and a space beside it, once what is filled in is taken out: a sentence for people, or a part of one. */
const PROSE = /[a-z]{2,}[,:;)]? | [("]?[a-z]{2,}/i;
const FILLED_IN = /\$\{[^}]*\}/g;

const EXCLUSIONS: readonly Exclusion[] = [
  {
    reason: 'a text for people: tests do not repeat each sentence',
    applies: ({ kind, original }) => kind === 'StringLiteral' && PROSE.test(original.replace(FILLED_IN, '')),
  },
];

export function reasonToExclude(change: Change): string | undefined {
  return EXCLUSIONS.find((exclusion) => exclusion.applies(change))?.reason;
}
