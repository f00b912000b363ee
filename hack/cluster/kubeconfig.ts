import { writeFile } from 'node:fs/promises';
import { stringify } from 'yaml';

/** Writes a kubeconfig with one context that has the token's rights, readable by its owner alone. */
export async function writeKubeconfig(
  path: string,
  { server, authority, token, user }: { server: string; authority: string; token: string; user: string },
): Promise<string> {
  const name = 'archaware-test';
  const content = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': name,
    clusters: [{ name, cluster: { server, 'certificate-authority-data': Buffer.from(authority).toString('base64') } }],
    users: [{ name: user, user: { token } }],
    contexts: [{ name, context: { cluster: name, user } }],
  };
  await writeFile(path, stringify(content), { mode: 0o600 });
  return path;
}
