import type { ApiClient } from '../../src/kube/api-client.ts';

/** A client that does what is given, and fails where it is used for anything else. */
export function clientOf(given: Partial<ApiClient>): ApiClient {
  const unused = () => Promise.reject(new Error('not used'));
  return {
    ...{ host: 'api.test', addresses: () => new Set<string>() },
    ...{ request: unused, watch: unused, close: async () => undefined },
    ...given,
  };
}
