import { createHmac, randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { ImageError } from '../errors.ts';
import type { Credential } from '../transport.ts';
import { type Login, PullSecretError, parsePullSecret } from './docker.ts';
import { matchCredentials } from './match.ts';

/** On whose behalf an image is looked up: the pull secrets of a pod, by name and in order, in its namespace. */
export type Access = {
  readonly namespace: string;
  readonly pullSecrets: readonly string[];
  /** `imagePullPolicy: Always`: what is known of a tag holds for a shorter time. */
  readonly always: boolean;
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
  readonly maxEntries: number;
};

export type Keyring = {
  /**
   * Reads the pull secrets; those of them that match the image, in the kubelet's order.
   *
   * @param name the image's, without tag and digest
   * @throws ImageError `unavailable` when they cannot be read, or the signal's reason
   */
  read(access: Access, name: string, signal: AbortSignal): Promise<readonly Credential[]>;
  /** From memory: the fingerprints that {@link Keyring.read} last found for this access and image. */
  fingerprints(access: Access, name: string): readonly string[];
};

/** Separates who may know what: pods with the same secrets in one namespace, or without any. */
export function accessKey({ namespace, pullSecrets }: Access): string {
  return pullSecrets.length === 0 ? '' : [namespace, ...pullSecrets].join('\n');
}

export function createKeyring(options: KeyringOptions): Keyring {
  // Of this process alone: a fingerprint that leaks says nothing about the password behind it.
  const secretKey = randomBytes(32);
  const learnt = new LRUCache<string, readonly { pattern: string; fingerprint: string }[]>({ max: options.maxEntries });
  const fingerprint = ({ username, password }: Login): string =>
    createHmac('sha256', secretKey).update(`${username}\0${password}`).digest('base64url');

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

  return {
    async read(access, name, signal) {
      if (access.pullSecrets.length === 0) return [];
      const secrets = await options.pullSecrets(access, signal).catch((error: unknown) => {
        if (signal.aborted) throw signal.reason;
        throw new ImageError('the pull secrets could not be read from the API server', {
          code: 'unavailable',
          temporary: true,
          cause: error,
        });
      });
      const logins = parse(access, secrets).map((login) => ({
        ...login,
        fingerprint: fingerprint(login),
        shared: false,
      }));
      learnt.set(
        accessKey(access),
        logins.map((login) => ({ pattern: login.pattern, fingerprint: login.fingerprint })),
      );
      return unique(matchCredentials(logins, name));
    },
    fingerprints(access, name) {
      const known = access.pullSecrets.length === 0 ? undefined : learnt.get(accessKey(access));
      return known === undefined ? [] : unique(matchCredentials(known, name)).map((each) => each.fingerprint);
    },
  };
}

/** A login that stands under several patterns is tried once. */
function unique<T extends { readonly fingerprint: string }>(entries: readonly T[]): T[] {
  return [...new Map(entries.map((entry) => [entry.fingerprint, entry] as const)).values()];
}
