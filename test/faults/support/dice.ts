/** Choices that a seed decides, so that a run can be repeated. */
export type Dice = {
  /** From `least` to below `most`. */
  number(least: number, most: number): number;
  /** From `least` to `most`, both included. */
  whole(least: number, most: number): number;
  /** True with this probability. */
  chance(probability: number): boolean;
  /** One of them. Throws for an empty list. */
  pick<T>(list: readonly T[]): T;
  shuffled<T>(list: readonly T[]): T[];
};

/** The seed where none is given. */
export const DEFAULT_SEED = 1;

/** The seed that the environment variable `FAULTS_SEED` gives, else the default. Throws if it is not a whole number. */
export function seedFrom(text: string | undefined): number {
  if (text === undefined || text === '') return DEFAULT_SEED;
  const seed = Number(text);
  if (!Number.isSafeInteger(seed) || seed < 0) {
    throw new Error(`FAULTS_SEED: got "${text}", expected a whole number from 0 on`);
  }
  return seed;
}

/** Dice for one purpose: the choices of a fault do not depend on which faults ran before it. */
export function createDice(seed: number, purpose: string): Dice {
  let state = mix(seed, purpose);
  const random = () => {
    // Mulberry32 by Tommy Ettinger: 32 bits of state are enough for choices.
    state = (state + 0x6d2b79f5) | 0;
    let bits = Math.imul(state ^ (state >>> 15), state | 1);
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  };
  const whole = (least: number, most: number) => least + Math.floor(random() * (most - least + 1));
  return {
    number: (least, most) => least + random() * (most - least),
    whole,
    chance: (probability) => random() < probability,
    pick(list) {
      const index = whole(0, list.length - 1);
      for (const [at, item] of list.entries()) if (at === index) return item;
      throw new Error('nothing to choose from');
    },
    shuffled(list) {
      return list
        .map((item) => ({ item, order: random() }))
        .sort((one, other) => one.order - other.order)
        .map(({ item }) => item);
    },
  };
}

/** FNV-1a of the seed and the purpose. */
function mix(seed: number, purpose: string): number {
  let hash = 0x811c9dc5;
  for (const character of `${seed}/${purpose}`) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193);
  return hash;
}
