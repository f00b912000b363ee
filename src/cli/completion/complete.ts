import { connect } from '../../app/connect.ts';
import type { Surroundings } from '../../app/surroundings.ts';
import { allKeys } from '../../config/keys.ts';
import { objectAt, stringAt } from '../../kit/json.ts';
import { contextNames } from '../../kube/access.ts';
import { readAll } from '../../kube/read.ts';
import type { Command, Flag } from '../command.ts';
import { ownContext } from '../command-context.ts';
import { KINDS } from '../survey/kinds.ts';
import { type Candidates, candidatesFor } from './suggestions.ts';

/** A shell waits for the names; without an answer by then it gets none. */
const PATIENCE_MS = 2_000;

/** Prints the candidates for the last word, one on a line. Never fails: without an answer of the cluster there are fewer of them. */
export async function complete(
  words: readonly string[],
  commands: readonly Command[],
  common: readonly Flag[],
  surroundings: Surroundings,
): Promise<void> {
  const keys = allKeys();
  const paths = keys.map(({ path }) => path);
  const valuesOf = (path: string) => keys.find((key) => key.path === path)?.choices ?? [];
  const found = candidatesFor(words, commands, common, paths, valuesOf);
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
    const group = KINDS.find(({ names }) => names[1] === live)?.path ?? '/api/v1';
    const path =
      live === 'namespaces'
        ? '/api/v1/namespaces'
        : `${group}/namespaces/${encodeURIComponent(namespace ?? home)}/${live}`;
    return await readAll(client, path, (object) => stringAt(objectAt(object, 'metadata'), 'name'), surroundings.signal);
  } finally {
    await close();
  }
}
