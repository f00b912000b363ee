import { randomBytes } from 'node:crypto';
import type { JsonObject } from '../../kit/json.ts';
import { entryOf } from '../../kube/secret.ts';

/** What the replicas share in the Secret, beside the certificates. */
export type Shared = {
  /** Where reviews are served, as `/mutate/<secret>`: known to those who may read the Secret or the webhook's configuration. */
  readonly path: string;
  /** Signs what admission records on pods; hexadecimal. */
  readonly signingKey: string;
};

const PATH = 'path';
const SIGNING_KEY = 'signing.key';
/** The API server takes DNS names alone as parts of a path. */
const KEPT_PATH = /^\/mutate\/[0-9a-f]{32,63}$/;
const KEPT_KEY = /^(?:[0-9a-f]{2}){32,64}$/;

/** Reads it from the Secret; undefined where it is not there, or is not as it was written. */
export function readShared(secret: JsonObject | undefined): Shared | undefined {
  const [path, signingKey] = [entryOf(secret ?? {}, PATH), entryOf(secret ?? {}, SIGNING_KEY)];
  const isKept = path !== undefined && signingKey !== undefined && KEPT_PATH.test(path) && KEPT_KEY.test(signingKey);
  return isKept ? { path, signingKey } : undefined;
}

/** Makes it: 160 bits for the path, 256 for the key. */
export function makeShared(): Shared {
  return { path: `/mutate/${randomBytes(20).toString('hex')}`, signingKey: randomBytes(32).toString('hex') };
}

/** The Secret's entries for it. */
export function sharedEntries({ path, signingKey }: Shared): Readonly<Record<string, string>> {
  return { [PATH]: path, [SIGNING_KEY]: signingKey };
}
