import { randomBytes } from 'node:crypto';
import type { JsonObject } from '../../kit/json.ts';
import { entryOf } from '../../kube/secret.ts';

/** The secrets that the replicas share in the Secret, in addition to the certificates. */
export type Shared = {
  /** The path of the reviews, `/mutate/<secret>`. Only readers of the Secret or of the webhook's configuration know it. */
  readonly path: string;
  /** The key that signs the records of admission on pods; hexadecimal. */
  readonly signingKey: string;
};

const PATH = 'path';
const SIGNING_KEY = 'signing.key';
/** The API server accepts only DNS labels as parts of a path, so the secret has at most 63 characters. */
const KEPT_PATH = /^\/mutate\/[0-9a-f]{32,63}$/;
const KEPT_KEY = /^(?:[0-9a-f]{2}){32,64}$/;

/** Reads the shared secrets; undefined if they are missing or damaged. */
export function readShared(secret: JsonObject | undefined): Shared | undefined {
  const [path, signingKey] = [entryOf(secret ?? {}, PATH), entryOf(secret ?? {}, SIGNING_KEY)];
  const isKept = path !== undefined && signingKey !== undefined && KEPT_PATH.test(path) && KEPT_KEY.test(signingKey);
  return isKept ? { path, signingKey } : undefined;
}

/** Creates random secrets: 160 bits for the path, 256 for the key. */
export function makeShared(): Shared {
  return { path: `/mutate/${randomBytes(20).toString('hex')}`, signingKey: randomBytes(32).toString('hex') };
}

/** Returns the Secret's entries. */
export function sharedEntries({ path, signingKey }: Shared): Readonly<Record<string, string>> {
  return { [PATH]: path, [SIGNING_KEY]: signingKey };
}
