import { request as send } from 'undici';

/** A key of etcd with the revision of its last change, which is also the resourceVersion of the object in it. */
export type EtcdKey = { readonly key: string; readonly revision: string };

const FIRST = '/registry/';
/** The first key that does not begin with {@link FIRST}. */
const AFTER_LAST = '/registry0';

/** The store of a control plane, by etcd's JSON gateway: below the API server, whose watches see every change. */
export type Etcd = {
  keys(): Promise<readonly EtcdKey[]>;
  /** The value of a key, in base64. Throws if there is none. */
  value(key: string): Promise<string>;
  put(key: string, value: string): Promise<void>;
  remove(key: string): Promise<void>;
};

/** Opens the store at the URL. */
export function openEtcd(url: string): Etcd {
  const call = async (method: string, body: Readonly<Record<string, unknown>>): Promise<Answered> => {
    const answer = await send(`${url}/v3/kv/${method}`, { method: 'POST', body: JSON.stringify(body) });
    const text = await answer.body.text();
    if (answer.statusCode !== 200) throw new Error(`etcd ${method}: ${answer.statusCode} ${text}`);
    return JSON.parse(text);
  };
  return {
    async keys() {
      const { kvs = [] } = await call('range', { key: encode(FIRST), range_end: encode(AFTER_LAST), keys_only: true });
      return kvs.map(({ key, mod_revision }) => ({
        key: Buffer.from(key, 'base64').toString(),
        revision: mod_revision,
      }));
    },
    async value(key) {
      const [found] = (await call('range', { key: encode(key) })).kvs ?? [];
      if (found?.value === undefined) throw new Error(`etcd has no ${key}`);
      return found.value;
    },
    async put(key, value) {
      await call('put', { key: encode(key), value });
    },
    async remove(key) {
      await call('deleterange', { key: encode(key) });
    },
  };
}

type Answered = {
  readonly kvs?: readonly { readonly key: string; readonly value?: string; readonly mod_revision: string }[];
};

const encode = (text: string) => Buffer.from(text).toString('base64');
