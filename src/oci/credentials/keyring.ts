import { createHmac, randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { ImageError } from '../errors.ts';
import { createFlights } from '../flights.ts';
import type { Credential } from '../transport.ts';
import { type Login, PullSecretError, parsePullSecret } from './docker.ts';
import { matchCredentials } from './match.ts';

/** On whose behalf an image is looked up: the pull secrets of a pod, by name and in order, in its namespace. */
export type Access = {
  readonly namespace: string;
  readonly pullSecrets: readonly string[];
  /** `imagePullPolicy: Always`: what is known of a tag holds for a shorter time. */
  readonly always: boolean;
  /** The image is of a volume: whether it is an index has to be known. */
  readonly isVolume?: true;
};

/** A pull secret as read from the cluster, values in base64; or why it could not be read, as `not found`. */
export type ReadSecret =
  | { readonly name: string; readonly type: string; readonly data: Readonly<Record<string, string>> }
  | { readonly name: string; readonly problem: string };

/** A Secret that a pod names and that is passed over. */
export type UnusableSecret = { readonly namespace: string; readonly name: string; readonly reason: string };

export type KeyringOptions = {
  readonly pullSecrets: (access: Access, signal: AbortSignal) => Promise<readonly ReadSecret[]>;
  readonly onUnusableSecret?: (secret: UnusableSecret) => void;
  /** The operator's logins that may match an image's name, in any order. */
  readonly operator?: (name: string, signal: AbortSignal) => Promise<readonly Login[]>;
  readonly maxEntries: number;
  /** Of a keyring before, so that what its fingerprints own is still known; default: a new one. */
  readonly fingerprintKey?: Buffer;
};

/** What one access may log in with. */
export type Keys = {
  /** Of the pull secrets that match one of the names: who may be answered from what they find out. */
  fingerprints(names: readonly string[]): readonly string[];
  /** For an image's name, without tag and digest: pull secrets first, then the operator's, each in the kubelet's order. */
  candidates(name: string, signal: AbortSignal): Promise<readonly Credential[]>;
};

export type Keyring = {
  /**
   * Reads the pull secrets.
   *
   * @throws ImageError `unavailable` when they cannot be read, or the signal's reason
   */
  open(access: Access, signal: AbortSignal): Promise<Keys>;
  /** From memory: what {@link Keys.fingerprints} of the last {@link Keyring.open} said for this access. */
  fingerprints(access: Access, names: readonly string[]): readonly string[];
};

/** Of one process alone: a fingerprint that leaks says nothing about the password behind it. */
export function newFingerprintKey(): Buffer {
  return randomBytes(32);
}

/** Separates who may know what: pods with the same secrets in one namespace, or without any. */
export function accessKey({ namespace, pullSecrets }: Access): string {
  return pullSecrets.length === 0 ? '' : [namespace, ...pullSecrets].join('\n');
}

export function createKeyring(options: KeyringOptions): Keyring {
  const secretKey = options.fingerprintKey ?? newFingerprintKey();
  const learnt = new LRUCache<string, readonly { pattern: string; fingerprint: string }[]>({ max: options.maxEntries });
  const fingerprint = ({ username, password, identityToken = '' }: Login): string =>
    createHmac('sha256', secretKey).update(`${username}\0${password}\0${identityToken}`).digest('base64url');
  const credential = (login: Login, shared: boolean) => ({ ...login, fingerprint: fingerprint(login), shared });

  function parse(access: Access, secrets: readonly ReadSecret[]): Login[] {
    const unusable = (name: string, reason: string): [] => {
      options.onUnusableSecret?.({ namespace: access.namespace, name, reason });
      return [];
    };
    return secrets.flatMap((secret) => {
      if ('problem' in secret) return unusable(secret.name, secret.problem);
      try {
        return parsePullSecret(secret);
      } catch (error) {
        if (error instanceof PullSecretError) return unusable(secret.name, error.message);
        throw error;
      }
    });
  }

  /** All images of a pod are looked up at once: its secrets are read and parsed once for them. */
  const opening = createFlights<readonly (Login & Credential)[]>();

  async function readSecrets(access: Access, signal: AbortSignal): Promise<readonly (Login & Credential)[]> {
    const secrets = await options.pullSecrets(access, signal).catch((error: unknown) => {
      if (signal.aborted) throw signal.reason;
      throw new ImageError('the pull secrets could not be read from the API server', {
        code: 'unavailable',
        temporary: true,
        cause: error,
      });
    });
    const logins = parse(access, secrets).map((login) => credential(login, false));
    learnt.set(
      accessKey(access),
      logins.map((login) => ({ pattern: login.pattern, fingerprint: login.fingerprint })),
    );
    return logins;
  }

  return {
    async open(access, signal) {
      const logins =
        access.pullSecrets.length === 0
          ? []
          : await opening.join(accessKey(access), signal, (shared) => readSecrets(access, shared));
      return {
        fingerprints: (names) => fingerprintsOf(logins, names),
        async candidates(name, under) {
          const operator = (await options.operator?.(name, under)) ?? [];
          const shared = matchCredentials(operator, name).map((login) => credential(login, true));
          // A pull secret that holds what is the operator's anyway finds out nothing that is only the pod's.
          const own = matchCredentials(logins, name).map(
            (login) => shared.find((other) => other.fingerprint === login.fingerprint) ?? login,
          );
          return [...new Map([...own, ...shared].map((each) => [each.fingerprint, each] as const)).values()];
        },
      };
    },
    fingerprints(access, names) {
      const known = access.pullSecrets.length === 0 ? undefined : learnt.get(accessKey(access));
      return known === undefined ? [] : fingerprintsOf(known, names);
    },
  };
}

function fingerprintsOf(
  entries: readonly { readonly pattern: string; readonly fingerprint: string }[],
  names: readonly string[],
): string[] {
  const matching = names.flatMap((name) => matchCredentials(entries, name));
  return [...new Set(matching.map((entry) => entry.fingerprint))];
}
