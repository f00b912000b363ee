import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { allKeys, assign, valueAt } from '../../config/keys.ts';
import { type Config, schema } from '../../config/schema.ts';

/** The keys that name files or directories which commands read. */
const PATHS: readonly string[] = [
  'registries.containerdConfigDirectory',
  'registries.caFile',
  'credentials.dockerConfigFiles',
  'credentials.directory',
  'credentials.kubelet.config',
  'credentials.kubelet.binDirectory',
  'nodeLabels.directory',
];

/** A configuration that can be used on this machine. */
export type LocalConfig = {
  readonly config: Config;
  /** What the configuration does without here, one line for each key. */
  readonly notes: readonly string[];
};

/**
 * Makes the configuration of a container usable on this machine: files from ConfigMaps are written to a temporary directory, which
 * is deleted when the process ends. A key whose files exist only in the container gets its default.
 */
export function withLocalFiles(config: Config, files: ReadonlyMap<string, string>): LocalConfig {
  const notes: string[] = [];
  const local: Record<string, unknown> = structuredClone(config);
  let directory: string | undefined;
  /** Returns the path on this machine; undefined if the file is only in the container. */
  const here = (path: string): string | undefined => {
    const found = [...files].filter(([file]) => file === path || file.startsWith(`${path.replace(/\/+$/, '')}/`));
    if (found.length === 0) return existsSync(path) ? path : undefined;
    directory ??= temporaryDirectory();
    for (const [file, text] of found) {
      mkdirSync(join(directory, dirname(file)), { recursive: true });
      writeFileSync(join(directory, file), text, { mode: 0o600 });
    }
    return join(directory, path);
  };
  for (const key of PATHS) {
    const value = valueAt(config, key);
    const paths = Array.isArray(value) ? value.map(String) : [String(value)];
    const given = paths.filter((path) => path !== '');
    const known = given.flatMap((path) => here(path) ?? []);
    if (known.length < given.length) {
      notes.push(`${key}: ${given.join(', ')} is in the container of the controller, and is not used here`);
    }
    const fallback = allKeys().find(({ path }) => path === key)?.fallback;
    assign(local, key, Array.isArray(value) ? known : (known[0] ?? fallback));
  }
  const result = schema.parse(local);
  if (config.nodeLabels.directory === '' || result.nodeLabels.directory !== '') return { config: result, notes };
  // Without the rules, the labels that they set would count as labels to remove.
  return { config: { ...result, loops: result.loops.filter((loop) => loop !== 'labels') }, notes };
}

function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'archaware-config-'));
  process.once('exit', () => rmSync(directory, { recursive: true, force: true }));
  return directory;
}
