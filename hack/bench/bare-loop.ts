// The least that any controller can do: watch pods, add one toleration to each, nothing else. No cache, no decision, no
// lease, no retry: what the controller is measured against. Run: node bare-loop.ts SERVER TOKEN CA-FILE
import { readFileSync } from 'node:fs';
import { Pool } from 'undici';

const [server = '', token = '', caFile = ''] = process.argv.slice(2);
const pool = new Pool(server, { connections: 64, connect: { ca: readFileSync(caFile) }, bodyTimeout: 0 });
const headers = { authorization: `Bearer ${token}`, accept: 'application/json' };
const seen = new Set<string>();

async function tolerate(namespace: string, name: string): Promise<void> {
  const value = { key: 'supported-arch', operator: 'Equal', value: 'amd64', effect: 'NoSchedule' };
  const { body } = await pool.request({
    method: 'PATCH',
    path: `/api/v1/namespaces/${namespace}/pods/${name}`,
    headers: { ...headers, 'content-type': 'application/json-patch+json' },
    body: JSON.stringify([{ op: 'add', path: '/spec/tolerations/-', value }]),
  });
  await body.dump();
}

async function main(): Promise<void> {
  const { body } = await pool.request({ method: 'GET', path: '/api/v1/pods?watch=true&timeoutSeconds=3600', headers });
  process.stdout.write('ready\n');
  let rest = '';
  for await (const chunk of body) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const { type, object } = JSON.parse(line);
      const { namespace, name, uid } = object.metadata;
      if (type === 'DELETED' || seen.has(uid)) continue;
      seen.add(uid);
      void tolerate(namespace, name);
    }
  }
}

void main();
