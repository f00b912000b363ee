import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf } from '../../kit/errors.ts';
import type { Reference } from '../reference.ts';
import type { HostsDirectory } from './hosts-directory.ts';
import { type FileProblem, oneAfterTheOther, readText, reason, reportOnce } from './operator-file.ts';
import { type ConfRegistry, type PullSource, parseRegistriesConf, pullSources } from './registries-conf.ts';

/** What CRI-O's files say of registries. An invalid file changes nothing: what was read before stays. */
export type RegistriesConf = Pick<HostsDirectory, 'namedHosts' | 'reload' | 'paths'> & {
  /** Returns where an image is requested; undefined if no table is about it. */
  sources(reference: Reference): readonly PullSource[] | undefined;
};

/**
 * Reads a `registries.conf`, or a directory with it and with `registries.conf.d`, whose files of this ending follow in the order of
 * their names. Empty until the first reload; with an empty `path` it stays empty.
 *
 * @param onIgnored gets what a reload ignores in a file, once until it changes
 */
export function createRegistriesConf(options: {
  readonly path: string;
  readonly onIgnored?: (problem: FileProblem) => void;
}): RegistriesConf {
  const { path, onIgnored = () => undefined } = options;
  const reportIgnored = reportOnce(onIgnored);
  let registries: readonly ConfRegistry[] = [];
  let named: ReadonlySet<string> = new Set();
  let paths: readonly string[] = path === '' ? [] : [path];

  async function load(): Promise<readonly FileProblem[]> {
    if (path === '') return [];
    const merged = new Map<string, ConfRegistry>();
    const warnings: FileProblem[] = [];
    const seen = new Set([path]);
    let at = path;
    try {
      const files = await filesOf(path);
      let isEmpty = true;
      for (const file of files) {
        at = file;
        seen.add(file);
        const text = await readText(file);
        if (text === undefined) continue;
        isEmpty = false;
        const read = parseRegistriesConf(text, file);
        for (const registry of read.registries) merged.set(registry.prefix, registry);
        warnings.push(...read.warnings.map((problem) => ({ file, problem })));
      }
      at = path;
      if (isEmpty) throw new Error('there is no registries.conf and no registries.conf.d/*.conf');
    } catch (error) {
      return [{ file: at, problem: reason(error) }];
    } finally {
      paths = [...seen];
    }
    reportIgnored(warnings);
    registries = [...merged.values()].sort((one, other) => (one.prefix < other.prefix ? -1 : 1));
    const places = registries.flatMap(({ prefix, location, mirrors }) => [
      prefix,
      location,
      ...mirrors.map((each) => each.location),
    ]);
    named = new Set(
      places.filter((each) => each !== '' && !each.startsWith('*')).map((each) => each.replace(/\/.*/s, '')),
    );
    return [];
  }

  return {
    sources: (reference) => pullSources(reference, registries),
    namedHosts: () => named,
    reload: oneAfterTheOther(load),
    get paths() {
      return paths;
    },
  };
}

async function filesOf(path: string): Promise<string[]> {
  if (!(await stat(path)).isDirectory()) return [path];
  const directory = join(path, 'registries.conf.d');
  const names = await readdir(directory).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return [];
    throw error;
  });
  const dropIns = names.filter((name) => name.endsWith('.conf')).sort();
  return [join(path, 'registries.conf'), ...dropIns.map((name) => join(directory, name))];
}
