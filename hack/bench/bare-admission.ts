// The least that any webhook can do: read a review and answer with a patch that is always the same. The baseline for
// archaware's webhook. Run: node bare-admission.ts PORT DIRECTORY-WITH-tls.crt-AND-tls.key
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { join } from 'node:path';

const [port = '', directory = ''] = process.argv.slice(2);
const [cert, key] = ['tls.crt', 'tls.key'].map((name) => readFileSync(join(directory, name)));
const value = { key: 'supported-arch', operator: 'Equal', value: 'amd64', effect: 'NoSchedule' };
const patch = Buffer.from(JSON.stringify([{ op: 'add', path: '/spec/tolerations/-', value }])).toString('base64');

const server = createServer({ cert, key }, async (request, response) => {
  let text = '';
  for await (const chunk of request) text += chunk;
  const {
    apiVersion,
    kind,
    request: { uid },
  } = JSON.parse(text);
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify({ apiVersion, kind, response: { uid, allowed: true, patchType: 'JSONPatch', patch } }));
});
server.listen(Number(port), '127.0.0.1', () => process.stdout.write('ready\n'));
