import { stripVTControlCharacters } from 'node:util';
import { expect } from 'chai';
import { INDEX, indexOf, reply, type ScriptedServer, startServer } from '../oci/server.ts';
import { folderForEach } from '../support/folder.ts';
import { runInProcess } from '../support/in-process.ts';

describe('inspect', () => {
  let server: ScriptedServer;
  const { at, write } = folderForEach();
  beforeEach(async () => {
    server = await startServer();
  });
  afterEach(() => server.stop());

  it('prints with -v each request on standard error, with the name of its login and nothing of its content', async () => {
    const auths = { [server.host]: { username: 'me', password: 'secret-word' } };
    await write({ 'logins.json': JSON.stringify({ auths }) });
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
      ...['--registries.insecure', server.host, '--credentials.dockerConfigFiles', at('logins.json')],
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

  it('says first at a terminal what the images are for, or what is wrong, and nothing of that in a pipe', async () => {
    const serve = (name: string, ...platforms: readonly string[]) =>
      server.on(
        `/v2/${name}/manifests/v1`,
        reply(200, { 'content-type': INDEX }, JSON.stringify(indexOf(...platforms))),
      );
    serve('both', 'linux/amd64', 'linux/arm64');
    serve('one', 'linux/arm64');
    const first = async (columns: number | undefined, ...names: readonly string[]) => {
      const images = names.map((name) => `${server.host}/${name}:v1`);
      const words = ['inspect', ...images, '--registries.insecure', server.host, '--lookup-timeout', '1s'];
      const { stdout } = await runInProcess(words, columns === undefined ? {} : { columns });
      return stripVTControlCharacters(stdout).replaceAll(server.host, 'HOST').split('\n')[0];
    };
    expect(await first(200, 'both')).to.equal('✓ HOST/both:v1 is for amd64, arm64');
    expect(await first(200, 'both', 'one')).to.equal('✓ all 2 images are for arm64');
    expect(await first(200, 'both', 'none')).to.equal('✗ 1 of 2 images could not be resolved: HOST/none:v1');
    expect(await first(undefined, 'both')).to.match(/^IMAGE +PLATFORMS/);
  });
});
