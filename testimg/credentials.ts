/** Names and passwords from a file of the form of `~/.docker/config.json`. */
import { readFile } from 'node:fs/promises';
import type { Credentials } from './session.ts';

/** Docker Hub goes by many names; `docker login` writes the first of these. */
const DOCKER_HUB_KEYS = ['https://index.docker.io/v1/', 'index.docker.io', 'docker.io', 'registry-1.docker.io'];

/**
 * The credentials for a repository (`quay.io/namespace/name`), undefined if the file has none. Keys may be hosts or, as
 * podman writes them, paths: the longest that fits wins. Throws if the file cannot be used, or if they are held by a
 * helper program: this script runs none.
 */
export async function readCredentials(file: string, repository: string): Promise<Credentials | undefined> {
  const content = parse(await readFile(file, 'utf8'), file);
  const auths = isRecord(content.auths) ? content.auths : {};
  const host = repository.split('/')[0] ?? repository;
  for (const key of keysFor(repository, host)) {
    const entry = auths[key];
    const credentials = isRecord(entry) ? decode(entry, key, file) : undefined;
    if (credentials !== undefined) return credentials;
  }
  const helpers = isRecord(content.credHelpers) ? content.credHelpers : {};
  if (
    host in helpers ||
    (typeof content.credsStore === 'string' && keysFor(repository, host).some((k) => k in auths))
  ) {
    throw new Error(
      `${file}: the credentials for ${host} are held by a credential helper, which is not run here; ` +
        `give a file with an "auth" for ${host}, as "podman login --authfile FILE ${host}" writes it`,
    );
  }
  return undefined;
}

function keysFor(repository: string, host: string): string[] {
  const parts = repository.split('/');
  const paths = parts.map((_, cut) => parts.slice(0, parts.length - cut).join('/'));
  return [...paths, `https://${host}`, ...(host === 'docker.io' ? DOCKER_HUB_KEYS : [])];
}

function decode(entry: Record<string, unknown>, key: string, file: string): Credentials | undefined {
  if (typeof entry.username === 'string' && typeof entry.password === 'string') {
    return { username: entry.username, password: entry.password };
  }
  if (typeof entry.auth !== 'string' || entry.auth === '') return undefined;
  const text = Buffer.from(entry.auth, 'base64').toString('utf8');
  const colon = text.indexOf(':');
  if (colon < 1) throw new Error(`${file}: auths["${key}"].auth is not the base64 form of name:password`);
  return { username: text.slice(0, colon), password: text.slice(colon + 1) };
}

function parse(text: string, file: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error(`${file}: not JSON; expected the form of ~/.docker/config.json`);
  }
  if (!isRecord(value)) throw new Error(`${file}: expected an object like ~/.docker/config.json`);
  return value;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
