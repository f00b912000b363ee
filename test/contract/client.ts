import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';
import { type Client, createClient } from '../../hack/cluster/client.ts';
import { at, object, objects, text } from '../simulator/json.ts';

/** A client for a kubeconfig, with its token or another. */
export async function connect(kubeconfig: string, token?: string): Promise<Client> {
  const config: unknown = parse(await readFile(kubeconfig, 'utf8'));
  const cluster = object(at(objects(at(config, 'clusters'))[0], 'cluster'));
  const user = object(at(objects(at(config, 'users'))[0], 'user'));
  const file = text(cluster['certificate-authority']);
  const inline = Buffer.from(text(cluster['certificate-authority-data']), 'base64').toString();
  const authority = (file === '' ? inline : await readFile(file, 'utf8')) || undefined;
  return createClient(text(cluster.server), token ?? text(user.token), authority);
}
