import { expect } from 'chai';
import { stringify } from 'yaml';
import { createAskers } from '../../../src/kit/fairness/asking-namespaces.ts';
import { createTurns } from '../../../src/kit/fairness/turns.ts';
import { ProgramError } from '../../../src/oci/credentials/process.ts';
import {
  createProviderPlugin,
  mergeProviders,
  type Provider,
  parseProviders,
} from '../../../src/oci/credentials/programs.ts';
import { type CredentialPrograms, createCredentialPrograms } from '../../support/credential-programs.ts';
import { needsPosix } from '../../support/platforms.ts';

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
  const read: Provider = {
    name: 'ecr-credential-provider',
    matchImages: ['*.dkr.ecr.*.amazonaws.com'],
    defaultCacheDuration: 43_205_000,
    args: ['get', '--x'],
    env: { AWS_PROFILE: 'hunter2' },
    apiVersion: API,
  };

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
  const refused: [what: string, config: unknown, message: string][] = [
    ['nothing', null, 'it is not a CredentialProviderConfig'],
    ['another kind', { ...CONFIG, kind: 'KubeletConfiguration' }, 'kind: got "KubeletConfiguration", expected'],
    [
      'another version',
      { ...CONFIG, apiVersion: 'kubelet.config.k8s.io/v2' },
      'apiVersion: got "kubelet.config.k8s.io/v2", expected kubelet.config.k8s.io/v1 or kubelet.config.k8s.io/v1beta1 or',
    ],
    ['null as its providers', { ...CONFIG, providers: null }, 'providers must be a list'],
    ['providers that are no list', { ...CONFIG, providers: PROVIDER }, 'providers must be a list'],
    ...['v1alpha1', 'v1beta1'].map((version): [string, unknown, string] => [
      `tokenAttributes in ${version}`,
      {
        ...CONFIG,
        apiVersion: `kubelet.config.k8s.io/${version}`,
        providers: [{ ...PROVIDER, tokenAttributes: TOKENS }],
      },
      'providers[0] has an unknown field "tokenAttributes"',
    ]),
    ['no apiVersion', { ...CONFIG, apiVersion: undefined }, 'apiVersion: got a value that is not a string, expected'],
    ['an unknown field', { ...CONFIG, provider: [] }, 'it has an unknown field "provider"'],
    ['no providers', { ...CONFIG, providers: [] }, 'providers must be a list'],
    ['a provider that is not an object', { ...CONFIG, providers: ['hunter2'] }, 'providers[0] is not an object'],
    [
      'a name twice',
      { ...CONFIG, providers: [PROVIDER, PROVIDER] },
      'the name "ecr-credential-provider" is given twice',
    ],
    ["a provider's unknown field", withProvider({ matchImage: [] }), 'providers[0] has an unknown field "matchImage"'],
    ['an unknown protocol', withProvider({ apiVersion: `${API}alpha2` }), 'providers[0].apiVersion: got'],
    ['no name', withProvider({ name: undefined }), 'providers[0].name must be a string'],
    ['a path as a name', withProvider({ name: '../sh' }), 'providers[0].name must be the name of a program'],
    ['a dot as a name', withProvider({ name: '.' }), 'providers[0].name must be the name of a program'],
    ['dots as a name', withProvider({ name: '..' }), 'providers[0].name must be the name of a program'],
    ['a space in a name', withProvider({ name: 'sh -c' }), 'providers[0].name must be the name of a program'],
    [
      'no matchImages',
      withProvider({ matchImages: undefined }),
      'providers[0].matchImages must be a list with at least one entry',
    ],
    [
      'a number in matchImages',
      withProvider({ matchImages: ['a.b', 7] }),
      'providers[0].matchImages[1] must be a string',
    ],
    [
      'an invalid pattern',
      withProvider({ matchImages: ['a.b', '%invalid%'] }),
      `providers[0].matchImages[1]: got "%invalid%", expected a pattern of images' names`,
    ],
    [
      'a pattern with a space',
      withProvider({ matchImages: ['a b.c'] }),
      'providers[0].matchImages[0]: got "a b.c", expected a pattern',
    ],
    ['no default duration', withProvider({ defaultCacheDuration: undefined }), 'defaultCacheDuration must be a string'],
    [
      'a duration of another kind',
      withProvider({ defaultCacheDuration: '1d' }),
      'defaultCacheDuration must be a duration',
    ],
    ['a negative duration', withProvider({ defaultCacheDuration: '-1h' }), 'defaultCacheDuration must be a duration'],
    ['arguments in one text', withProvider({ args: 'get --x' }), 'providers[0].args must be a list of strings'],
    ['a map of variables', withProvider({ env: { A: 'hunter2' } }), 'providers[0].env must be a list'],
    ['a variable with a number', withProvider({ env: [{ name: 'A', value: 7 }] }), 'providers[0].env[0].value must be'],
    ['a variable without a name', withProvider({ env: [{ name: '', value: 'hunter2' }] }), 'providers[0].env[0].name'],
    ["a variable's unknown field", withProvider({ env: [{ name: 'A', valueFrom: {} }] }), 'unknown field "valueFrom"'],
  ];
  for (const [what, config, message] of refused) {
    it(`with ${what} is refused`, () => {
      expect(() => parseProviderConfig(JSON.stringify(config)))
        .to.throw(Error, message)
        .that.satisfies((error: Error) => !error.message.includes('hunter2'));
    });
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

  let programs: CredentialPrograms;
  beforeEach(async function () {
    needsPosix(this, 'program');
    programs = await createCredentialPrograms();
  });
  afterEach(() => programs?.remove());

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
      programs.bin,
      { timeoutMs: 30_000, now: () => time, turns: createTurns() },
    );
    const askers = createAskers('shop');
    const { signal } = new AbortController();
    return {
      ask: (image: string) => plugin.ask(image, signal, askers),
      refused: plugin.refused,
      failure: (image: string): Promise<unknown> => plugin.ask(image, signal, askers).catch((error: unknown) => error),
      count: async () => (await programs.calls()).length,
      advance: (milliseconds: number) => {
        time += milliseconds;
      },
    };
  }

  it('is asked with its arguments and environment, as the kubelet asks', async () => {
    await programs.plugin('plugin', { cacheKeyType: 'Registry', auth: AUTH });
    const { ask } = setup({ args: ['get-credentials', '--v=3'], env: { AWS_PROFILE: 'team' } });
    expect(await ask(IMAGE)).to.deep.equal(LOGINS);
    const [call] = await programs.calls();
    expect(call?.args).to.deep.equal(['get-credentials', '--v=3']);
    expect(call?.env).to.include({ AWS_PROFILE: 'team', PATH: process.env.PATH });
    expect(JSON.parse(call?.stdin ?? '')).to.deep.equal({
      kind: 'CredentialProviderRequest',
      apiVersion: API,
      image: IMAGE,
    });
  });

  it('of an older version is asked, and answers, in that version', async () => {
    const apiVersion = `${API}beta1`;
    const answer = { kind: 'CredentialProviderResponse', cacheKeyType: 'Image', auth: AUTH };
    const says = (version: string) => `say(JSON.stringify({ ...${JSON.stringify(answer)}, apiVersion: ${version} }));`;
    await programs.program('plugin', says('JSON.parse(call.stdin).apiVersion'));
    const { ask } = setup({ apiVersion });
    expect(await ask(IMAGE)).to.deep.equal(LOGINS);
    expect(JSON.parse((await programs.calls())[0]?.stdin ?? '')).to.include({ apiVersion });
    await programs.program('plugin', says(`'${API}'`));
    expect(String(await setup({ apiVersion }).failure(IMAGE))).to.include(
      `CredentialProviderResponse of ${apiVersion}: apiVersion: Invalid input: expected "${apiVersion}"`,
    );
  });

  const images: [image: string, matches: boolean][] = [
    [IMAGE, true],
    ['quay.io/team/app', true],
    ['quay.io/other/app', false],
    ['evil-quay.io/team/app', false],
    ['1.dkr.ecr.eu-west-1.amazonaws.com.evil.example/app', false],
    [`${REGISTRY}:8443/app`, false],
    ['docker.io/library/nginx', false],
  ];
  for (const [image, matches] of images) {
    it(`is ${matches ? 'asked' : 'not asked'} for ${image}`, async () => {
      await programs.plugin('plugin', { cacheKeyType: 'Image', auth: AUTH });
      const { ask, count } = setup();
      expect(await ask(image)).to.deep.equal(matches ? LOGINS : []);
      expect(await count()).to.equal(matches ? 1 : 0);
    });
  }

  const keys: [keyType: string, runs: number][] = [
    ['Image', 3],
    ['Registry', 2],
    ['Global', 1],
  ];
  for (const [cacheKeyType, runs] of keys) {
    it(`whose answer is for ${cacheKeyType} runs ${runs} times for three images of two registries`, async () => {
      await programs.plugin('plugin', { cacheKeyType, auth: AUTH });
      const { ask, count } = setup();
      for (const image of [IMAGE, `${REGISTRY}/other`, 'quay.io/team/app', IMAGE]) {
        expect(await ask(image)).to.deep.equal(LOGINS);
      }
      expect(await count()).to.equal(runs);
    });
  }

  for (const [cacheKeyType, runs] of keys) {
    it(`whose answer for ${cacheKeyType} is refused runs again at once, if it did not in the last 30 seconds`, async () => {
      await programs.plugin('plugin', { cacheKeyType, cacheDuration: '12h', auth: AUTH });
      const { ask, refused, count, advance } = setup();
      const askAll = async () => {
        for (const image of [IMAGE, `${REGISTRY}/other`, 'quay.io/team/app']) await ask(image);
      };
      const [login] = await ask(IMAGE);
      if (login === undefined) return expect.fail('it has no login');
      await askAll();
      expect(await count()).to.equal(runs);
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
    await programs.plugin('plugin', { cacheKeyType: 'Image', cacheDuration: '12h', auth: AUTH });
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

  const durations: [what: string, cacheDuration: string | null | undefined, defaultMs: number, milliseconds: number][] =
    [
      ['no duration', undefined, 60_000, 60_000],
      ['a duration of null', null, 60_000, 60_000],
      ['no duration and no default', undefined, 0, 0],
      ['a duration', '5m0s', 60_000, 300_000],
      ['"0s"', '0s', 60_000, 0],
      ['"0"', '0', 60_000, 0],
      ['a negative duration', '-1s', 60_000, 0],
    ];
  for (const [what, cacheDuration, defaultCacheDuration, milliseconds] of durations) {
    it(`that answers with ${what} is ${milliseconds === 0 ? 'asked each time' : `good for ${milliseconds} ms`}`, async () => {
      const duration = cacheDuration === undefined ? {} : { cacheDuration };
      await programs.plugin('plugin', { cacheKeyType: 'Image', auth: AUTH, ...duration });
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
      await programs.plugin('plugin', { cacheKeyType: 'Image', auth });
      const { ask, count } = setup();
      const before = await count();
      expect(await ask(IMAGE)).to.deep.equal([]);
      expect(await ask(IMAGE)).to.deep.equal([]);
      expect(await count()).to.equal(before + 1);
    }
  });

  it('runs once for a registry, if the answer that it waits behind is one for the whole registry', async () => {
    await programs.plugin('plugin', { cacheKeyType: 'Registry', cacheDuration: '10m', auth: AUTH });
    const { ask, count } = setup();
    await Promise.all(Array.from({ length: 20 }, (_, index) => ask(`${REGISTRY}/team/app${index}`)));
    expect(await count()).to.be.at.most(2);
  });

  it('runs once for an image, however many ask', async () => {
    await programs.plugin('plugin', { cacheKeyType: 'Image', cacheDuration: '0', auth: AUTH });
    const { ask, count } = setup();
    expect(await Promise.all([IMAGE, IMAGE, IMAGE].map(ask))).to.deep.equal([LOGINS, LOGINS, LOGINS]);
    expect(await count()).to.equal(1);
  });

  it('that fails is asked for other images, and for the same after ten seconds', async () => {
    await programs.program('plugin', `process.stderr.write('no identity'); say('hunter2'); end(1);`);
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
    await programs.plugin('plugin', { cacheKeyType: 'Image', auth: AUTH });
    advance(2);
    expect(await ask(IMAGE)).to.deep.equal(LOGINS);
  });

  const response = { kind: 'CredentialProviderResponse', apiVersion: API, cacheKeyType: 'Image', auth: AUTH };
  const answers: [what: string, text: string, message: RegExp][] = [
    ['no JSON', 'hunter2', /not a JSON/],
    ['another kind', JSON.stringify({ ...response, kind: 'hunter2' }), /kind: .*expected/],
    ['another version', JSON.stringify({ ...response, apiVersion: `${API}beta1` }), /apiVersion: .*expected/],
    ['no cacheKeyType', JSON.stringify({ ...response, cacheKeyType: undefined }), /cacheKeyType/],
    ['an unknown cacheKeyType', JSON.stringify({ ...response, cacheKeyType: 'hunter2' }), /cacheKeyType/],
    ['a duration in seconds', JSON.stringify({ ...response, cacheDuration: 300 }), /cacheDuration/],
    ['an invalid duration', JSON.stringify({ ...response, cacheDuration: 'hunter2' }), /cacheDuration/],
    ['a list of logins', JSON.stringify({ ...response, auth: [AUTH] }), /auth: .*expected record/],
    [
      'a login that is not an object',
      JSON.stringify({ ...response, auth: { 'a.b': 'hunter2' } }),
      /auth\["a\.b"\]: .*expected object/,
    ],
    [
      'a password that is a number',
      JSON.stringify({ ...response, auth: { 'a.b': { username: 'me', password: 7 } } }),
      /auth\["a\.b"\]\.password: /,
    ],
  ];
  for (const [what, text, message] of answers) {
    it(`that answers with ${what} has failed, and nothing of it is shown`, async () => {
      await programs.program('plugin', `say(${JSON.stringify(text)});`);
      const error = await setup().failure(IMAGE);
      expect(error).to.be.instanceOf(ProgramError).with.property('message').that.matches(message);
      expect(String(error)).to.not.include('hunter2');
    });
  }
});
