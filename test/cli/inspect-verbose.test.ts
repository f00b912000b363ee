import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { INDEX, indexOf, reply, type ScriptedServer, startServer } from '../oci/server.ts';
import { runInProcess } from '../support/in-process.ts';

describe('inspect -v', () => {
  let server: ScriptedServer;
  let directory: string;
  beforeEach(async () => {
    server = await startServer();
    directory = await mkdtemp(join(tmpdir(), 'verbose-'));
  });
  afterEach(async () => {
    await server.stop();
    await rm(directory, { recursive: true });
  });

  it('prints each request on standard error, with the name of its login and nothing of its content', async () => {
    const file = join(directory, 'logins.json');
    await writeFile(file, JSON.stringify({ auths: { [server.host]: { username: 'me', password: 'secret-word' } } }));
    server.on('/token', reply(200, {}, '{"token":"secret-token"}'));
    server.on('/v2/app/manifests/v1', (request, response) => {
      const { authorization } = request.headers;
      const answer =
        authorization === undefined
          ? reply(401, { 'www-authenticate': `Bearer realm="http://${server.host}/token?with=a-query"` })
          : reply(200, { 'content-type': INDEX }, JSON.stringify(indexOf('linux/amd64')));
      answer(request, response);
    });
    const { code, stdout, stderr } = await runInProcess([
      ...['inspect', '-v', '-o', 'json', `${server.host}/app:v1`],
      ...['--registries.insecure', server.host, '--credentials.dockerConfigFiles', file],
    ]);
    expect(code).to.equal(0);
    expect(JSON.parse(stdout)).to.have.length(1);
    expect(
      stderr
        .replaceAll(server.host, 'HOST')
        .replace(/\d+ ms/g, 'N ms')
        .trim()
        .split('\n')
        .slice(-3),
    ).to.deep.equal([
      'GET manifest at HOST: 401 in N ms, anonymous',
      'GET token at HOST: 200 in N ms, file "logins.json"',
      'GET manifest at HOST: 200 in N ms, file "logins.json"',
    ]);
    expect(stderr).not.to.match(/secret|a-query/);
  });
});
