import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { type Answers, hashOfOracle } from './oracle.ts';
import { NODES, type Tree, treesOf } from './trees.ts';

/** The indexes that every run compares. */
const SEED = 1;
const COUNT = 1000;

/** What the runtimes' packages answered, for machines without Go. */
export type Recorded = {
  /** The program that answered, as {@link hashOfOracle} has it. */
  readonly oracle: string;
  /** A hash of the indexes. */
  readonly trees: string;
  /**
   * A text for each index: for each node the place of the architecture taken in {@link NODES}, or `-`; containerd's, then CRI-O's. A
   * letter: CRI-O chooses it in an index within the index.
   */
  readonly answers: readonly string[];
};

export const RECORDED = new URL('answers.json', import.meta.url);

export function everydayTrees(): Tree[] {
  return treesOf(SEED, COUNT);
}

/** Returns the file's contents for these answers. */
export async function recordedOf(trees: readonly Tree[], answers: readonly Answers[]): Promise<Recorded> {
  const hash = createHash('sha256').update(JSON.stringify([NODES, trees]));
  return { oracle: await hashOfOracle(), trees: hash.digest('hex'), answers: answers.map(textOf) };
}

export async function readRecorded(): Promise<Recorded> {
  return JSON.parse(await readFile(RECORDED, 'utf8'));
}

function textOf({ containerd, crio, isNested }: Answers): string {
  const letters = (taken: Answers['crio'], places: string): string[] =>
    taken.map((name, at) => {
      const place = NODES.findIndex(({ architecture }) => architecture === name);
      return (isNested[at] && taken === crio ? NESTED : places)[place] ?? '-';
    });
  return [...letters(containerd, PLACES), ...letters(crio, PLACES)].join('');
}

const PLACES = '0123456';
const NESTED = 'abcdefg';

export function answersOf({ answers }: Recorded): Answers[] {
  return answers.map((text) => {
    const taken = [...text].map((at) => NODES[Math.max(PLACES.indexOf(at), NESTED.indexOf(at))]?.architecture);
    const crio = text.slice(NODES.length);
    return {
      containerd: taken.slice(0, NODES.length),
      crio: taken.slice(NODES.length),
      isNested: [...crio].map((at) => NESTED.includes(at)),
    };
  });
}
