import { type JsonObject, listAt, stringAt } from '../../kit/json.ts';

/**
 * The path before the error in the texts of runtimes and shells: runc "exec /app: exec format error", crun "exec container process
 * `/app`: Exec format error", gVisor "failed to load /app: exec format error", dash "/run.sh: 3: /app: Exec format error", bash
 * "/run.sh: line 3: /app: cannot execute binary file: Exec format error".
 */
const REFUSED = /(\/[^\s:`"']*)[`"']?: (?:cannot execute binary file: )?exec format error/i;
/** A shell that read a program as a script: "/app: line 1: \x7fELF…: not found". */
const READ_AS_SCRIPT = /(\/[^\s:`"']*): (?:line )?1: \x7fELF/;

/** What is in these directories did not come with the image. */
const NOT_OF_AN_IMAGE = ['/proc', '/sys', '/dev', '/tmp', '/var/tmp', '/run', '/var/run'];
/** Every pod has this mount, and no program in it. */
const TOKENS = '/var/run/secrets';

/**
 * Whether the program that the kernel refused can be part of the container's image: its path lies in no mounted volume. Where the
 * text names no path, only a container without volumes counts.
 *
 * @param text the message with an exec format error
 * @param container of the pod's spec
 */
export function isImagesProgram(text: string, container: JsonObject): boolean {
  const mounts = (listAt(container, 'volumeMounts') ?? []).map((mount) => clean(stringAt(mount, 'mountPath') ?? '/'));
  const [, path] = REFUSED.exec(text) ?? READ_AS_SCRIPT.exec(text) ?? [];
  if (path === undefined) return mounts.every((mount) => isWithin(mount, TOKENS));
  const program = clean(path);
  return ![...mounts, ...NOT_OF_AN_IMAGE].some((directory) => isWithin(program, directory));
}

/** Resolves `.`, `..` and double slashes of an absolute path. */
function clean(path: string): string {
  const parts: string[] = [];
  for (const part of path.split('/')) {
    if (part === '..') parts.pop();
    else if (part !== '' && part !== '.') parts.push(part);
  }
  return `/${parts.join('/')}`;
}

function isWithin(path: string, directory: string): boolean {
  return directory === '/' || path === directory || path.startsWith(`${directory}/`);
}
