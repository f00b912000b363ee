import fc from 'fast-check';
import { parseGoDuration } from '../../src/kit/duration.ts';
import { LoginError, parseDockerConfig, parsePullSecret } from '../../src/oci/credentials/docker.ts';
import { parseTomlLogin } from '../../src/oci/credentials/operator.ts';
import { mergeProviders, parseProviders } from '../../src/oci/credentials/programs.ts';
import { parseRegistriesConf, pullSources } from '../../src/oci/endpoints/registries-conf.ts';
import { parseReference } from '../../src/oci/reference.ts';
import { isShowable, must, refusing, type Target } from './target.ts';

const quote = (text: string): string => JSON.stringify(text);
const strange = fc.oneof(fc.string({ maxLength: 12 }), fc.constantFrom('__proto__', 'constructor', 'a\nb', ''));
const text = strange.map(quote);
const address = fc.oneof(
  fc.webUrl(),
  fc.constantFrom('https://mirror.example.com', 'http://10.0.0.1:5000/v2/hub', 'docker.io', '[::1]:80'),
);
const TOML_PIECES = [
  '[',
  ']',
  '[[',
  '=',
  ' = ',
  '"',
  '"""',
  "'''",
  '\\',
  '{',
  '}',
  ',',
  '.',
  '\n',
  '#',
  'a',
  'a.',
  'a = 1\n',
  '[a]\n',
  '1979-05-27',
  '1e9',
  'inf',
  '[[a]]\n',
  '{a=',
  '\\u0000',
];

const place = fc.constantFrom('quay.io', 'quay.io/a', '*.io', 'm.b:5000/x/', 'docker.io', '', 'mirror').map(quote);
const placeField = fc.oneof(
  place.map((value) => `location = ${value}`),
  fc.boolean().map((value) => `insecure = ${value}`),
);
const registryTable = fc
  .tuple(place, fc.array(placeField, { maxLength: 1 }), fc.boolean(), fc.array(placeField, { maxLength: 2 }))
  .map(([prefix, fields, blocked, mirror]) =>
    ['[[registry]]', `prefix = ${prefix}`, ...fields, `blocked = ${blocked}`, '[[registry.mirror]]', ...mirror].join(
      '\n',
    ),
  );

/** CRI-O's `registries.conf`. */
export const registriesConf: Target = {
  name: 'registries-conf',
  valid: fc.array(registryTable, { maxLength: 3 }).map((tables) => tables.join('\n')),
  pieces: [
    ...TOML_PIECES,
    '[[registry]]\n',
    '[[registry.mirror]]\n',
    'location = "quay.io"\n',
    'prefix = "*.',
    'blocked = true\n',
    'pull-from-mirror = "tag-only"\n',
  ],
  openings: ['location = "', 'a = ', '[[registry]]\nlocation = "quay.io', '[[registry]]\nprefix = "'],
  run(input) {
    const read = refusing([Error], () => parseRegistriesConf(input, '/etc/containers/registries.conf'));
    if (read === undefined) return false;
    const prefixes = read.registries.map(({ prefix }) => prefix);
    must(new Set(prefixes).size === prefixes.length, 'one table for each prefix');
    for (const name of ['quay.io/a/x:1', 'nginx', `a.io:5000/x@sha256:${'a'.repeat(64)}`]) {
      const sources = pullSources(parseReference(name), read.registries);
      must(sources === undefined || sources.length > 0, 'there is a place for each image');
      must(
        (sources ?? []).every(({ refusal }) => refusal === undefined || isShowable(refusal)),
        'it can be shown',
      );
    }
    return true;
  },
};

/** A TOML file with a login; an input's first line is the file's name. */
export const toml: Target = {
  name: 'toml',
  valid: fc
    .tuple(fc.constantFrom('docker.io.toml', '*.example.com:5000.toml', '[::1].toml'), text, text)
    .map(([name, user, secret]) => `${name}\nuser = ${user}\nsecret = ${secret}\n`),
  pieces: [...TOML_PIECES, '.toml', 'user = ', 'secret = ', 'x.toml\n'],
  openings: ['x.toml\n', 'x.toml\nuser = "', 'x.toml\na = '],
  run(input) {
    const newline = input.indexOf('\n');
    const name = newline < 0 ? input : input.slice(0, newline);
    const read = refusing([Error], () => parseTomlLogin(name, newline < 0 ? '' : input.slice(newline + 1)));
    must(read === undefined || (read.username !== '' && read.password !== ''), 'a login has both its parts');
    return read !== undefined;
  },
};

const base64 = fc.string({ maxLength: 12 }).map((value) => Buffer.from(value).toString('base64'));
const login = fc.tuple(strange, strange).map((parts) => Buffer.from(parts.join(':')).toString('base64'));
const auth = fc.record(
  {
    auth: fc.oneof({ arbitrary: login, weight: 20 }, base64, fc.jsonValue()),
    username: fc.oneof({ arbitrary: strange, weight: 20 }, fc.jsonValue()),
    password: strange,
    identitytoken: fc.oneof(strange, fc.constant(null)),
  },
  { requiredKeys: [] },
);
const dockerConfig = fc
  .record(
    {
      auths: fc.oneof({ arbitrary: fc.dictionary(fc.oneof(address, strange), auth), weight: 8 }, fc.jsonValue()),
      credHelpers: fc.dictionary(
        fc.oneof(fc.domain(), fc.domain(), address),
        fc.constantFrom('ecr-login', 'gcloud', 'acr-env', '', '../x'),
      ),
      credsStore: fc.constantFrom('desktop', 'pass', '', '/bin/sh'),
    },
    { requiredKeys: [] },
  )
  .map((value) => JSON.stringify(value));

/** Docker's `config.json`, as a file of the operator and as both types of pull secrets. */
export const docker: Target = {
  name: 'docker',
  valid: dockerConfig,
  pieces: [
    ...'{ } " : , [ ] "auths": "auth": "dTpw" "credHelpers":{ "credsStore":" "__proto__":{ {"auths":{"a":{'.split(' '),
    '\\u0000',
    'null',
    '=',
  ],
  openings: ['{"auths":{"a":{"auth":"', '{"auths":{"', '{"credHelpers":{"'],
  run(input) {
    const config = refusing([LoginError], () => parseDockerConfig(input));
    const encoded = Buffer.from(input).toString('base64');
    const types = [
      ['kubernetes.io/dockerconfigjson', '.dockerconfigjson'],
      ['kubernetes.io/dockercfg', '.dockercfg'],
    ] as const;
    const secrets = types.flatMap(([type, key]) =>
      [encoded, input].map(
        (value) => refusing([LoginError], () => parsePullSecret({ type, data: { [key]: value } })) ?? [],
      ),
    );
    for (const login of [...(config?.logins ?? []), ...secrets.flat()]) {
      must(
        [login.pattern, login.username, login.password].every((part) => typeof part === 'string'),
        'a login is of texts',
      );
    }
    must(
      secrets.flat().every((login) => login.identityToken === undefined),
      'a pull secret has no identity token',
    );
    for (const helper of [...(config?.helpers.values() ?? []), config?.store ?? '']) {
      must(/^[A-Za-z0-9._-]*$/.test(helper), 'a helper is a name without a path');
    }
    return config !== undefined;
  },
};

const provider = fc.record(
  {
    name: fc.oneof({ arbitrary: fc.stringMatching(/^[a-z-]{1,12}$/), weight: 8 }, strange),
    apiVersion: fc.constantFrom(
      ...['v1', 'v1beta1', 'v1alpha1'].map((each) => `credentialprovider.kubelet.k8s.io/${each}`),
    ),
    matchImages: fc.array(fc.oneof(address, strange), { minLength: 1, maxLength: 3 }),
    defaultCacheDuration: fc.constantFrom('12h', '0', '0s', '1m30.5s', '10us', '5m', '-1s'),
    args: fc.array(strange, { maxLength: 2 }),
    env: fc.oneof(
      fc.array(fc.record({ name: fc.constantFrom('A', 'PATH', '__proto__', '='), value: strange }), { maxLength: 2 }),
      fc.constant(null),
    ),
    tokenAttributes: fc.constantFrom(null, null, null, {}),
  },
  { requiredKeys: ['name', 'apiVersion', 'matchImages', 'defaultCacheDuration'] },
);

/** The kubelet's `CredentialProviderConfig`, YAML or JSON. */
export const providerConfig: Target = {
  name: 'provider-config',
  valid: fc
    .array(provider, { minLength: 1, maxLength: 3 })
    .map((providers) =>
      JSON.stringify({ apiVersion: 'kubelet.config.k8s.io/v1', kind: 'CredentialProviderConfig', providers }, null, 1),
    ),
  pieces: [
    'apiVersion: kubelet.config.k8s.io/v1\n',
    'kind: CredentialProviderConfig\n',
    'providers:\n',
    '- name: a\n',
    '  ',
    '- ',
    ': ',
    '\n',
    '&a ',
    '*a',
    '[*a,*a]',
    '<<: *a\n',
    '? ',
    '!!binary ',
    '!!set {',
    '|',
    '>',
    '{',
    '}',
    '[',
    ']',
    ',',
    '"',
    "'",
    '---\n',
    '%YAML 1.1\n',
    '#',
    '- - ',
    'a: &a [x]\n',
    '1h',
  ],
  openings: ['a: ', '- ', 'a: &a [x]\nb: ', '"', 'a: |\n '],
  run(input) {
    const duration = parseGoDuration(input);
    must(duration === undefined || !Number.isNaN(duration), 'a duration is a number');
    const read = refusing([Error], () => mergeProviders([parseProviders(input)]));
    for (const { name, defaultCacheDuration, env } of read ?? []) {
      must(!/[/\\\s\0]/.test(name) && name !== '..', 'a program is a name without a path');
      must(defaultCacheDuration >= 0, 'a duration is not negative');
      must(
        Object.entries(env).every((pair) => pair.every((part) => typeof part === 'string')),
        'variables are texts',
      );
    }
    return read !== undefined;
  },
};
