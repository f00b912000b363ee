import { expect } from 'chai';
import { stringify } from 'yaml';
import { createAskers } from '../../../src/kit/fairness/asking-namespaces.ts';
import { createTurns } from '../../../src/kit/fairness/turns.ts';
import { ProgramError } from '../../../src/oci/credentials/process.ts';
import {
  createCredentialHelper,
  createProviderPlugin,
  mergeProviders,
  type Provider,
  parseProviders,
} from '../../../src/oci/credentials/programs.ts';
import { programsForEach } from '../../support/credential-programs.ts';
import { needsPosix } from '../../support/platforms.ts';
import { never } from '../server.ts';

const API = 'credentialprovider.kubelet.k8s.io/v1';
const PROVIDER = {
  name: 'ecr-credential-provider',
  matchImages: ['*.dkr.ecr.*.amazonaws.com'],
  defaultCacheDuration: '12h0m5s',
  apiVersion: API,
};
const CONFIG = { apiVersion: 'kubelet.config.k8s.io/v1', kind: 'CredentialProviderConfig', providers: [PROVIDER] };

/** As a cloud writes it, whose registry lets a service account pull (KEP-4412). */
const TOKENS = { serviceAccountTokenAudience: 'registry.example.com', cacheType: 'Token', requireServiceAccount: true };

const parseProviderConfig = (text: string): Provider[] => mergeProviders([parseProviders(text)]);

describe('a CredentialProviderConfig', () => {
  const full = { ...PROVIDER, args: ['get', '--x'], env: [{ name: 'AWS_PROFILE', value: 'hunter2' }] };
  const env = { AWS_PROFILE: 'hunter2' };
  const read: Provider = { ...PROVIDER, defaultCacheDuration: 43_205_000, args: ['get', '--x'], env };

  it('is read from YAML and from JSON', () => {
    const config = { ...CONFIG, providers: [full] };
    expect(parseProviderConfig(stringify(config))).to.deep.equal([read]);
    expect(parseProviderConfig(JSON.stringify(config))).to.deep.equal([read]);
  });

  it('may leave out arguments and environment, or set them to null', () => {
    const bare = { ...read, args: [], env: {} };
    expect(parseProviderConfig(stringify(CONFIG))).to.deep.equal([bare]);
    const nulls = { ...PROVIDER, args: null, env: null, tokenAttributes: null };
    expect(parseProviderConfig(JSON.stringify({ ...CONFIG, providers: [nulls] }))).to.deep.equal([bare]);
  });

  it('may be for the service accounts of pods', () => {
    const tokenAttributes = { ...TOKENS, optionalServiceAccountAnnotationKeys: ['example.com/role'] };
    const [provider] = parseProviderConfig(
      JSON.stringify({ ...CONFIG, providers: [{ ...PROVIDER, tokenAttributes }] }),
    );
    expect(provider).to.deep.equal({ ...read, args: [], env: {}, isForPods: true });
  });

  for (const version of ['v1alpha1', 'v1beta1', 'v1']) {
    it(`may be of ${version}, with providers of every version`, () => {
      const apis = ['v1alpha1', 'v1beta1', 'v1'].map((each) => `credentialprovider.kubelet.k8s.io/${each}`);
      const config = {
        ...CONFIG,
        apiVersion: `kubelet.config.k8s.io/${version}`,
        providers: apis.map((apiVersion, index) => ({ ...PROVIDER, apiVersion, name: `p${index}` })),
      };
      expect(parseProviderConfig(JSON.stringify(config)).map(({ apiVersion }) => apiVersion)).to.deep.equal(apis);
    });
  }

  it('may leave out the value of a variable, which is empty then', () => {
    const config = { ...CONFIG, providers: [{ ...PROVIDER, env: [{ name: 'A' }, { name: 'B', value: null }] }] };
    expect(parseProviderConfig(JSON.stringify(config))[0]?.env).to.deep.equal({ A: '', B: '' });
  });

  const withProvider = (change: object): object => ({ ...CONFIG, providers: [{ ...PROVIDER, ...change }] });
  const refusedAs = (what: string, config: unknown, message: string) => {
    it(`with ${what} is refused`, () => {
      expect(() => parseProviderConfig(JSON.stringify(config)))
        .to.throw(Error, message)
        .that.satisfies((error: Error) => !error.message.includes('hunter2'));
    });
  };
  const refused: [what: string, config: unknown, message: string][] = [
    ['nothing', null, 'it is not a CredentialProviderConfig'],
    ['another kind', { ...CONFIG, kind: 'KubeletConfiguration' }, 'kind: got "KubeletConfiguration", expected'],
    [
      'another version',
      { ...CONFIG, apiVersion: 'kubelet.config.k8s.io/v2' },
      'apiVersion: got "kubelet.config.k8s.io/v2", expected kubelet.config.k8s.io/v1 or kubelet.config.k8s.io/v1beta1 or',
    ],
    ['no apiVersion', { ...CONFIG, apiVersion: undefined }, 'apiVersion: got a value that is not a string, expected'],
    ['an unknown field', { ...CONFIG, provider: [] }, 'it has an unknown field "provider"'],
    ['null as its providers', { ...CONFIG, providers: null }, 'providers must be a list'],
    ['providers that are no list', { ...CONFIG, providers: PROVIDER }, 'providers must be a list'],
    ['no providers', { ...CONFIG, providers: [] }, 'providers must be a list'],
    ['a provider that is not an object', { ...CONFIG, providers: ['hunter2'] }, 'providers[0] is not an object'],
    ['a name twice', { ...CONFIG, providers: [PROVIDER, PROVIDER] }, `the name "${PROVIDER.name}" is given twice`],
  ];
  for (const row of refused) refusedAs(...row);
  for (const version of ['v1alpha1', 'v1beta1']) {
    const config = { ...withProvider({ tokenAttributes: TOKENS }), apiVersion: `kubelet.config.k8s.io/${version}` };
    refusedAs(`tokenAttributes in ${version}`, config, 'providers[0] has an unknown field "tokenAttributes"');
  }

  const NO_DURATION = '.defaultCacheDuration must be a duration';
  const wrong: [what: string, field: object, message: string][] = [
    ['an unknown field', { matchImage: [] }, ' has an unknown field "matchImage"'],
    ['an unknown protocol', { apiVersion: `${API}alpha2` }, '.apiVersion: got'],
    ['no name', { name: undefined }, '.name must be a string'],
    ...['../sh', '.', '..', 'sh -c'].map((name): (typeof wrong)[number] => [
      `the name "${name}"`,
      { name },
      '.name must be the name of a program',
    ]),
    ['no matchImages', { matchImages: undefined }, '.matchImages must be a list with at least one entry'],
    ['a number in matchImages', { matchImages: ['a.b', 7] }, '.matchImages[1] must be a string'],
    ['a bad pattern', { matchImages: ['a.b', '%invalid%'] }, '.matchImages[1]: got "%invalid%", expected a pattern'],
    ['a pattern with a space', { matchImages: ['a b.c'] }, '.matchImages[0]: got "a b.c", expected a pattern'],
    ['no default duration', { defaultCacheDuration: undefined }, '.defaultCacheDuration must be a string'],
    ['a duration of another kind', { defaultCacheDuration: '1d' }, NO_DURATION],
    ['a negative duration', { defaultCacheDuration: '-1h' }, NO_DURATION],
    ['arguments in one text', { args: 'get --x' }, '.args must be a list of strings'],
    ['a map of variables', { env: { A: 'hunter2' } }, '.env must be a list'],
    ['a variable with a number', { env: [{ name: 'A', value: 7 }] }, '.env[0].value must be'],
    ['a variable without a name', { env: [{ name: '', value: 'hunter2' }] }, '.env[0].name'],
    ["a variable's unknown field", { env: [{ name: 'A', valueFrom: {} }] }, '.env[0] has an unknown field "valueFrom"'],
  ];
  for (const [what, field, message] of wrong) {
    refusedAs(`a provider that has ${what}`, withProvider(field), `providers[0]${message}`);
  }

  const broken: [what: string, text: string, message: RegExp][] = [
    ['a syntax error', 'kind: x\nvalue: "hunter2', /^it is not valid YAML \(line 2: [A-Z_]+\)$/],
    ['an unknown alias', 'kind: *hunter2', /^it is not valid YAML: its aliases/],
  ];
  for (const [what, text, message] of broken) {
    it(`with ${what} is refused`, () => expect(() => parseProviderConfig(text)).to.throw(Error, message));
  }
});

describe('a provider plug-in', () => {
  const REGISTRY = '1.dkr.ecr.eu-west-1.amazonaws.com';
  const IMAGE = `${REGISTRY}/team/app`;
  const AUTH = { [REGISTRY]: { username: 'AWS', password: 'hunter2' } };
  const LOGINS = [{ pattern: REGISTRY, username: 'AWS', password: 'hunter2' }];

  const programs = programsForEach();
  before(function () {
    needsPosix(this, 'program');
  });

  function setup(provider: Partial<Provider> = {}) {
    let time = 0;
    const plugin = createProviderPlugin(
      {
        name: 'plugin',
        matchImages: ['*.dkr.ecr.*.amazonaws.com', 'quay.io/team'],
        defaultCacheDuration: 60_000,
        args: [],
        env: {},
        apiVersion: API,
        ...provider,
      },
      programs().bin,
      { timeoutMs: 30_000, now: () => time, turns: createTurns() },
    );
    const ask = (image: string) => plugin.ask(image, never, createAskers('shop'));
    return {
      ask,
      refused: plugin.refused,
      failure: (image: string): Promise<unknown> => ask(image).catch((error: unknown) => error),
      count: async () => (await programs().calls()).length,
      advance: (milliseconds: number) => {
        time += milliseconds;
      },
    };
  }

  it('is asked with its arguments and environment, as the kubelet asks', async () => {
    await programs().plugin('plugin', { cacheKeyType: 'Registry', auth: AUTH });
    const { ask } = setup({ args: ['get-credentials', '--v=3'], env: { AWS_PROFILE: 'team' } });
    expect(await ask(IMAGE)).to.deep.equal(LOGINS);
    const [call] = await programs().calls();
    expect(call?.args).to.deep.equal(['get-credentials', '--v=3']);
    expect(call?.env).to.include({ AWS_PROFILE: 'team', PATH: process.env.PATH });
    const request = { kind: 'CredentialProviderRequest', apiVersion: API, image: IMAGE };
    expect(JSON.parse(call?.stdin ?? '')).to.deep.equal(request);
  });

  it('of an older version is asked, and answers, in that version', async () => {
    const apiVersion = `${API}beta1`;
    const answer = { kind: 'CredentialProviderResponse', cacheKeyType: 'Image', auth: AUTH };
    const says = (version: string) => `say(JSON.stringify({ ...${JSON.stringify(answer)}, apiVersion: ${version} }));`;
    await programs().program('plugin', says('JSON.parse(call.stdin).apiVersion'));
    const { ask } = setup({ apiVersion });
    expect(await ask(IMAGE)).to.deep.equal(LOGINS);
    expect(JSON.parse((await programs().calls())[0]?.stdin ?? '')).to.include({ apiVersion });
    await programs().program('plugin', says(`'${API}'`));
    expect(String(await setup({ apiVersion }).failure(IMAGE))).to.include(
      `CredentialProviderResponse of ${apiVersion}: apiVersion: Invalid input: expected "${apiVersion}"`,
    );
  });

  it('is asked only for images that match', async () => {
    await programs().plugin('plugin', { cacheKeyType: 'Image', auth: AUTH });
    const { ask, count } = setup();
    expect(await ask('quay.io/team/app')).to.deep.equal(LOGINS);
    for (const image of ['quay.io/other/app', `${REGISTRY}.evil.example/app`])
      expect(await ask(image)).to.deep.equal([]);
    expect(await count()).to.equal(1);
  });

  const keys: [keyType: string, runs: number][] = [
    ['Image', 3],
    ['Registry', 2],
    ['Global', 1],
  ];
  for (const [cacheKeyType, runs] of keys) {
    it(`whose answer for ${cacheKeyType} is refused runs again at once, if it did not in the last 30 seconds`, async () => {
      await programs().plugin('plugin', { cacheKeyType, cacheDuration: '12h', auth: AUTH });
      const { ask, refused, count, advance } = setup();
      const askAll = async () => {
        for (const image of [IMAGE, `${REGISTRY}/other`, 'quay.io/team/app']) await ask(image);
      };
      const [login = expect.fail('it has no login')] = await ask(IMAGE);
      await askAll();
      expect(await count(), 'for three images of two registries').to.equal(runs);
      advance(29_999);
      refused(IMAGE, login);
      await askAll();
      expect(await count(), 'too soon').to.equal(runs);
      advance(1);
      await askAll();
      expect(await count()).to.equal(runs + 1);
      advance(3_600_000);
      refused(IMAGE, login);
      await askAll();
      expect(await count(), 'a login that it no longer gives').to.equal(runs + 1);
    });
  }

  it('runs once in 30 seconds for a registry that refuses all of its answers, and for no other', async () => {
    await programs().plugin('plugin', { cacheKeyType: 'Image', cacheDuration: '12h', auth: AUTH });
    const { ask, refused, count, advance } = setup();
    const images = [IMAGE, `${REGISTRY}/a`, `${REGISTRY}/b`];
    const refuseAll = async () => {
      for (const image of images) for (const login of await ask(image)) refused(image, login);
    };
    await ask('quay.io/team/app');
    await refuseAll();
    expect(await count()).to.equal(4);
    for (let turn = 1; turn <= 6; turn += 1) {
      advance(30_000);
      await refuseAll();
      await ask('quay.io/team/app');
      expect(await count()).to.equal(4 + turn);
    }
  });

  const durations: [what: string, cacheDuration: string | null | undefined, otherwise: number, good: number][] = [
    ['no duration', undefined, 60_000, 60_000],
    ['a duration of null', null, 60_000, 60_000],
    ['no duration and no default', undefined, 0, 0],
    ['a duration', '5m0s', 60_000, 300_000],
    ['"0s"', '0s', 60_000, 0],
    ['a negative duration', '-1s', 60_000, 0],
  ];
  for (const [what, cacheDuration, defaultCacheDuration, milliseconds] of durations) {
    it(`that answers with ${what} is ${milliseconds === 0 ? 'asked each time' : `good for ${milliseconds} ms`}`, async () => {
      const duration = cacheDuration === undefined ? {} : { cacheDuration };
      await programs().plugin('plugin', { cacheKeyType: 'Image', auth: AUTH, ...duration });
      const { ask, count, advance } = setup({ defaultCacheDuration });
      await ask(IMAGE);
      if (milliseconds > 0) {
        advance(milliseconds - 1);
        await ask(IMAGE);
        expect(await count()).to.equal(1);
        advance(1);
      }
      await ask(IMAGE);
      expect(await count()).to.equal(2);
    });
  }

  it('may have no login, and that answer is remembered as well', async () => {
    for (const auth of [null, {}]) {
      await programs().plugin('plugin', { cacheKeyType: 'Image', auth });
      const { ask, count } = setup();
      const before = await count();
      expect(await ask(IMAGE)).to.deep.equal([]);
      expect(await ask(IMAGE)).to.deep.equal([]);
      expect(await count()).to.equal(before + 1);
    }
  });

  it('runs once for a registry, if the answer that it waits behind is one for the whole registry', async () => {
    await programs().plugin('plugin', { cacheKeyType: 'Registry', cacheDuration: '10m', auth: AUTH });
    const { ask, count } = setup();
    await Promise.all(Array.from({ length: 20 }, (_, index) => ask(`${REGISTRY}/team/app${index}`)));
    expect(await count()).to.be.at.most(2);
  });

  it('runs once for an image, however many ask', async () => {
    await programs().plugin('plugin', { cacheKeyType: 'Image', cacheDuration: '0', auth: AUTH });
    const { ask, count } = setup();
    expect(await Promise.all([IMAGE, IMAGE, IMAGE].map(ask))).to.deep.equal([LOGINS, LOGINS, LOGINS]);
    expect(await count()).to.equal(1);
  });

  it('that fails is asked for other images, and for the same after ten seconds', async () => {
    await programs().program('plugin', `process.stderr.write('no identity'); say('hunter2'); end(1);`);
    const { ask, failure, count, advance } = setup();
    for (let turn = 0; turn < 2; turn += 1) {
      expect(await failure(IMAGE))
        .to.be.instanceOf(ProgramError)
        .with.property('message', 'ended with code 1: no identity');
      advance(4999);
    }
    expect(await count()).to.equal(1);
    await failure(`${REGISTRY}/other`);
    expect(await count()).to.equal(2);
    await programs().plugin('plugin', { cacheKeyType: 'Image', auth: AUTH });
    advance(2);
    expect(await ask(IMAGE)).to.deep.equal(LOGINS);
  });

  const response = { kind: 'CredentialProviderResponse', apiVersion: API, cacheKeyType: 'Image', auth: AUTH };
  const answers: [what: string, change: object, message: RegExp][] = [
    ['another kind', { kind: 'hunter2' }, /kind: .*expected/],
    ['no cacheKeyType', { cacheKeyType: undefined }, /cacheKeyType/],
    ['an unknown cacheKeyType', { cacheKeyType: 'hunter2' }, /cacheKeyType/],
    ['a duration in seconds', { cacheDuration: 300 }, /cacheDuration/],
    ['an invalid duration', { cacheDuration: 'hunter2' }, /cacheDuration/],
    ['a list of logins', { auth: [AUTH] }, /auth: .*expected record/],
    ['a login that is not an object', { auth: { 'a.b': 'hunter2' } }, /auth\["a\.b"\]: .*expected object/],
    ['a password that is a number', { auth: { 'a.b': { username: 'me', password: 7 } } }, /auth\["a\.b"\]\.password: /],
  ];
  for (const [what, text, message] of [
    ['no JSON', 'hunter2', /not a JSON/] as const,
    ...answers.map(([what, change, message]) => [what, JSON.stringify({ ...response, ...change }), message] as const),
  ]) {
    it(`that answers with ${what} has failed, and nothing of it is shown`, async () => {
      await programs().program('plugin', `say(${JSON.stringify(text)});`);
      const error = await setup().failure(IMAGE);
      expect(error).to.be.instanceOf(ProgramError).with.property('message').that.matches(message);
      expect(String(error)).to.not.include('hunter2');
    });
  }
});

describe('a credential helper', () => {
  const programs = programsForEach();
  before(function () {
    needsPosix(this, 'program');
  });

  // What the programs have in common is tested with plug-ins.
  function setup() {
    let time = 0;
    const helper = createCredentialHelper('test', { timeoutMs: 30_000, now: () => time, turns: createTurns() });
    return {
      ask: async (host: string) => (await helper.ask(host, never, createAskers('shop')))[0],
      advance: (milliseconds: number) => {
        time += milliseconds;
      },
    };
  }

  it('is asked by host, and answers with a login for it', async () => {
    await programs().helper('test', { 'a.b:5000': { username: 'me', secret: 'hunter2' } });
    expect(await setup().ask('a.b:5000')).to.deep.equal({ pattern: 'a.b:5000', username: 'me', password: 'hunter2' });
    expect((await programs().calls()).map(({ args, stdin }) => [...args, stdin])).to.deep.equal([['get', 'a.b:5000']]);
  });

  it("is asked for Docker Hub by the name that Docker's clients always used", async () => {
    await programs().helper('test', { 'https://index.docker.io/v1/': { username: 'me', secret: 'hunter2' } });
    expect(await setup().ask('docker.io')).to.include({ pattern: 'docker.io', username: 'me' });
  });

  it('that answers <token> has an identity token', async () => {
    await programs().helper('test', { 'a.b': { username: '<token>', secret: 'refresh' } });
    const identity = { pattern: 'a.b', username: '', password: '', identityToken: 'refresh' };
    expect(await setup().ask('a.b')).to.deep.equal(identity);
  });

  it('without a login has not failed, and is asked again after a minute', async () => {
    await programs().helper('test', {});
    const { ask, advance } = setup();
    expect(await ask('a.b')).to.equal(undefined);
    advance(59_999);
    expect(await ask('a.b')).to.equal(undefined);
    expect(await programs().calls()).to.have.length(1);
    await programs().helper('test', { 'a.b': { username: 'me', secret: 'new' } });
    advance(1);
    expect(await ask('a.b')).to.include({ password: 'new' });
  });

  it('with an empty answer has no login', async () => {
    await programs().helper('test', { 'a.b': { username: '', secret: '' } });
    expect(await setup().ask('a.b')).to.equal(undefined);
  });

  it('may write the names of its fields in any case, as Docker reads them', async () => {
    await programs().program('docker-credential-test', `say('{"username":"me","SECRET":"x"}');`);
    expect(await setup().ask('a.b')).to.include({ username: 'me', password: 'x' });
  });

  const NO_LOGIN = 'did not answer with a JSON object of Username and Secret';
  const answers: [what: string, body: string, message: string][] = [
    ['no JSON', `say('hunter2');`, NO_LOGIN],
    ['no secret', `say('{"Username":"hunter2"}');`, NO_LOGIN],
    ['no user', `say('{"Secret":"hunter2"}');`, NO_LOGIN],
    ['an error on standard output', `say('hunter2 is wrong'); end(1);`, 'ended with code 1'],
  ];
  for (const [what, body, message] of answers) {
    it(`that answers with ${what} has failed, and nothing of it is shown`, async () => {
      await programs().program('docker-credential-test', body);
      const failed = setup().ask('a.b');
      const error = await failed.catch((reason: unknown) => reason);
      expect(error).to.be.instanceOf(ProgramError).with.property('message', message);
    });
  }
});
