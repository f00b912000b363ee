import { createHmac, randomBytes } from 'node:crypto';
import type { Askers } from '../../kit/fairness/asking-namespaces.ts';
import { createFlights } from '../../kit/flights.ts';
import { createLru } from '../../kit/lru.ts';
import { ImageError, type ResolverTelemetry } from '../errors.ts';
import type { Credential } from '../http/transport.ts';
import { type Login, LoginError, matchCredentials, parsePullSecret } from './docker.ts';

/** For whom an image is looked up: a namespace, and the names of the pod's pull secrets, in order. */
export type Access = {
  readonly namespace: string;
  readonly pullSecrets: readonly string[];
  /** `imagePullPolicy: Always`: a known tag stays valid for a shorter time. */
  readonly always: boolean;
};

/** A pull secret as read from the cluster, with values in base64; or why it could not be read, for example `not found`. */
export type ReadSecret =
  | { readonly name: string; readonly type: string; readonly data: Readonly<Record<string, string>> }
  | { readonly name: string; readonly problem: string };

export type KeyringOptions = {
  readonly pullSecrets: (access: Access, signal: AbortSignal) => Promise<readonly ReadSecret[]>;
  readonly telemetry?: Partial<ResolverTelemetry>;
  /** Returns the operator's logins that may match an image's name, in any order. `askers`: the namespaces for which it is asked. */
  readonly operator?: (name: string, signal: AbortSignal, askers: Askers) => Promise<readonly Login[]>;
  /** The key of an earlier keyring, so that the entries its fingerprints own stay known; default: a new key. */
  readonly fingerprintKey?: Buffer;
};

/** Creates a key that is valid in one process only, so that a leaked fingerprint reveals nothing about the password. */
export function newFingerprintKey(): Buffer {
  return randomBytes(32);
}

/** Returns a key for callers that may share answers: pods with the same pull secrets in one namespace, or pods without any. */
export function accessKey({ namespace, pullSecrets }: Access): string {
  return pullSecrets.length === 0 ? '' : [namespace, ...pullSecrets].join('\n');
}

/** The most bytes of what is remembered of pull secrets: their authors choose how many logins are in one, and for which names. */
const MOST_LEARNT = 8 * 1024 * 1024;

export function createKeyring(options: KeyringOptions) {
  const secretKey = options.fingerprintKey ?? newFingerprintKey();
  const learnt = createLru<readonly { pattern: string; fingerprint: string }[]>(MOST_LEARNT, (logins, key) =>
    logins.reduce((sum, { pattern }) => sum + 128 + pattern.length, 128 + key.length),
  );
  const fingerprint = ({ username, password, identityToken = '' }: Login): string =>
    createHmac('sha256', secretKey).update(`${username}\0${password}\0${identityToken}`).digest('base64url');
  const credential = (login: Login, shared: boolean) => ({ ...login, fingerprint: fingerprint(login), shared });

  function parse(access: Access, secrets: readonly ReadSecret[]): Login[] {
    const unusable = (name: string, reason: string): [] => {
      options.telemetry?.unusableSecret?.({ namespace: access.namespace, name, reason });
      return [];
    };
    return secrets.flatMap((secret) => {
      if ('problem' in secret) return unusable(secret.name, secret.problem);
      try {
        const source = { kind: 'pull secret', name: secret.name } as const;
        return parsePullSecret(secret).map((login) => ({ ...login, source }));
      } catch (error) {
        if (error instanceof LoginError) return unusable(secret.name, error.message);
        throw error;
      }
    });
  }

  /** All images of a pod are looked up at once, so its secrets are read and parsed once for all of them. */
  const opening = createFlights<readonly (Login & Credential)[]>();

  async function readSecrets(access: Access, signal: AbortSignal): Promise<readonly (Login & Credential)[]> {
    const secrets = await options.pullSecrets(access, signal).catch((error: unknown) => {
      if (signal.aborted) throw signal.reason;
      const message = 'the pull secrets could not be read from the API server';
      throw new ImageError(message, { code: 'unavailable', cause: error });
    });
    const logins = parse(access, secrets).map((login) => credential(login, false));
    const known = logins.map((login) => ({ pattern: login.pattern, fingerprint: login.fingerprint }));
    learnt.set(accessKey(access), known);
    return logins;
  }

  return {
    /**
     * Reads the pull secrets; returns what the access may log in with.
     *
     * @throws ImageError `unavailable` if they cannot be read, or the signal's reason
     */
    async open(access: Access, signal: AbortSignal) {
      const logins =
        access.pullSecrets.length === 0
          ? []
          : await opening.join(accessKey(access), signal, (shared) => readSecrets(access, shared));
      return {
        /** Returns the fingerprints of the pull secrets that match an image's name. They decide who may get the cached answers. */
        fingerprints: (name: string): readonly string[] => fingerprintsOf(logins, [name]),
        /**
         * Returns the credentials for an image's name without tag and digest: pull secrets first, then the operator's, each in the
         * kubelet's order.
         */
        async candidates(name: string, under: AbortSignal, askers: Askers): Promise<readonly Credential[]> {
          const operator = (await options.operator?.(name, under, askers)) ?? [];
          if (operator.length + logins.length === 0) return [];
          const shared = matchCredentials(operator, name).map((login) => credential(login, true));
          // A pull secret with the same login as the operator's gives no answers that only the pod may have.
          const own = matchCredentials(logins, name).map(
            (login) => shared.find((other) => other.fingerprint === login.fingerprint) ?? login,
          );
          return [...new Map([...own, ...shared].map((each) => [each.fingerprint, each] as const)).values()];
        },
      };
    },
    /** Returns, without reading anything, the fingerprints that were there for this access and any of these names after the last `open`. */
    fingerprints(access: Access, names: readonly string[]): readonly string[] {
      const known = access.pullSecrets.length === 0 ? undefined : learnt.get(accessKey(access));
      return known === undefined ? [] : fingerprintsOf(known, names);
    },
  };
}

function fingerprintsOf(
  entries: readonly { readonly pattern: string; readonly fingerprint: string }[],
  names: readonly string[],
): string[] {
  const matching = entries.length === 0 ? [] : names.flatMap((name) => matchCredentials(entries, name));
  return [...new Set(matching.map((entry) => entry.fingerprint))];
}
