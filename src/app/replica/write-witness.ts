import type { Clock } from '../../kit/clock.ts';
import type { ApiRequest } from '../../kube/client.ts';

/** Records when the API server last stored a write, as a proof that it is not the API server that fails. */
export type WriteWitness = {
  /** Records the end of a request. */
  finished(request: ApiRequest): void;
  /** Returns when a write last succeeded, in milliseconds on the monotonic clock; undefined: none did. */
  lastMs(): number | undefined;
};

const WRITES: ReadonlySet<string> = new Set(['create', 'update', 'patch', 'delete']);

/** Creates the record. Events do not count, because large clusters keep them in an etcd of their own. */
export function createWriteWitness({ monotonic }: Pick<Clock, 'monotonic'>): WriteWitness {
  let last: number | undefined;
  return {
    finished({ verb, resource, code }) {
      if (WRITES.has(verb) && resource !== 'events' && code.startsWith('2')) last = monotonic();
    },
    lastMs: () => last,
  };
}
