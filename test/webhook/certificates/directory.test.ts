import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { createAuthority } from '../../../hack/cluster/certificates.ts';
import type { Clock } from '../../../src/kit/clock.ts';
import { createCertificateDirectory } from '../../../src/webhook/certificates/directory.ts';
import { issueServing, makeAuthority } from '../../../src/webhook/certificates/issue.ts';
import type { CertificateSource, ServingCertificate } from '../../../src/webhook/certificates/source.ts';
import { createHandClock, type HandClock } from '../../controllers/hand-clock.ts';
import { mount } from '../../support/mounted.ts';
import { needsPosix, replaceFile } from '../../support/platforms.ts';
import { until } from '../self-made.ts';

const HOUR = 3_600_000;
const authority = createAuthority('one');
const other = createAuthority('other');

/** The three files of a certificate of this many hours. */
function files(hours = 1000, by = authority): Record<'tls.crt' | 'tls.key' | 'ca.crt', string> {
  const { certificate, key } = by.issue('hook', ['hook.svc'], new Date(Date.now() + hours * HOUR));
  return { 'tls.crt': certificate, 'tls.key': key, 'ca.crt': by.certificate };
}

const GIVEN = files();

describe('certificates of a directory', () => {
  let directory: string;
  let hand: HandClock;
  let end: AbortController;
  let running: Promise<void>;
  let source: CertificateSource;
  let problems: string[];
  let served: ServingCertificate[];
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'archaware-certificates-'));
    [hand, end, running] = [createHandClock(), new AbortController(), Promise.resolve()];
    [problems, served] = [[], []];
  });
  afterEach(async () => {
    end.abort();
    await running;
    await rm(directory, { recursive: true, force: true, maxRetries: 5 });
  });

  async function put(contents: Readonly<Record<string, string>>): Promise<void> {
    for (const [name, text] of Object.entries(contents)) {
      await writeFile(join(directory, `${name}.new`), text);
      await replaceFile(join(directory, `${name}.new`), join(directory, name));
    }
  }
  async function start(at = directory): Promise<void> {
    const begin = Date.now();
    const clock: Clock = { ...hand, wall: () => begin + hand.wall() };
    const onProblem = (problem: string | undefined) => problems.push(problem ?? 'none');
    source = createCertificateDirectory({ directory: at, clock, onProblem });
    source.onChange((certificate) => served.push(certificate));
    running = source.run(end.signal);
    await until('it has looked', () => hand.waiting === 1);
  }
  /** Lets time pass, until the next looks are over. */
  async function pass(ms = 2000, looks = 1): Promise<void> {
    for (let look = 0; look < looks; look += 1) {
      await hand.advance(ms);
      await until('it has looked', () => hand.waiting === 1);
    }
  }
  /** Writes files, and waits until the source has read them. */
  async function putSeen(contents: Readonly<Record<string, string>>): Promise<void> {
    await put(contents);
    await pass();
  }

  it('are served, with the bundle for clients and their expiry', async () => {
    const given = files(5);
    await put(given);
    await start();
    expect(source.current()).to.deep.include({ cert: given['tls.crt'], key: given['tls.key'], ca: given['ca.crt'] });
    expect(source.current()?.notAfter).to.be.closeTo(Date.now() + 5 * HOUR, 60_000);
    expect(served).to.deep.equal([source.current()]);
    expect(problems).to.deep.equal([]);
  });

  it('are served without a bundle if there is none, or an empty one', async () => {
    const { 'ca.crt': ca, ...pair } = files();
    await put(pair);
    await start();
    expect(source.current()).to.include({ ca: undefined });
    await putSeen({ 'ca.crt': ca });
    expect(source.current()).to.include({ ca });
    await putSeen({ 'ca.crt': '\n' });
    expect(source.current()).to.include({ ca: undefined });
    expect(problems).to.deep.equal([]);
  });

  it('are served without a bundle that did not sign them, which is reported', async () => {
    await put({ ...files(), 'ca.crt': other.certificate });
    await start();
    await pass(2000, 3);
    expect(source.current()).to.include({ ca: undefined });
    expect(problems).to.have.length(1);
    expect(problems[0]).to.match(/ca\.crt does not verify .*tls\.crt$/);
  });

  const wrong: [what: string, contents: () => Record<string, string>, problem: RegExp][] = [
    ['no files', () => ({}), /tls\.crt cannot be read: it does not exist$/],
    ['no key', () => ({ 'tls.crt': files()['tls.crt'] }), /tls\.key cannot be read: it does not exist$/],
    ['no PEM', () => ({ ...files(), 'tls.crt': 'hello' }), /tls\.crt contains no PEM certificate$/],
    ['half a certificate', () => ({ ...files(), 'tls.crt': GIVEN['tls.crt'].slice(0, 99) }), /cannot be read$/],
    ['a key of another', () => ({ ...files(), 'tls.key': GIVEN['tls.key'] }), /tls\.key does not match .*tls\.crt$/],
    ['a bad key', () => ({ ...files(), 'tls.key': GIVEN['tls.crt'] }), /tls\.key cannot be read as a private key/],
  ];
  for (const [what, contents, problem] of wrong) {
    it(`with ${what} are a problem at the start, not a crash, until they are good`, async () => {
      await put(contents());
      await start();
      expect(source.current()).to.equal(undefined);
      expect(problems).to.have.length(1);
      expect(problems[0]).to.contain(directory).and.match(problem).and.not.contain('BEGIN');
      const given = files();
      await putSeen(given);
      expect([source.current()?.cert, problems.at(-1)]).to.deep.equal([given['tls.crt'], 'none']);
    });

    it(`with ${what} do not take the place of good ones, and that is said when it lasts`, async () => {
      const given = files();
      await put(given);
      await start();
      for (const name of ['tls.crt', 'tls.key']) await rm(join(directory, name));
      await put(contents());
      await pass(2000, 2);
      expect(problems).to.deep.equal([]);
      await pass();
      expect(problems.at(-1)).to.match(problem);
      expect(source.current()?.cert).to.equal(given['tls.crt']);
      expect(served).to.have.length(1);
    });
  }

  it('are found when their directory appears later', async () => {
    const at = join(directory, 'later');
    await start(at);
    expect(problems[0]).to.contain('does not exist');
    await mkdir(at);
    const given = files();
    for (const [name, text] of Object.entries(given)) await writeFile(join(at, name), text);
    await pass();
    expect([source.current()?.cert, problems.at(-1)]).to.deep.equal([given['tls.crt'], 'none']);
  });

  it('may change one after the other', async () => {
    await put(files());
    await start();
    const next = files();
    await putSeen({ 'tls.crt': next['tls.crt'] });
    await pass();
    await putSeen(next);
    expect(source.current()?.cert).to.equal(next['tls.crt']);
    await pass(2000, 3);
    expect(problems).to.deep.equal([]);
  });

  it('are served after the kubelet swaps the link to them', async function () {
    needsPosix(this, 'link');
    await mount(directory, files());
    await start();
    for (let swaps = 0; swaps < 2; swaps += 1) {
      await mount(directory, files());
      await pass();
    }
    expect(new Set(served.map(({ cert }) => cert)).size).to.equal(3);
    expect(served).to.have.length(3);
    expect(problems).to.deep.equal([]);
  });

  it('do not replace good ones if they have expired', async () => {
    const given = files();
    await put(given);
    await start();
    await put(files(-1));
    await pass(2000, 3);
    expect(problems[0]).to.match(/tls\.crt expired at \d.*; the previous certificate stays in use$/);
    expect(source.current()?.cert).to.equal(given['tls.crt']);
  });

  it('are served although they have expired if there are no others, which is reported', async () => {
    const given = files(-1);
    await put(given);
    await start();
    expect(source.current()?.cert).to.equal(given['tls.crt']);
    expect(problems).to.have.length(1);
    expect(problems[0]).to.match(/tls\.crt expired at/);
  });

  it('are reported when they expire, and are served until there are better ones', async () => {
    const given = files(1);
    await put(given);
    await start();
    await pass(HOUR - 10_000);
    expect(problems).to.deep.equal([]);
    await pass(20_000);
    expect(problems[0]).to.match(/tls\.crt expired at/);
    expect(source.current()?.cert).to.equal(given['tls.crt']);
    const next = files(50);
    await putSeen(next);
    expect([source.current()?.cert, problems.at(-1)]).to.deep.equal([next['tls.crt'], 'none']);
  });

  it('replace good ones only when they become valid', async () => {
    await put(files());
    await start();
    const life = { notBefore: Date.now() + HOUR, notAfter: Date.now() + 9 * HOUR };
    const { cert, key } = await issueServing(await makeAuthority(life), { dns: ['hook.svc'], ips: [] }, life);
    await rm(join(directory, 'ca.crt'));
    await put({ 'tls.key': key });
    await put({ 'tls.crt': cert });
    await pass(2000, 3);
    expect(served.map((each) => each.cert)).not.to.include(cert);
    expect(problems[0]).to.match(/tls\.crt is not valid before .*; the previous certificate stays in use$/);
    await pass(2 * HOUR);
    expect([source.current()?.cert, problems.at(-1)]).to.deep.equal([cert, 'none']);
  });
});
