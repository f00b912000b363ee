import { randomBytes, type X509Certificate } from 'node:crypto';
import type { JsonObject } from '../../kit/json.ts';
import { entryOf } from '../../kube/secret.ts';
import { isVouchedFor, lifeOf, type Pair, PairError, readBundle, readPair } from './pair.ts';

/** The content of the Secret with archaware's own certificates, and the path of the reviews. A part that is missing or damaged is undefined. */
export type Kept = {
  /** `tls.crt` and `tls.key`, if an authority of the bundle signed them. */
  readonly serving: Pair | undefined;
  /** The authority that signs. */
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
export function readKept(secret: JsonObject | undefined): Kept {
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
export function entriesOf(kept: Kept): Readonly<Record<string, string | undefined>> {
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
  { bundle, serving, authority }: Pick<Kept, 'bundle' | 'serving' | 'authority'>,
  now: number,
): readonly X509Certificate[] {
  const first = authority?.chain.slice(0, 1) ?? [];
  const inUse = bundle.filter((each) => serving !== undefined && isVouchedFor(serving, [each]));
  const unique = new Map(
    [...first, ...inUse, ...bundle].map((certificate) => [certificate.fingerprint256, certificate]),
  );
  return [...unique.values()].filter((each) => now < lifeOf(each).notAfter).slice(0, MOST_AUTHORITIES);
}
