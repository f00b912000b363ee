import type { ApiClient } from './api-client.ts';

/** A write that the program itself refused before it was sent, because its mode writes nothing. It shows a mistake in the program. */
export class WriteRefusedHereError extends Error {
  override readonly name = 'WriteRefusedHereError';
}

const EVENTS = /^\/apis\/events\.k8s\.io\/v1\/namespaces\/[^/?]+\/events(?:\?|$)/;

/**
 * Creates a client that sends reads, creates Events, and refuses every other write with {@link WriteRefusedHereError}. It
 * is the second barrier of a mode that writes nothing: no part of the program behind it can write, not even by mistake.
 */
export function createClientWithoutWrites(client: ApiClient): ApiClient {
  return {
    ...client,
    async request(verb, path, options) {
      const isRead = verb === 'get' || verb === 'list';
      const isEvent = verb === 'create' && EVENTS.test(path);
      if (isRead || isEvent) return client.request(verb, path, options);
      throw new WriteRefusedHereError(
        `not sent: ${verb} ${path.split('?')[0]}: placement.mode observe writes only Events`,
      );
    },
  };
}
