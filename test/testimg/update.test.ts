import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { assert } from 'chai';
import { readCredentials } from '../../testimg/credentials.ts';
import { FIXTURES } from '../../testimg/fixtures.ts';
import { startTestRegistry, type TestRegistry } from '../simulator/registry/registry.ts';
import { needsPosix } from '../support/platforms.ts';

type Run = { code: number; stdout: string; stderr: string };

function update(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Run> {
  return new Promise((resolve) => {
    execFile('testimg/update.sh', [...args], { env: { ...process.env, ...env } }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), stdout, stderr });
    });
  });
}

describe('testimg/update.sh', () => {
  before(function () {
    needsPosix(this, 'bash');
  });
  // It starts npm and a compiler; seconds where the machine is busy.
  let registries: TestRegistry[] = [];
  let directory = '';

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'archaware-testimg-'));
  });
  afterEach(async () => {
    await Promise.all(registries.map((registry) => registry.stop()));
    registries = [];
    await rm(directory, { recursive: true });
  });

  function authOf(name: string, password: string): { auth: string } {
    return { auth: Buffer.from(`${name}:${password}`).toString('base64') };
  }

  async function config(value: unknown): Promise<string> {
    const file = join(directory, 'config.json');
    await writeFile(file, JSON.stringify(value));
    return file;
  }

  it('pushes every tag to both registries with the credentials of a file', async () => {
    const docker = await startTestRegistry({ auth: 'bearer', users: { hub: 'one' } });
    const quay = await startTestRegistry({ auth: 'basic', users: { robot: 'two' } });
    registries = [docker, quay];
    const authfile = await config({
      auths: { [docker.host]: authOf('hub', 'one'), [`${quay.host}/other`]: authOf('robot', 'two') },
    });

    const run = await update(['team', 'other', authfile], { DOCKER_REGISTRY: docker.host, QUAY_REGISTRY: quay.host });

    assert.equal(run.code, 0, run.stderr);
    const stored = FIXTURES.map(({ tag }) => tag).filter((tag) => !['sparse', 'schema1', 'ambiguous'].includes(tag));
    assert.sameMembers(docker.tags('team/archaware-testimg'), stored);
    assert.sameMembers(quay.tags('other/archaware-testimg'), stored);
    assert.include(run.stdout, `${docker.host}/team/archaware-testimg:multi pushed\n`);
    assert.match(run.stdout, /^schema1 +skipped +skipped/m);
  });

  it('exits with 3 for wrong arguments', async () => {
    for (const args of [[], ['team'], ['team/x', 'other'], ['team', 'other', '/nowhere/config.json']]) {
      const run = await update(args);
      assert.equal(run.code, 3);
      assert.match(run.stderr, /usage|namespace|authfile/);
    }
  });

  it('finds the credentials of Docker Hub under the name that docker login writes', async () => {
    const authfile = await config({ auths: { 'https://index.docker.io/v1/': authOf('hub', 'a:b') } });
    const found = await readCredentials(authfile, 'docker.io/team/archaware-testimg');
    assert.deepEqual(found, { username: 'hub', password: 'a:b' });
    assert.isUndefined(await readCredentials(authfile, 'quay.io/team/archaware-testimg'));
  });

  it('says so when a helper program holds the credentials', async () => {
    const authfile = await config({ auths: { 'quay.io': {} }, credsStore: 'desktop' });
    const error = await readCredentials(authfile, 'quay.io/team/x').catch((reason: unknown) => String(reason));
    assert.match(String(error), /credential helper/);
  });
});
