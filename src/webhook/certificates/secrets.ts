import { randomBytes } from 'node:crypto';
import type { JsonObject } from '../../kit/json.ts';
import { entryOf } from '../../kube/secret.ts';

/** The entry of the Secret with the path of the reviews. Only readers of the Secret or of the webhook's configuration know it. */
const PATH = 'path';
/** The API server accepts only DNS labels as parts of a path, so the secret has at most 63 characters. */
const KEPT_PATH = /^\/mutate\/[0-9a-f]{32,63}$/;

/** Reads the path of the reviews, `/mutate/<secret>`; undefined if it is missing or damaged. */
export function readPath(secret: JsonObject | undefined): string | undefined {
  const path = entryOf(secret ?? {}, PATH);
  return path !== undefined && KEPT_PATH.test(path) ? path : undefined;
}

/** Returns the Secret's entry; without a path with a random one of 160 bits. */
export function pathEntry(path = `/mutate/${randomBytes(20).toString('hex')}`): Readonly<Record<string, string>> {
  return { [PATH]: path };
}
