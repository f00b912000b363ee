import type { Platform } from '../../kit/platform.ts';
import { printable } from '../../kit/printable.ts';
import { isShell, LONGEST, type Process, placesOf, startedBy } from './image-process.ts';
import { LayerProblem } from './layer-reader.ts';
import type { LayerTree } from './layer-tree.ts';
import { type Format, judge, type Verdict } from './program-format.ts';

/** What is known of the program that an image starts. */
export type Finding = {
  /** Its path, or its name if it was not found. */
  readonly program?: string;
  /** What it is, for example `x86-64`. */
  readonly machine?: string;
  readonly verdict: Verdict;
  readonly reason?: string;
};

/** `reach`: what is looked for in further layers. */
type Step = Finding | { readonly reach: string; readonly after: string };

type Wanted = {
  readonly platform: Platform;
  readonly process: Process;
  readonly tree: Pick<LayerTree, 'resolve'>;
};

/** Scripts whose interpreter is a script again, and programs that start another one. Linux follows four scripts. */
const MAX_STEPS = 6;

/**
 * Finds out what a process starts, as far as its layers were read: its program, the interpreter of a script, and what a
 * small init starts. In the directories of PATH, the first program that is known counts, unless it lies: then those
 * before it must be known, too.
 *
 * @returns `reach` if that depends on further layers
 * @throws LayerProblem if nothing more may be looked up
 */
export function findProgram(wanted: Wanted): Step {
  const { argv } = wanted.process;
  const [first = ''] = argv;
  if (first === '') return { verdict: 'unknown', reason: 'the image names no program to start' };
  const quick = follow(argv, wanted, START);
  return 'verdict' in quick && quick.verdict === 'lies' ? follow(argv, wanted, { ...START, isStrict: true }) : quick;
}

/** Returns the same where no further layer is read. `why`: what follows the name of what was looked for. */
export function settleFor(wanted: Wanted, why: string): Finding {
  try {
    const found = findProgram(wanted);
    // Further layers may have another program of that name. What is known is what runs, as far as one can see.
    const quick = 'verdict' in found ? found : follow(wanted.process.argv, wanted, START);
    if ('verdict' in quick) return quick;
    const { reach, after } = quick;
    return { program: reach, verdict: 'unknown', reason: joined(after, `${reach} ${why}`) };
  } catch (error) {
    // Nothing more may be looked up.
    if (!(error instanceof LayerProblem)) throw error;
    const program = printable(wanted.process.argv[0] ?? '', 200);
    return { program, verdict: 'unknown', reason: `${program} ${error.message}` };
  }
}

/** `after`: how one got there; empty at the begin. */
type State = { readonly isStrict: boolean; readonly steps: number; readonly after: string };
const START: State = { isStrict: false, steps: 0, after: '' };

function follow(argv: readonly string[], wanted: Wanted, { isStrict, steps, after }: State): Step {
  const [name = '', ...args] = argv;
  const { platform, process, tree } = wanted;
  const shown = printable(name, 200);
  const unknown = (reason: string): Finding => {
    return { program: shown, verdict: 'unknown', reason: joined(after, `${shown} ${reason}`) };
  };
  if (name.length > LONGEST || name.includes('\0')) return unknown('is not a valid path');
  if (steps >= MAX_STEPS) return unknown('is not followed any further');
  const places = placesOf(name, process);
  const isNamed = !name.includes('/');
  const found = places.map((path) => ({ path, place: tree.resolve(path) }));
  const isProgram = ({ place }: (typeof found)[number]): boolean =>
    place.kind === 'found' && (!isNamed || place.node.kind === 'other' || place.node.isExecutable);
  const chosen = found.find((each) => isProgram(each) || (isStrict && each.place.kind === 'unread'));
  if (chosen === undefined || chosen.place.kind !== 'found') {
    if (found.some(({ place }) => place.kind === 'unread')) return { reach: shown, after };
    if (found.some(({ place }) => place.kind === 'loop')) return unknown('is a loop of links');
    if (found.some(({ place }) => place.kind === 'directory') && !isNamed) return unknown('is a directory');
    return unknown('is not in the layers');
  }
  const path = printable(`/${chosen.path}`, 200);
  const { node } = chosen.place;
  if (node.kind === 'other') return { program: path, verdict: 'unknown', reason: `${path} is ${node.text}` };
  const { format } = node;
  if (format.kind === 'script') return throughScript(path, format, args, wanted, { isStrict, steps, after });
  const judged = judge(platform, format);
  const { machine } = format;
  const finding: Finding = { program: path, machine, ...judged };
  if (finding.verdict === 'lies') return after === '' ? finding : { ...finding, reason: after };
  if (finding.verdict === 'unknown') {
    return { ...finding, reason: joined(after, `${path} ${finding.reason ?? `is ${machine}`}`) };
  }
  const inner = startedBy(path, args);
  if (inner !== undefined) {
    const next = `${path} starts ${printable(inner[0] ?? '', 200)}`;
    return follow(inner, wanted, { isStrict, steps: steps + 1, after: next });
  }
  const reason = joined(after, judged.reason, isShell(path) ? 'what a shell starts was not looked at' : '');
  return reason === '' ? finding : { ...finding, reason };
}

function joined(...reasons: readonly (string | undefined)[]): string {
  return reasons.filter(Boolean).join('; ');
}

function throughScript(
  path: string,
  { interpreter, argument }: Extract<Format, { kind: 'script' }>,
  args: readonly string[],
  wanted: Wanted,
  { isStrict, steps }: State,
): Step {
  const words = argument === '' ? [] : [argument];
  const after = `${path} is a script of ${[printable(interpreter, 200), ...words.map((each) => printable(each, 100))].join(' ')}`;
  const argv = [interpreter, ...words, path, ...args];
  const state = { isStrict, steps: steps + 1, after };
  // Whether env itself can run says nothing about the program that it looks for.
  const inner = /(?:^|\/)env$/.test(interpreter) ? startedBy('env', words) : undefined;
  return follow(inner ?? argv, wanted, state);
}
