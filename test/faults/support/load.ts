/** What others ask of the cluster while something goes wrong. */
import { setTimeout as delay } from 'node:timers/promises';
import { type JsonObject, object } from '../../simulator/json.ts';
import type { TestRegistry } from '../../simulator/registry/registry.ts';
import { deployment, type KubernetesObject, pod } from '../../support/workloads.ts';
import type { Dice } from './dice.ts';
import { type Foreign, foreignOf, keyOf } from './foreign.ts';
import { KIND_LABEL, KINDS, type Kind } from './rules.ts';

/** The load of one fault, in a namespace of its own. */
export type Load = {
  readonly namespace: string;
  /** Creates so many pods and returns when the API server has them. Tries again while it does not answer. */
  add(count: number): Promise<void>;
  /** How many pods must be there. */
  readonly pods: number;
  /** Remembers what is there now; the function that it returns forgets what came later, which a restored etcd has lost. */
  mark(): () => void;
  /** The objects that were created, as the API server first showed them, without archaware's marks. */
  created(): Foreign;
};

export type LoadOptions = {
  readonly namespace: string;
  readonly dice: Dice;
  readonly registry: TestRegistry;
  /** Other names for the registry's host, for images that are found by name. */
  readonly host?: string;
  /** Creates an object; returns what the API server answered, or undefined if it did not answer. */
  readonly create: (object: KubernetesObject) => Promise<JsonObject | undefined>;
};

/** Those that get tolerations. */
export const PLACED: readonly Kind[] = ['both', 'wide', 'amd64', 'arm64', 'narrowed'];
const ALL: readonly Kind[] = [...PLACED, 'divided', 'missing', 'ignored'];
const RETRY_MS = 200;

/** Prepares a load; the namespace exists. Each object has images that nobody has asked for. */
export function createLoad({ namespace, dice, registry, host, create }: LoadOptions): Load {
  const created = new Map<string, JsonObject>();
  let [pods, number] = [0, 0];

  function images(kind: Kind, name: string): string[] {
    return KINDS[kind].images.map((platforms, index) => {
      const repository = `${namespace}/${name}-${index}`;
      if (platforms !== undefined) registry.put(repository, '1', platforms, { note: repository });
      return `${host ?? registry.host}/${repository}:1`;
    });
  }

  function one(kinds: readonly Kind[]): {
    readonly item: KubernetesObject;
    readonly plural: string;
    readonly pods: number;
  } {
    const kind = dice.pick(kinds);
    const name = `${kind}-${++number}`;
    const ignore = kind === 'ignored' ? { 'archaware.dev/ignore': 'true' } : {};
    const theirs = dice.chance(0.5)
      ? { tolerations: [{ key: 'dedicated', operator: 'Exists' }], annotations: { 'example.com/owner': 'shop' } }
      : {};
    const options = { images: images(kind, name), labels: { [KIND_LABEL]: kind, ...ignore }, ...theirs };
    if (dice.chance(0.75)) return { item: pod(namespace, name, options), plural: 'pods', pods: 1 };
    const replicas = dice.whole(2, 4);
    const item = deployment(namespace, name, { ...options, replicas });
    return { item, plural: 'deployments', pods: replicas };
  }

  return {
    namespace,
    get pods() {
      return pods;
    },
    async add(count) {
      const until = pods + count;
      // The first of them cannot be right without work.
      for (let kinds = PLACED; pods < until; kinds = ALL) {
        const { item, plural, pods: more } = one(kinds);
        let answer = await create(item);
        while (answer === undefined) {
          await delay(RETRY_MS);
          answer = await create(item);
        }
        created.set(keyOf(plural, answer), foreignOf(object(answer)));
        pods += more;
      }
    },
    mark() {
      const [then, keys] = [pods, new Set(created.keys())];
      return () => {
        pods = then;
        for (const key of created.keys()) if (!keys.has(key)) created.delete(key);
      };
    },
    created: () => created,
  };
}
