import { delimiter } from 'node:path';
import { expect } from 'chai';
import { createAskers } from '../../../src/kit/fairness/asking-namespaces.ts';
import { createTurns } from '../../../src/kit/fairness/turns.ts';
import type { Login } from '../../../src/oci/credentials/docker.ts';
import { ProgramError } from '../../../src/oci/credentials/process.ts';
import { type CredentialProgram, createCredentialHelper } from '../../../src/oci/credentials/programs.ts';
import { type CredentialPrograms, createCredentialPrograms } from '../../support/credential-programs.ts';
import { needsPosix } from '../../support/platforms.ts';

describe('a credential helper', () => {
  let programs: CredentialPrograms;
  let path: string | undefined;
  beforeEach(async function () {
    needsPosix(this, 'program');
    programs = await createCredentialPrograms();
    path = process.env.PATH;
    process.env.PATH = [programs.bin, path].join(delimiter);
  });
  afterEach(async () => {
    if (path !== undefined) process.env.PATH = path;
    await programs?.remove();
  });

  function setup() {
    let time = 0;
    const options = { timeoutMs: 30_000, now: () => time, turns: createTurns() };
    const helpers = new Map<string, CredentialProgram>();
    const helperOf = (name: string): CredentialProgram => {
      const helper = helpers.get(name) ?? createCredentialHelper(name, options);
      helpers.set(name, helper);
      return helper;
    };
    const askers = createAskers('shop');
    const { signal } = new AbortController();
    return {
      ask: async (helper: string, host: string) => (await helperOf(helper).ask(host, signal, askers))[0],
      refused: (helper: string, host: string, login: Login) => helperOf(helper).refused(host, login),
      failure: (helper: string, host: string): Promise<unknown> =>
        helperOf(helper)
          .ask(host, signal, askers)
          .catch((error: unknown) => error),
      asked: async () =>
        (await programs.calls()).map(({ program, args, stdin }) => [program, ...args, stdin].join(' ')),
      advance: (milliseconds: number) => {
        time += milliseconds;
      },
    };
  }

  it('is asked by host, and answers with a login for it', async () => {
    await programs.helper('test', { 'a.b:5000': { username: 'me', secret: 'hunter2' } });
    const { ask, asked } = setup();
    expect(await ask('test', 'a.b:5000')).to.deep.equal({ pattern: 'a.b:5000', username: 'me', password: 'hunter2' });
    expect(await asked()).to.deep.equal(['docker-credential-test get a.b:5000']);
  });

  it("is asked for Docker Hub by the name that Docker's clients always used", async () => {
    await programs.helper('test', { 'https://index.docker.io/v1/': { username: 'me', secret: 'hunter2' } });
    expect(await setup().ask('test', 'docker.io')).to.include({ pattern: 'docker.io', username: 'me' });
  });

  it('that answers <token> has an identity token', async () => {
    await programs.helper('acr', { 'x.azurecr.io': { username: '<token>', secret: 'refresh' } });
    expect(await setup().ask('acr', 'x.azurecr.io')).to.deep.equal({
      pattern: 'x.azurecr.io',
      username: '',
      password: '',
      identityToken: 'refresh',
    });
  });

  it('without a login has not failed, and is asked again after a minute', async () => {
    await programs.helper('test', {});
    const { ask, asked, advance } = setup();
    expect(await ask('test', 'a.b')).to.equal(undefined);
    advance(59_999);
    expect(await ask('test', 'a.b')).to.equal(undefined);
    expect(await asked()).to.have.length(1);
    await programs.helper('test', { 'a.b': { username: 'me', secret: 'new' } });
    advance(1);
    expect(await ask('test', 'a.b')).to.include({ password: 'new' });
  });

  it('with an empty answer has no login', async () => {
    await programs.helper('test', { 'a.b': { username: '', secret: '' } });
    expect(await setup().ask('test', 'a.b')).to.equal(undefined);
  });

  it('may write the names of its fields in any case, as Docker reads them', async () => {
    await programs.program('docker-credential-test', `say('{"username":"me","SECRET":"x"}');`);
    expect(await setup().ask('test', 'a.b')).to.include({ username: 'me', password: 'x' });
  });

  it('has its answers remembered for a minute', async () => {
    await programs.helper('test', { 'a.b': { username: 'me', secret: 'old' } });
    const { ask, asked, advance } = setup();
    await ask('test', 'a.b');
    await programs.helper('test', { 'a.b': { username: 'me', secret: 'new' } });
    advance(59_999);
    expect(await ask('test', 'a.b')).to.include({ password: 'old' });
    advance(1);
    expect(await ask('test', 'a.b')).to.include({ password: 'new' });
    expect(await asked()).to.have.length(2);
  });

  describe('whose login a registry refuses', () => {
    const says = (secret: string) =>
      programs.helper('test', { 'a.b': { username: 'me', secret }, 'c.d': { username: 'me', secret } });
    const given = async (ask: ReturnType<typeof setup>['ask'], host = 'a.b') =>
      (await ask('test', host)) ?? expect.fail('it has no login');

    it('is asked again at once, if it was not asked for that host in the last 30 seconds', async () => {
      await says('old');
      const { ask, refused, advance } = setup();
      const old = await given(ask);
      const other = await given(ask, 'c.d');
      await says('new');
      advance(30_000);
      refused('test', 'a.b', old);
      expect(await ask('test', 'a.b')).to.include({ password: 'new' });
      expect(await ask('test', 'c.d')).to.equal(other);
    });

    it('is asked once in 30 seconds, however often its logins are refused', async () => {
      await says('wrong');
      const { ask, refused, asked, advance } = setup();
      for (let second = 0; second < 120; second += 1) {
        for (let pod = 0; pod < 3; pod += 1) refused('test', 'a.b', await given(ask));
        expect(await asked()).to.have.length(1 + Math.floor(second / 30));
        advance(1000);
      }
    });

    it('keeps a login that it gave after the one that was refused', async () => {
      await says('old');
      const { ask, refused, asked, advance } = setup();
      const old = await given(ask);
      advance(60_000);
      await given(ask);
      advance(59_000);
      refused('test', 'a.b', old);
      await given(ask);
      expect(await asked()).to.have.length(2);
    });
  });

  it('runs once for a host, however many ask, and at the same time for another host', async () => {
    await programs.helper('test', { 'a.b': { username: 'me', secret: 'x' } });
    const { ask, asked } = setup();
    const logins = await Promise.all(['a.b', 'a.b', 'c.d', 'a.b'].map((host) => ask('test', host)));
    expect(logins.map((login) => login?.username)).to.deep.equal(['me', 'me', undefined, 'me']);
    expect((await asked()).sort()).to.deep.equal(['docker-credential-test get a.b', 'docker-credential-test get c.d']);
  });

  it('that fails is asked again after ten seconds', async () => {
    await programs.program('docker-credential-test', `process.stderr.write('first line\\nno keyring\\n'); end(2);`);
    const { ask, failure, asked, advance } = setup();
    for (let turn = 0; turn < 2; turn += 1) {
      const error = await failure('test', 'a.b');
      expect(error).to.be.instanceOf(ProgramError).with.property('message', 'ended with code 2: no keyring');
      advance(4999);
    }
    expect(await asked()).to.have.length(1);
    await programs.helper('test', { 'a.b': { username: 'me', secret: 'x' } });
    advance(2);
    expect(await ask('test', 'a.b')).to.include({ username: 'me' });
  });

  it('that is not in PATH is reported as such', async () => {
    expect(await setup().failure('nowhere', 'a.b'))
      .to.be.instanceOf(ProgramError)
      .with.property('message', 'could not be started (ENOENT: it does not exist)');
  });

  const answers: [what: string, body: string][] = [
    ['no JSON', `say('hunter2');`],
    ['a list', `say('["hunter2"]');`],
    ['no secret', `say('{"Username":"hunter2"}');`],
    ['a number', `say('{"Username":"me","Secret":7}');`],
    ['nothing', ''],
    ['an error on standard output', `say('hunter2 is wrong'); end(1);`],
  ];
  for (const [what, body] of answers) {
    it(`that answers with ${what} has failed, and nothing of it is shown`, async () => {
      await programs.program('docker-credential-test', body);
      const error = await setup().failure('test', 'a.b');
      expect(error).to.be.instanceOf(ProgramError);
      expect(String(error)).to.not.include('hunter2');
    });
  }
});
