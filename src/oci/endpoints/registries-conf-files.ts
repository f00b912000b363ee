import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf } from '../../kit/errors.ts';
import type { Reference } from '../reference.ts';
import { createFiles, type FileProblem, oneAfterTheOther, readText, reportOnce } from './operator-file.ts';
import { type ConfRegistry, parseRegistriesConf, pullSources } from './registries-conf.ts';

/**
 * What CRI-O's files say of registries. An invalid file changes nothing: what was read before stays.
 *
 * Reads a `registries.conf`, or a directory with it and with `registries.conf.d`, whose files of this ending follow in the order of
 * their names. Empty until the first reload; with an empty `path` it stays empty.
 *
 * @param onIgnored gets what a reload ignores in a file, once until it changes
 */
export function createRegistriesConf(options: {
  readonly path: string;
  readonly onIgnored?: (problem: FileProblem) => void;
}) {
  const { path, onIgnored = () => undefined } = options;
  const reportIgnored = reportOnce(onIgnored);
  let registries: readonly ConfRegistry[] = [];
  let named: ReadonlySet<string> = new Set();
  const files = createFiles(
    path,
    () => filesOf(path),
    async (file) => parseRegistriesConf(await readText(file), file),
  );

  async function load(): Promise<readonly FileProblem[]> {
    if (path === '') return [];
    const problems = await files.reload();
    if (problems.length > 0) return problems;
    const read = [...files.values()];
    reportIgnored(read.flatMap(([file, { warnings }]) => warnings.map((problem) => ({ file, problem }))));
    const merged = new Map(read.flatMap(([, each]) => each.registries.map((registry) => [registry.prefix, registry])));
    registries = [...merged.values()].sort((one, other) => (one.prefix < other.prefix ? -1 : 1));
    const places = registries.flatMap((each) => [
      each.prefix,
      each.location,
      ...each.mirrors.map(({ location }) => location),
    ]);
    named = new Set(places.filter((place) => !/^(?:\*|$)/.test(place)).map((place) => place.replace(/\/.*/s, '')));
    return [];
  }

  return {
    /** Returns where an image is requested; undefined if no table is about it. */
    sources: (reference: Reference) => pullSources(reference, registries),
    namedHosts: (): ReadonlySet<string> => named,
    reload: oneAfterTheOther(load),
    paths: path === '' ? [] : [path],
  };
}

async function filesOf(path: string): Promise<string[]> {
  if (!(await stat(path)).isDirectory()) return [path];
  const own = (await readdir(path)).filter((name) => name === 'registries.conf');
  const directory = join(path, 'registries.conf.d');
  const names = await readdir(directory).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return [];
    throw error;
  });
  const dropIns = names.filter((name) => name.endsWith('.conf')).sort();
  const files = [...own.map((name) => join(path, name)), ...dropIns.map((name) => join(directory, name))];
  if (files.length === 0) throw new Error('there is no registries.conf and no registries.conf.d/*.conf');
  return files;
}
