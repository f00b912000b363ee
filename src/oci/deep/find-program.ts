import { fieldOf, isObject, parseObject } from '../../kit/json.ts';
import type { Platform } from '../../kit/platform.ts';
import { printable } from '../../kit/printable.ts';
import { textOf } from '../manifest.ts';
import { LayerProblem } from './layer-reader.ts';
import { type LayerTree, normalPath } from './layer-tree.ts';
import { type Format, judge, type ProgramVerdict } from './program-format.ts';

/** What is known of the program that an image starts. */
export type Finding = {
  /** Its path, or its name if it was not found. */
  readonly program?: string;
  /** What it is, for example `x86-64`. */
  readonly machine?: string;
  readonly verdict: ProgramVerdict;
  readonly reason?: string;
};

/** `reach`: what is looked for in further layers. */
type Step = Finding | { readonly reach: string; readonly after: string };

type WantedFile = { readonly platform: Platform; readonly process: Process; readonly tree: Pick<LayerTree, 'resolve'> };

/** Scripts whose interpreter is a script again, and programs that start another one. Linux follows four scripts. */
const MAX_STEPS = 6;

/**
 * Finds out what a process starts, as far as its layers were read: its program, the interpreter of a script, and what a small init starts.
 * In the directories of PATH, the first program that is known counts, unless it lies: then those before it must be known, too.
 *
 * @returns `reach` if that depends on further layers
 * @throws LayerProblem if nothing more may be looked up
 */
export function findProgram(wanted: WantedFile): Step {
  const { argv } = wanted.process;
  const [first = ''] = argv;
  if (first === '') return { verdict: 'unknown', reason: 'the image names no program to start' };
  const quick = follow(argv, wanted, START);
  return 'verdict' in quick && quick.verdict === 'lies' ? follow(argv, wanted, { ...START, isStrict: true }) : quick;
}

/** Returns the same where no further layer is read. `why`: what follows the name of what was looked for. */
export function settleFor(wanted: WantedFile, why: string): Finding {
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

function follow(argv: readonly string[], wanted: WantedFile, { isStrict, steps, after }: State): Step {
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
  wanted: WantedFile,
  { isStrict, steps }: State,
): Step {
  const words = argument === '' ? [] : [argument];
  const after = `${path} is a script of ${[printable(interpreter, 200), ...words.map((each) => printable(each, 100))].join(' ')}`;
  const argv = [interpreter, ...words, path, ...args];
  // Whether env itself can run says nothing about the program that it looks for.
  const inner = /(?:^|\/)env$/.test(interpreter) ? startedBy('env', words) : undefined;
  return follow(inner ?? argv, wanted, { isStrict, steps: steps + 1, after });
}

/** What a container of an image starts (OCI image-spec, config.md). */
type Process = {
  /** The program and its arguments: the entrypoint, and then the command. */
  readonly argv: readonly string[];
  /** The directories in which a name without a slash is looked up, in order. */
  readonly path: readonly string[];
  readonly workingDirectory: string;
};

/** What the container of a pod changes of it (`command`, `args`, `env` and `workingDir`). */
export type Override = {
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly path?: string;
  readonly workingDirectory?: string;
};

/** The parts of an image's config that decide what is started. */
export type ImageProcess = Required<Override> & { readonly os: string; readonly architecture: string };

/** What container runtimes set if an image sets none. */
const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const MAX_DIRECTORIES = 64;
/** More than these are not looked at: of arguments, and of the options of a program that starts another one. */
const MAX_ARGUMENTS = 1000;
const MAX_OPTIONS = 100;
/** No path of Linux is longer. */
const LONGEST = 4096;

/** Reads the config blob; undefined if it is not one. */
export function readImageProcess(body: Uint8Array): ImageProcess | undefined {
  const blob = parseObject(body);
  if (blob === undefined) return undefined;
  const inner = fieldOf(blob, 'config');
  const config = isObject(inner) ? inner : {};
  const os = textOf(fieldOf(blob, 'os')).toLowerCase() || 'linux';
  const path = textsOf(fieldOf(config, 'Env')).findLast((each) => each.startsWith('PATH='));
  return {
    os,
    architecture: textOf(fieldOf(blob, 'architecture')),
    command: textsOf(fieldOf(config, 'Entrypoint')),
    args: textsOf(fieldOf(config, 'Cmd')),
    path: path?.slice('PATH='.length) ?? DEFAULT_PATH,
    workingDirectory: textOf(fieldOf(config, 'WorkingDir')) || '/',
  };
}

/** Returns what is started. A pod's `command` replaces the entrypoint and the command of the image, its `args` only the latter. */
export function processOf(image: ImageProcess, override: Override): Process {
  const { command, args } = override;
  const own = command !== undefined && command.length > 0;
  const argv = [...(own ? command : image.command), ...(args ?? (own ? [] : image.args))].slice(0, MAX_ARGUMENTS);
  const workingDirectory = override.workingDirectory ?? image.workingDirectory;
  const directories = (override.path ?? image.path).split(':').slice(0, MAX_DIRECTORIES);
  return {
    argv,
    path: directories.filter((each) => each !== '' && each.length <= LONGEST),
    // No container starts in a directory with a longer name.
    workingDirectory: workingDirectory.length > LONGEST ? '/' : workingDirectory,
  };
}

/** Returns the paths in the layers at which a program may be, in the order in which they are tried. */
function placesOf(name: string, { path, workingDirectory }: Omit<Process, 'argv'>): string[] {
  const from = (each: string): string => normalPath(each.startsWith('/') ? each : `${workingDirectory}/${each}`);
  return name.includes('/') ? [from(name)] : [...new Set(path.map((each) => from(`${each}/${name}`)))];
}

/** Small programs that start another one: an init, or env. Of each, the flags that take a value of their own. */
const STARTERS: ReadonlyMap<string, RegExp> = new Map([
  ['tini', /^-[pe]$/],
  ['tini-static', /^-[pe]$/],
  ['docker-init', /^-[pe]$/],
  ['catatonit', /^$/],
  ['dumb-init', /^(?:-r|--rewrite)$/],
  ['env', /^(?:-u|--unset|-C|--chdir)$/],
]);

/** Returns what a small init, or `env`, starts; undefined for every other program, or if its arguments do not say it. */
function startedBy(program: string, args: readonly string[]): readonly string[] | undefined {
  const name = program.slice(program.lastIndexOf('/') + 1);
  const valued = STARTERS.get(name);
  if (valued === undefined) return undefined;
  let rest = [...args];
  for (let options = 0; options < MAX_OPTIONS; options += 1) {
    const [first, ...others] = rest;
    if (first === undefined || first.length > LONGEST) return undefined;
    if (first === '--') return others.length > 0 ? others : undefined;
    const [, split] = /^(?:-S|--split-string=?)[ \t]*(.*)$/s.exec(first) ?? [];
    if (name === 'env' && split !== undefined) rest = [...split.split(/[ \t]+/).filter(Boolean), ...others];
    else if (first.startsWith('-') && first.length > 1) rest = valued.test(first) ? others.slice(1) : others;
    else if (name === 'env' && (first.includes('=') || first === '-')) rest = others;
    else return rest;
  }
  return undefined;
}

/** Whether a program is a shell, which only starts others. */
function isShell(program: string): boolean {
  return /(?:^|\/)(?:(?:ba|da|a|z|k|mk)?sh|busybox|cmd\.exe|powershell\.exe|pwsh(?:\.exe)?)$/i.test(program);
}

function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return value === '' ? [] : [value];
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : [];
}
