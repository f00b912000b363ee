import { randomBytes, type X509Certificate } from 'node:crypto';
import { isObject, type JsonObject, objectAt } from '../../kit/json.ts';
import type { ApiClient } from '../../kube/api-client.ts';
import { ApiError, isGone } from '../../kube/errors.ts';
import { find } from '../../kube/read.ts';
import { FIELD_MANAGER } from '../../names.ts';
import { isVouchedFor, lifeOf, type Pair, PairError, readBundle, readPair } from './pair.ts';

/** The content of the Secret with archaware's own certificates, and the path of the reviews. A part that is missing or damaged is undefined. */
export type KeptSecret = {
  /** `tls.crt` and `tls.key`, if an authority of the bundle signed them. */
  readonly serving: Pair | undefined;
  readonly authority: Pair | undefined;
  /** `ca.crt`: the authorities that clients should trust. */
  readonly bundle: readonly X509Certificate[];
  /** The path of the reviews, `/mutate/<secret>`. Only readers of the Secret or of the webhook's configuration know it. */
  readonly path: string | undefined;
  /** The damaged entries, by name. */
  readonly problems: readonly string[];
};

const SERVING = { cert: 'tls.crt', key: 'tls.key' };
const AUTHORITY = { cert: 'authority.crt', key: 'authority.key' };
const BUNDLE = 'ca.crt';
const PATH = 'path';
/** The API server accepts only DNS labels as parts of a path, so the secret has at most 63 characters. */
const KEPT_PATH = /^\/mutate\/[0-9a-f]{32,63}$/;
/** The limit for a bundle that others may have written to. */
const MOST_AUTHORITIES = 8;

/** Reads the Secret. A Secret without any of the entries counts as empty, not as damaged. */
export function readKept(secret: JsonObject | undefined): KeptSecret {
  const at = (name: string) => entryOf(secret ?? {}, name);
  const isNew = [SERVING, AUTHORITY].every(({ cert, key }) => at(cert) === undefined && at(key) === undefined);
  const path = KEPT_PATH.test(at(PATH) ?? '') ? at(PATH) : undefined;
  if (isNew) return { serving: undefined, authority: undefined, bundle: [], path, problems: [] };
  const problems = path === undefined ? [`${PATH} is missing or damaged`] : [];
  const attempt = <T>(read: () => T): T | undefined => {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof PairError)) throw error;
      problems.push(error.message);
      return undefined;
    }
  };
  const pair = (names: typeof SERVING) => attempt(() => readPair(at(names.cert) ?? '', at(names.key) ?? '', names));
  const bundle = attempt(() => readBundle(at(BUNDLE) ?? '', BUNDLE)) ?? [];
  let [authority, serving] = [pair(AUTHORITY), pair(SERVING)];
  const [certificate] = authority?.chain ?? [];
  if (certificate?.ca === false) {
    problems.push(`${AUTHORITY.cert} is not a CA certificate`);
    authority = undefined;
  } else if (certificate !== undefined && !bundle.some(({ raw }) => raw.equals(certificate.raw))) {
    // The pair can be used nevertheless, and the next write adds the authority to the bundle.
    problems.push(`${BUNDLE} does not contain ${AUTHORITY.cert}`);
  }
  if (serving !== undefined && !isVouchedFor(serving, bundle)) {
    problems.push(`${BUNDLE} does not verify ${SERVING.cert}`);
    serving = undefined;
  }
  return { serving, authority, bundle, path, problems };
}

/** Returns the Secret's entries; undefined for an entry to remove. Without a path it is a random one of 160 bits. */
export function entriesOf(kept: KeptSecret): Readonly<Record<string, string | undefined>> {
  return {
    [SERVING.cert]: kept.serving?.cert,
    [SERVING.key]: kept.serving?.key,
    [BUNDLE]: bundleText(kept.bundle),
    [AUTHORITY.cert]: kept.authority?.cert,
    [AUTHORITY.key]: kept.authority?.key,
    [PATH]: kept.path ?? `/mutate/${randomBytes(20).toString('hex')}`,
  };
}

/** Returns a bundle as PEM. */
export function bundleText(bundle: readonly X509Certificate[]): string {
  return bundle.map(String).join('');
}

/**
 * Returns the bundle with the authority in front, and those that verify what is served: they are never cut off. Without duplicates
 * and expired ones.
 */
export function extendBundle(
  { bundle, serving, authority }: Pick<KeptSecret, 'bundle' | 'serving' | 'authority'>,
  now: number,
): readonly X509Certificate[] {
  const first = authority?.chain.slice(0, 1) ?? [];
  const inUse = bundle.filter((each) => serving !== undefined && isVouchedFor(serving, [each]));
  const unique = new Map(
    [...first, ...inUse, ...bundle].map((certificate) => [certificate.fingerprint256, certificate]),
  );
  return [...unique.values()].filter((each) => now < lifeOf(each).notAfter).slice(0, MOST_AUTHORITIES);
}

/** Opens a Secret that replicas share. If the program creates it, its type is `Opaque`. */
export function secretAt(client: ApiClient, namespace: string, name: string) {
  const collection = `/api/v1/namespaces/${namespace}/secrets`;
  const query = `?fieldManager=${FIELD_MANAGER}`;
  return {
    /** Reads the Secret; undefined if it does not exist. Throws what the client throws. */
    read: (signal: AbortSignal): Promise<JsonObject | undefined> => find(client, `${collection}/${name}`, signal),
    /**
     * Sets these entries (removes an entry whose value is undefined) and leaves the others. Returns the Secret after the
     * write, or undefined if another writer has changed it since it was read.
     */
    async write(
      read: JsonObject | undefined,
      entries: Readonly<Record<string, string | undefined>>,
      signal: AbortSignal,
    ): Promise<JsonObject | undefined> {
      const data: Record<string, unknown> = { ...objectAt(read ?? {}, 'data') };
      for (const [entry, value] of Object.entries(entries)) {
        if (value === undefined) delete data[entry];
        else data[entry] = Buffer.from(value).toString('base64');
      }
      try {
        const written =
          read === undefined
            ? await client.request('create', `${collection}${query}`, {
                body: { apiVersion: 'v1', kind: 'Secret', type: 'Opaque', metadata: { namespace, name }, data },
                signal,
              })
            : // Sending the resourceVersion back makes the server refuse the write if the Secret has changed.
              await client.request('update', `${collection}/${name}${query}`, { body: { ...read, data }, signal });
        return isObject(written) ? written : undefined;
      } catch (error) {
        if (isGone(error) || (error instanceof ApiError && error.status === 409)) return undefined;
        throw error;
      }
    },
  };
}

/** Returns the text of a Secret's entry; undefined if it is absent or empty. */
function entryOf(secret: JsonObject, entry: string): string | undefined {
  const encoded = objectAt(secret, 'data')[entry];
  const text = typeof encoded === 'string' ? Buffer.from(encoded, 'base64').toString() : '';
  return text === '' ? undefined : text;
}
