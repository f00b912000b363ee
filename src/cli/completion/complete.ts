import { connect } from '../../app/connect.ts';
import type { Surroundings } from '../../app/surroundings.ts';
import { allKeys, type ConfigKey } from '../../config/keys.ts';
import { contextNames } from '../../kube/access.ts';
import { readNames } from '../../kube/read.ts';
import type { Command, Flag } from '../command.ts';
import { ownContext } from '../command-context.ts';
import { COMMANDS } from '../commands.ts';
import { commonFlagsOf } from '../flags.ts';
import { KINDS, pathOf } from '../survey/kind-paths.ts';

/** A shell waits for the names; without an answer by then it gets none. */
const PATIENCE_MS = 2_000;

/** Prints the candidates for the last word, one on a line. Never fails: without an answer of the cluster there are fewer of them. */
export async function complete(words: readonly string[], surroundings: Surroundings): Promise<void> {
  const found = candidatesFor(words, allKeys());
  const current = words.at(-1) ?? '';
  const late = new AbortController();
  const cancel = surroundings.clock.after(PATIENCE_MS, () => late.abort());
  const signal = AbortSignal.any([surroundings.signal, late.signal]);
  const live = await liveNames(found, { ...surroundings, signal }).catch(() => []);
  cancel();
  // A name of the cluster is printed as it is: what is not a name of Kubernetes is left out, as a shell would run it.
  const names = live
    .filter((name) => /^[\w.@:/-]+$/.test(name))
    .map((name) => `${found.prefix}${name}`)
    .filter((name) => name.startsWith(current));
  surroundings.print([...found.words, ...names].map((word) => `${word}\n`).join(''));
}

async function liveNames(
  { live, namespace, kubeconfig, context: named }: Candidates,
  surroundings: Surroundings,
): Promise<readonly string[]> {
  if (live === undefined) return [];
  if (live === 'contexts') return contextNames(kubeconfig);
  const words = {
    keys: {},
    configFile: undefined,
    kubeconfig,
    context: named,
    installation: undefined,
    output: 'table',
  } as const;
  const context = await ownContext(words, { ...surroundings, environment: {} });
  const { client, namespace: home, close } = await connect(context);
  try {
    const kind = KINDS.find(({ names }) => names[1] === live)?.kind;
    const path = kind === undefined ? '/api/v1/namespaces' : pathOf(kind, namespace ?? home);
    return await readNames(client, path, surroundings.signal);
  } finally {
    await close();
  }
}

/** What a completion needs from the cluster: the plural of a kind, or the contexts of the kubeconfig; undefined: nothing. */
type LiveNames = string | undefined;

/** The candidates for the word under the cursor. `live`: names of the cluster that belong to them too. */
type Candidates = {
  readonly words: readonly string[];
  readonly live: LiveNames;
  /** What stands in front of each name of `live`: `deployment/`. */
  readonly prefix: string;
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
  keys: readonly Pick<ConfigKey, 'path' | 'choices'>[],
): Candidates {
  const { before, current, head } = split(words);
  const command = COMMANDS.find(({ name }) => before.includes(name));
  const flags = [...(command?.flags ?? []), ...commonFlagsOf(command)];
  const said = {
    namespace: givenFor(before, flags, 'namespace'),
    kubeconfig: givenFor(before, flags, 'kubeconfig'),
    context: givenFor(before, flags, 'context'),
  };
  const only = (list: readonly string[], live?: LiveNames, prefix = ''): Candidates => ({
    words: list.map((word) => `${prefix}${word}`).flatMap((word) => (word.startsWith(current) ? `${head}${word}` : [])),
    live,
    prefix: `${head}${prefix}`,
    ...said,
  });
  const last = before.at(-1) ?? '';
  const previous = flagOf(last, flags);
  // In a list, only the word after the last comma is completed.
  const listed = current.slice(0, current.lastIndexOf(',') + 1);
  if (previous?.value !== undefined) return only(previous.choices ?? [], LIVE[previous.name], listed);
  const key = keys.find(({ path }) => last === `--${path}`);
  if (key !== undefined) return only(key.choices, undefined, listed);
  if (current.startsWith('-')) {
    // Short flags first; the keys only when somebody looks for them, because there are more than fifty.
    const named = flags.map(({ name }) => `--${name}`);
    return only([...named, '--help', ...(/^--\w/.test(current) ? keys.map(({ path }) => `--${path}`) : [])]);
  }
  if (command === undefined) return only(COMMANDS.map(({ name }) => name));
  const operands = before.slice(before.indexOf(command.name) + 1).filter((word) => !word.startsWith('-'));
  if (command.hasPodOperands) return { ...only([]), ...objectNames(operands.at(-1), current, command, only) };
  return only(operands.length === 0 ? (command.operandChoices ?? []) : []);
}

/** Returns the candidates for `NAME`, `KIND/NAME`, `KIND NAME` and `NAMESPACE/POD`. */
function objectNames(
  operand: string | undefined,
  current: string,
  { operandChoices = [] }: Command,
  only: (list: readonly string[], live?: LiveNames, prefix?: string) => Candidates,
): Partial<Candidates> {
  const pluralOf = (name: string) => KINDS.find(({ names }) => names.includes(name.toLowerCase()))?.names[1];
  const slash = current.indexOf('/');
  if (slash >= 0) {
    const first = current.slice(0, slash);
    const plural = pluralOf(first);
    if (plural !== undefined) return only([], plural, `${first}/`);
    return { ...only([], 'pods', `${first}/`), namespace: first };
  }
  const plural = operand === undefined ? undefined : pluralOf(operand);
  return plural === undefined ? only(operand === undefined ? operandChoices : [], 'pods') : only([], plural);
}

/**
 * Splits the words. `--flag=value` is one word in some shells, and three in bash; the flag counts as the word before.
 * `head`: what stands in front of the completed part in its word.
 */
function split(words: readonly string[]): { before: readonly string[]; current: string; head: string } {
  const parts = words.filter((word, at) => word !== '=' || at === words.length - 1);
  const last = parts.at(-1) ?? '';
  const current = last === '=' ? '' : last;
  const before = parts.slice(0, -1);
  const [, flag, value] = /^(--[\w.-]+)=(.*)$/.exec(current) ?? [];
  if (flag === undefined || value === undefined) return { before, current, head: '' };
  return { before: [...before, flag], current: value, head: `${flag}=` };
}

/** Where the values of a flag come from, if the cluster or the kubeconfig has them. */
const LIVE: Readonly<Record<string, LiveNames>> = { namespace: 'namespaces', context: 'contexts' };

function flagOf(word: string, flags: readonly Flag[]): Flag | undefined {
  return flags.find(({ name, letter }) => word === `--${name}` || word === `-${letter}`);
}

function givenFor(words: readonly string[], flags: readonly Flag[], name: string): string | undefined {
  const joined = words.find((word) => word.startsWith(`--${name}=`));
  if (joined !== undefined) return joined.slice(name.length + 3);
  const at = words.findIndex((word) => flagOf(word, flags)?.name === name);
  return at < 0 ? undefined : words[at + 1];
}
