import { fieldOf, isObject, parseObject } from '../../kit/json.ts';
import { textOf } from '../manifest.ts';
import { normalPath } from './layer-tree.ts';

/** What a container of an image starts (OCI image-spec, config.md). */
export type Process = {
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
export type ImageProcess = Required<Override> & {
  readonly os: string;
  readonly architecture: string;
};

/** What container runtimes set if an image sets none. */
const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const MAX_DIRECTORIES = 64;
/** More than these are not looked at: of arguments, and of the options of a program that starts another one. */
const MAX_ARGUMENTS = 1000;
const MAX_OPTIONS = 100;
/** No path of Linux is longer. */
export const LONGEST = 4096;

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
export function placesOf(name: string, { path, workingDirectory }: Omit<Process, 'argv'>): string[] {
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
export function startedBy(program: string, args: readonly string[]): readonly string[] | undefined {
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
export function isShell(program: string): boolean {
  return /(?:^|\/)(?:(?:ba|da|a|z|k|mk)?sh|busybox|cmd\.exe|powershell\.exe|pwsh(?:\.exe)?)$/i.test(program);
}

function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return value === '' ? [] : [value];
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : [];
}
