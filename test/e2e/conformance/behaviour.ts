/** A test of ours: its file below `test/`, and its title. */
export type Shown = readonly [file: string, title: string];

/** Something that the tests of multiarch-tuning-operator (M) or Noe (N) describe, or neither, and what ours show of it. */
export type Behaviour = {
  readonly behaviour: string;
  readonly from: 'M' | 'N' | 'M, N' | 'neither';
  readonly outcome: 'same' | 'better' | 'different on purpose';
  /** Empty where it is the same. */
  readonly why: string;
  readonly tests: readonly Shown[];
};

export const same = (behaviour: string, from: Behaviour['from'], ...tests: readonly Shown[]): Behaviour => ({
  behaviour,
  from,
  outcome: 'same',
  why: '',
  tests,
});

export const better = (
  behaviour: string,
  from: Behaviour['from'],
  why: string,
  ...tests: readonly Shown[]
): Behaviour => ({ behaviour, from, outcome: 'better', why, tests });

export const different = (
  behaviour: string,
  from: Behaviour['from'],
  why: string,
  ...tests: readonly Shown[]
): Behaviour => ({ behaviour, from, outcome: 'different on purpose', why, tests });
