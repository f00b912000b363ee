import { readFile, writeFile } from 'node:fs/promises';
import { parse, stringify } from 'yaml';

type Fields = Readonly<Record<string, unknown>>;
type Kubeconfig = { clusters: { cluster: Fields }[]; users: { user: Fields }[] };

/** Writes a kubeconfig with another cluster or user to a path (default: its own), which it returns. */
export async function changeKubeconfig(
  file: string,
  change: { readonly cluster?: (before: Fields) => Fields; readonly user?: Fields },
  to = file,
): Promise<string> {
  const config: Kubeconfig = parse(await readFile(file, 'utf8'));
  for (const entry of config.clusters) entry.cluster = change.cluster?.(entry.cluster) ?? entry.cluster;
  for (const entry of config.users) entry.user = change.user ?? entry.user;
  await writeFile(to, stringify(config), { mode: 0o600 });
  return to;
}
