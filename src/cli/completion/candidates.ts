import type { Command, Flag } from '../command.ts';

/** What a completion needs from the cluster; undefined: nothing. */
export type LiveNames = 'namespaces' | 'pods' | 'contexts' | undefined;

/** The candidates for the word under the cursor. `live`: names of the cluster that belong to them too. */
export type Candidates = {
  readonly words: readonly string[];
  readonly live: LiveNames;
  /** What the command line says already. */
  readonly namespace: string | undefined;
  readonly kubeconfig: string | undefined;
  readonly context: string | undefined;
};

/**
 * Returns what may stand in place of the last word. The words are those after the name of the program; the last one is incomplete,
 * perhaps empty. Nothing at all means a file name, which the shell completes by itself.
 */
export function candidatesFor(
  words: readonly string[],
  commands: readonly Command[],
  common: readonly Flag[],
  keys: readonly string[],
): Candidates {
  const current = words.at(-1) ?? '';
  const before = words.slice(0, -1);
  const command = commands.find(({ name }) => before.includes(name));
  const flags = [...(command?.flags ?? []), ...common];
  const said = {
    namespace: givenFor(before, flags, 'namespace'),
    kubeconfig: givenFor(before, flags, 'kubeconfig'),
    context: givenFor(before, flags, 'context'),
  };
  const only = (list: readonly string[], live?: LiveNames): Candidates => ({
    words: list.filter((word) => word.startsWith(current)),
    live,
    ...said,
  });
  const previous = flagOf(before.at(-1) ?? '', flags);
  if (previous?.value !== undefined) return only(previous.choices ?? [], LIVE[previous.name]);
  if (current.startsWith('-')) {
    // Short flags first; the keys only when somebody looks for them, because there are more than fifty.
    const named = flags.map(({ name }) => `--${name}`);
    return only([...named, '--help', ...(/^--\w/.test(current) ? keys.map((key) => `--${key}`) : [])]);
  }
  if (command === undefined) return only(commands.map(({ name }) => name));
  const operands = before.slice(before.indexOf(command.name) + 1).filter((word) => !word.startsWith('-'));
  return only(operands.length === 0 ? (command.operandChoices ?? []) : [], command.hasPodOperands ? 'pods' : undefined);
}

/** Where the values of a flag come from, if the cluster or the kubeconfig has them. */
const LIVE: Readonly<Record<string, LiveNames>> = {
  namespace: 'namespaces',
  installation: 'namespaces',
  context: 'contexts',
};

function flagOf(word: string, flags: readonly Flag[]): Flag | undefined {
  return flags.find(({ name, letter }) => word === `--${name}` || word === `-${letter}`);
}

function givenFor(words: readonly string[], flags: readonly Flag[], name: string): string | undefined {
  const joined = words.find((word) => word.startsWith(`--${name}=`));
  if (joined !== undefined) return joined.slice(name.length + 3);
  const at = words.findIndex((word) => flagOf(word, flags)?.name === name);
  return at < 0 ? undefined : words[at + 1];
}
