import { spawnSync } from 'node:child_process';
import { getEventListeners } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { waitFor } from '../../../hack/cluster/wait.ts';
import {
  endedWith,
  type Program,
  ProgramError,
  programEnvironment,
  runProgram,
} from '../../../src/oci/credentials/process.ts';
import { type CredentialPrograms, createCredentialPrograms } from '../../support/credential-programs.ts';
import { needsPosix } from '../../support/platforms.ts';

/** Whether a process runs, and is not only waiting to be reaped by the first process of a container. */
function isRunning(pid: number): boolean {
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' });
  return stdout.trim() !== '' && !stdout.trim().startsWith('Z');
}

const until = (condition: () => boolean | Promise<boolean>) =>
  waitFor('the condition', async () => condition(), 100_000);

describe('a program', () => {
  let programs: CredentialPrograms;
  const controller = new AbortController();
  const run = (name: string, more: Partial<Program> = {}) =>
    runProgram({
      ...{ path: join(programs.bin, name), args: [], stdin: '', env: {}, timeoutMs: 30_000 },
      ...{ signal: controller.signal, ...more },
    });
  const failure = (name: string, more: Partial<Program> = {}): Promise<unknown> =>
    run(name, more).catch((error: unknown) => error);

  before(async function () {
    needsPosix(this, 'program');
    programs = await createCredentialPrograms();
  });
  after(() => programs?.remove());
  afterEach(() => expect(getEventListeners(controller.signal, 'abort')).to.have.length(0));

  it('gets its input on standard input and answers on standard output, without a shell', async () => {
    await programs.program('echo', `say(call.stdin + call.args.join()); process.stderr.write('a word'); end(3);`);
    const result = await run('echo', { stdin: 'https://a.b', args: ['$HOME', '; exit 7', 'a b'], env: { A: '1' } });
    expect(result).to.deep.equal({ code: 3, stdout: 'https://a.b$HOME,; exit 7,a b', stderr: 'a word' });
    const [call] = await programs.calls('echo');
    expect(call?.env).to.deep.equal({ A: '1' });
  });

  it('that does not read its input can still answer', async () => {
    await writeFile(join(programs.bin, 'deaf'), '#!/bin/sh\nexec 0<&-\necho done\n', { mode: 0o755 });
    expect(await run('deaf', { stdin: 'x'.repeat(4_000_000) })).to.include({ code: 0, stdout: 'done\n' });
  });

  it('that does not exist is reported as such', async () => {
    expect(await failure('nothing'))
      .to.be.instanceOf(ProgramError)
      .that.has.property('message', 'could not be started (ENOENT: it does not exist)');
    expect(await failure('docker-credential-no', { path: 'docker-credential-no' })).to.be.instanceOf(ProgramError);
  });

  it('that may not be run, or whose arguments are too long, cannot be started', async () => {
    await writeFile(join(programs.bin, 'text'), 'text', { mode: 0o644 });
    expect(await failure('text'))
      .to.be.instanceOf(ProgramError)
      .with.property('message')
      .that.includes('EACCES');
    expect(await failure('text', { args: ['a\0b'] })).to.be.instanceOf(ProgramError);
    expect(await failure('text', { args: ['x'.repeat(10_000_000)] })).to.be.instanceOf(ProgramError);
  });

  it('that writes too much is ended', async () => {
    await programs.program('flood', `setInterval(() => say('hunter2'.repeat(1000)), 1);`);
    const error = await failure('flood');
    expect(error).to.be.instanceOf(ProgramError).with.property('message', 'answered with more than 1048576 bytes');
    const [call] = await programs.calls('flood');
    expect(isRunning(call?.pid ?? 0)).to.equal(false);
  });

  it('can write much to standard error, which is cut', async () => {
    await programs.program('moan', `process.stderr.write('x'.repeat(1_000_000)); say('ok');`);
    const result = await run('moan');
    expect(result).to.include({ code: 0, stdout: 'ok' });
    expect(result.stderr).to.have.length(4096);
  });

  /** Writes a program that starts another one, which ignores SIGTERM, and that prints the ids of both. */
  const family = (name: string, ending: string): Promise<void> =>
    writeFile(
      join(programs.bin, name),
      `#!/bin/sh\ntrap '' TERM INT HUP\nsleep 1000 &\necho "$$ $!" > "$0.pids"\n${ending}\n`,
      { mode: 0o755 },
    );
  const pidsOf = async (name: string): Promise<number[]> =>
    (await readFile(join(programs.bin, `${name}.pids`), 'utf8').catch(() => '')).split(' ').filter(Boolean).map(Number);

  async function expectEnded(name: string): Promise<void> {
    const pids = await pidsOf(name);
    expect(pids).to.have.length(2);
    await until(() => !pids.some(isRunning));
  }

  it('that does not answer in time is ended, with everything that it started', async () => {
    await family('hang', 'wait');
    // A busy machine may need longer to start both.
    for (let timeoutMs = 500; (await pidsOf('hang')).length < 2; timeoutMs *= 2) {
      expect(await failure('hang', { timeoutMs }))
        .to.be.instanceOf(ProgramError)
        .with.property('message', `did not answer within ${timeoutMs / 1000} s`);
    }
    await expectEnded('hang');
  });

  it('is ended with everything that it started when no caller waits any more', async () => {
    await family('abandoned', 'wait');
    const leaving = new AbortController();
    const running = failure('abandoned', { signal: leaving.signal });
    await until(async () => (await pidsOf('abandoned')).length === 2);
    leaving.abort(new Error('gone'));
    expect(await running).to.include({ message: 'gone' });
    await expectEnded('abandoned');
    expect(getEventListeners(leaving.signal, 'abort')).to.have.length(0);
    await writeFile(join(programs.bin, 'abandoned.pids'), '');
    expect(await failure('abandoned', { signal: leaving.signal })).to.include({ message: 'gone' });
    expect(await pidsOf('abandoned'), 'nothing is started for a signal that has ended').to.deep.equal([]);
  });

  it('that leaves a process behind is answered when it has ended, and that process is ended', async () => {
    await family('litter', 'echo ok');
    expect(await run('litter')).to.include({ code: 0, stdout: 'ok\n' });
    await expectEnded('litter');
  });
});

describe('a program that ends with an error', () => {
  const rows: [what: string, stderr: string, message: string][] = [
    ['nothing', '', 'ended with code 3'],
    ['an empty line', ' \n', 'ended with code 3'],
    ['a line', 'no identity\n', 'ended with code 3: no identity'],
    ['several lines', 'trying\r\n  no identity \r\n\n', 'ended with code 3: no identity'],
    ['a control character', 'a\u001bb', 'ended with code 3: a\\u{1b}b'],
  ];
  for (const [what, stderr, message] of rows) {
    it(`and writes ${what} is reported with its last line`, () => {
      expect(endedWith({ code: 3, stdout: 'hunter2', stderr }).message).to.equal(message);
    });
  }
});

describe("a program's environment", () => {
  const given = {
    PATH: '/bin',
    https_proxy: 'http://proxy:3128',
    AWS_ROLE_ARN: 'arn',
    AZURE_CLIENT_ID: 'id',
    GOOGLE_APPLICATION_CREDENTIALS: '/key.json',
    XDG_CONFIG_HOME: '/config',
    ARCHAWARE_CREDENTIALS__DIRECTORY: '/secret',
    NODE_OPTIONS: '--require /evil.js',
    KUBECONFIG: '/kubeconfig',
  };
  let before: NodeJS.ProcessEnv;
  beforeEach(() => {
    before = process.env;
    process.env = { ...given };
  });
  afterEach(() => {
    process.env = before;
  });

  it('has what it needs to find its identity, and no setting of the controller', () => {
    const { ARCHAWARE_CREDENTIALS__DIRECTORY: _a, NODE_OPTIONS: _n, KUBECONFIG: _k, ...expected } = given;
    expect(programEnvironment()).to.deep.equal(expected);
  });

  it('has what Windows programs need, by names that have no case there', () => {
    process.env = { Path: 'C:\\bin', SystemRoot: 'C:\\Windows', USERPROFILE: 'C:\\Users\\me', Archaware_Workers: '1' };
    const { Archaware_Workers: _, ...expected } = process.env;
    expect(programEnvironment({}, 'win32')).to.deep.equal(expected);
    expect(programEnvironment({}, 'linux')).to.deep.equal({});
  });

  it('has what its configuration says', () => {
    const configured = { AWS_ROLE_ARN: 'other', X: '1' };
    expect(programEnvironment(configured)).to.include({ ...configured, PATH: '/bin' });
  });
});
