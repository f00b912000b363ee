// The least that any controller can do: watch pods and add one toleration to each. No cache, no decision, no lease, no
// retry: the baseline for the controller. Run: node bare-loop.ts SERVER TOKEN CA-FILE [release]
import { readFileSync } from 'node:fs';
import { Pool } from 'undici';

const [server = '', token = '', caFile = '', what = 'tolerate'] = process.argv.slice(2);
const pool = new Pool(server, { connections: 64, connect: { ca: readFileSync(caFile) }, bodyTimeout: 0 });
const headers = { authorization: `Bearer ${token}`, accept: 'application/json' };
const seen = new Set<string>();

const tolerations = ['amd64', 'arm64'].map((value) => ({
  key: 'supported-arch',
  operator: 'Equal',
  value,
  effect: 'NoSchedule',
}));
const term = { matchExpressions: [{ key: 'kubernetes.io/arch', operator: 'In', values: ['amd64', 'arm64'] }] };
const required = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term] } };
const append = (value: unknown) => ({ op: 'add', path: '/spec/tolerations/-', value });
const patch = JSON.stringify(
  what === 'release'
    ? [
        ...tolerations.map(append),
        { op: 'add', path: '/spec/affinity', value: { nodeAffinity: required } },
        { op: 'remove', path: '/spec/schedulingGates' },
      ]
    : tolerations.slice(0, 1).map(append),
);

async function write(namespace: string, name: string): Promise<void> {
  const { body } = await pool.request({
    method: 'PATCH',
    path: `/api/v1/namespaces/${namespace}/pods/${name}`,
    headers: { ...headers, 'content-type': 'application/json-patch+json' },
    body: patch,
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
      void write(namespace, name);
    }
  }
}

void main();
