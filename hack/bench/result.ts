import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { cpus, loadavg, release, totalmem } from 'node:os';
import { dirname } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { markdownTable, table } from '../../src/cli/output.ts';
import { writeBetween } from '../write-between.ts';

/** A measured figure beside its goal. Cells are text with their unit. */
export type Row = {
  readonly what: string;
  readonly archaware: string;
  readonly bare: string;
  /** The median, and each round in brackets. */
  readonly ratio: string;
  readonly goal: string;
  /** Undefined if there is no goal. */
  readonly isMet: boolean | undefined;
};

/** A limit of a figure. */
type Goal = { readonly atLeast?: number; readonly atMost?: number; readonly under?: number };

/** What a measurement gives. */
export type Measured = {
  readonly rows: readonly Row[];
  /** Every single figure, for the file. */
  readonly figures: unknown;
};

/** A run of a benchmark, as it is written to its file. */
type Result = Measured & {
  /** The name of the benchmark. */
  readonly name: string;
  /** When it ended, ISO 8601. */
  readonly at: string;
  readonly machine: Machine;
};

/** Where a benchmark ran. */
type Machine = {
  readonly cpus: number;
  readonly model: string;
  readonly memoryMiB: number;
  readonly kernel: string;
  readonly node: string;
  readonly commit: string;
  /** The load average of the last minute before the run. */
  readonly loadBefore: number;
};

const HEADER = ['what', 'archaware', 'bare', 'ratio (rounds)', 'goal', 'met'];
const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const DOCUMENT = `${ROOT}docs/development/performance.md`;

/** Says in text what a goal is, and whether a value meets it. */
export function judge(value: number, goal: Goal, unit = ''): Pick<Row, 'goal' | 'isMet'> {
  const { atLeast, atMost, under } = goal;
  const parts = [
    ...(atLeast === undefined ? [] : [`at least ${atLeast}${unit}`]),
    ...(atMost === undefined ? [] : [`at most ${atMost}${unit}`]),
    ...(under === undefined ? [] : [`under ${under}${unit}`]),
  ];
  const isMet = value >= (atLeast ?? -Infinity) && value <= (atMost ?? Infinity) && value < (under ?? Infinity);
  return { goal: parts.join(', '), isMet };
}

/** A row; what is absent is empty. */
export function row(what: string, archaware: string, rest: Partial<Row> = {}): Row {
  return { what, archaware, bare: '', ratio: '', goal: '', isMet: undefined, ...rest };
}

/**
 * Runs a benchmark, prints its rows, and writes the result as JSON: to the file that `--json` names, else to `.cache/bench/NAME.json`.
 * With the variable WRITE_TABLE the rows also go into docs/development/performance.md, between the markers of this benchmark.
 * `defaults`: its other options, which are numbers.
 */
export async function runBenchmark<T extends Readonly<Record<string, number>>>(
  name: string,
  args: string[],
  defaults: T,
  measure: (given: T) => Promise<Measured>,
): Promise<void> {
  const options = Object.keys(defaults).map((option) => [option, { type: 'string' }] as const);
  const { json, ...given } = parseArgs({
    args,
    options: { ...Object.fromEntries(options), json: { type: 'string' } },
  }).values;
  const numbers = Object.entries(given).map(([option, value]) => [option, Number(value)]);
  const machine = await describeMachine();
  const measured = await measure({ ...defaults, ...Object.fromEntries(numbers) });
  await publish({ name, at: new Date().toISOString(), machine, ...measured }, json);
}

/** The rows of several measurements, and their figures by name. */
export function together(parts: Readonly<Record<string, Measured>>): Measured {
  const figures = Object.fromEntries(Object.entries(parts).map(([name, part]) => [name, part.figures]));
  return { rows: Object.values(parts).flatMap(({ rows }) => rows), figures };
}

/** Describes this machine. Call it before the run. */
async function describeMachine(): Promise<Machine> {
  const all = cpus();
  const commit = await promisify(execFile)('git', ['-C', ROOT, 'describe', '--always', '--dirty']);
  return {
    cpus: all.length,
    model: all[0]?.model ?? '',
    memoryMiB: Math.round(totalmem() / 1024 / 1024),
    kernel: release(),
    node: process.version,
    commit: commit.stdout.trim(),
    loadBefore: Math.round((loadavg()[0] ?? 0) * 100) / 100,
  };
}

async function publish(result: Result, file: string | undefined): Promise<void> {
  process.stdout.write(table(HEADER, result.rows.map(cellsOf)));
  const path = file ?? `${ROOT}.cache/bench/${result.name}.json`;
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, `${JSON.stringify(result, undefined, 2)}\n`);
  const met = result.rows.filter(({ isMet }) => isMet === true).length;
  const goals = result.rows.filter(({ isMet }) => isMet !== undefined).length;
  process.stdout.write(`\n${met} of ${goals} goals are met; ${path}\n`);
  if (process.env.WRITE_TABLE) await writeDocument(result.name, markdownOf(result));
}

function cellsOf({ what, archaware, bare, ratio, goal, isMet }: Row): string[] {
  return [what, archaware, bare, ratio, goal, isMet === undefined ? '' : isMet ? 'yes' : 'NO'];
}

/** The table in Markdown, below a line about the machine. */
function markdownOf({ at, machine, rows }: Result): string {
  const { cpus: cores, model, memoryMiB, kernel, node, commit, loadBefore } = machine;
  const gib = Math.round(memoryMiB / 1024);
  return [
    `${at.slice(0, 10)}, commit ${commit}: ${cores} cores (${model}), ${gib} GiB, Linux ${kernel}, Node.js ${node}; load average`,
    `before the run: ${loadBefore}.`,
    '',
    markdownTable(HEADER, rows.map(cellsOf)).trimEnd(),
  ].join('\n');
}

/** Puts a text between the markers `NAME: begin` and `NAME: end` of docs/development/performance.md. Throws if they are not there. */
export async function writeDocument(name: string, text: string): Promise<void> {
  await writeBetween(pathToFileURL(DOCUMENT), name, text);
}
