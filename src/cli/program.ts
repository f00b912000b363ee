/** The name of the program, as `package.json` installs it. */
export const PROGRAM = 'archaware';
/** The program as a plug-in of kubectl. */
export const PLUGIN = 'kubectl archaware';

/** Returns the words with which the program was called, from the name of its executable. kubectl finds `kubectl-archaware` on the PATH. */
export function programOf(executable: string): string {
  return /(?:^|[/\\])kubectl-archaware(?:\.exe)?$/i.test(executable) ? PLUGIN : PROGRAM;
}
