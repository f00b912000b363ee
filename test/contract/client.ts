import { readFile } from 'node:fs/promises';
import { Agent, request as send } from 'undici';
import { parse } from 'yaml';
import { at, isObject, object, objects, text } from '../simulator/json.ts';
import type { Answer, Method } from '../simulator/test-cluster.ts';

/** One line of a watch. */
export interface WatchEvent {
  readonly type: string;
  readonly object: Record<string, unknown>;
}

export interface ContractAnswer extends Answer {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

export interface ContractClient {
  request(method: Method, path: string, body?: unknown, contentType?: string): Promise<ContractAnswer>;
  /** The events of a watch until the server ends it; `return` on the iterator ends it from the client's side. */
  watch(path: string): AsyncGenerator<WatchEvent, void, undefined>;
  close(): Promise<void>;
}

/** A client for a kubeconfig, with its token or another. A string as the body is sent unchanged. */
export async function connect(kubeconfig: string, token?: string): Promise<ContractClient> {
  const config: unknown = parse(await readFile(kubeconfig, 'utf8'));
  const cluster = object(at(objects(at(config, 'clusters'))[0], 'cluster'));
  const user = object(at(objects(at(config, 'users'))[0], 'user'));
  const file = text(cluster['certificate-authority']);
  const inline = Buffer.from(text(cluster['certificate-authority-data']), 'base64').toString();
  const ca = file === '' ? inline : await readFile(file, 'utf8');
  const dispatcher = new Agent({ connections: 16, ...(ca === '' ? {} : { connect: { ca } }) });
  const authorization = `Bearer ${token ?? text(user.token)}`;
  const server = text(cluster.server);
  return {
    async request(method, path, body, contentType) {
      const patch = Array.isArray(body) || typeof body === 'string' ? 'json-patch' : 'merge-patch';
      const type = contentType ?? (method === 'PATCH' ? `application/${patch}+json` : 'application/json');
      const headers = { authorization, accept: 'application/json', 'content-type': type, 'user-agent': 'contract/1' };
      const payload = body === undefined ? null : typeof body === 'string' ? body : JSON.stringify(body);
      const answer = await send(`${server}${path}`, { method, headers, body: payload, dispatcher });
      const source = await answer.body.text();
      const parsed: unknown = source.startsWith('{') ? JSON.parse(source) : source;
      return { status: answer.statusCode, headers: answer.headers, body: parsed };
    },
    async *watch(path) {
      const answer = await send(`${server}${path}`, { headers: { authorization }, dispatcher, bodyTimeout: 20_000 });
      answer.body.on('error', () => {});
      let buffered = '';
      for await (const chunk of answer.body) {
        buffered += String(chunk);
        const lines = buffered.split('\n');
        buffered = lines.pop() ?? '';
        for (const line of lines) {
          const event: unknown = JSON.parse(line);
          if (isObject(event)) yield { type: text(event.type), object: object(event.object) };
        }
      }
    },
    close: () => dispatcher.destroy(),
  };
}
