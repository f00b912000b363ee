import { expect } from 'chai';
import fc from 'fast-check';
import { convertTolerable } from '../../../src/cli/config/convert/tolerable.ts';
import { configOf, convertAndLoad, notesOf, problemsOf } from './outcome.ts';

const WHOLE = `
log_level = "INFO"
ssl_key_path = "/opt/tolerable/ssl/tls.key"
ssl_cert_path = "/opt/tolerable/ssl/tls.crt"
registry_credential_path = "/opt/tolerable/creds"
supported_architectures = ["amd64", "arm64"]

[tolerations]
effect = "PreferNoSchedule"
operator = "Equal"
key = "example.com/arch"
`;
const BASE = {
  placement: { mode: 'taints' },
  webhook: { enabled: true },
  images: { unresolvable: 'wait' },
  taints: { manage: false },
};
const convert = (text: string) => convertAndLoad(convertTolerable, text);

describe("tolerable's file", () => {
  it('becomes tolerations without taints, written at admission too', () => {
    const outcome = convert(WHOLE);
    expect(configOf(outcome)).to.deep.equal({
      ...BASE,
      taints: { manage: false, key: 'example.com/arch', effect: 'PreferNoSchedule' },
      architectures: { schedulable: ['amd64', 'arm64'] },
      credentials: { directory: '/opt/tolerable/creds' },
      log: { level: 'info' },
    });
    expect(Object.keys(notesOf(outcome))).to.have.members([
      'images that cannot be resolved',
      'registry_credential_path',
      'ssl_key_path',
      'ssl_cert_path',
      'TOLERABLE_*',
    ]);
  });

  it("that is empty gives tolerable's defaults", () => {
    const outcome = convert('');
    expect(configOf(outcome)).to.deep.equal(BASE);
    expect(notesOf(outcome)).to.include.keys('tolerations', 'supported_architectures');
  });

  const noted: [what: string, text: string, key: string, expected: RegExp][] = [
    ['an unknown key', 'arm_images = ["docker.io/ubuntu"]', 'arm_images', /unknown/],
    ['an unknown key of the template', '[tolerations]\neffects = "NoSchedule"', 'tolerations.effects', /unknown/],
    ['an effect that archaware refuses', '[tolerations]\neffect = "NoExecute"', 'tolerations.effect', /not supported/],
    ['no effect', '[tolerations]\nkey = "arch"', 'tolerations.effect', /every effect/],
    ['no key', '[tolerations]\neffect = "NoSchedule"', 'tolerations.key', /not set/],
    ['another operator', '[tolerations]\noperator = "Exists"', 'tolerations.operator', /Equal/],
    ['a value', '[tolerations]\nvalue = "arm64"', 'tolerations.value', /each architecture/],
    ['a time', '[tolerations]\ntolerationSeconds = "30"', 'tolerations.tolerationSeconds', /no time limit/],
    ['a level that archaware lacks', 'log_level = "trace"', 'log_level', /debug/],
    ['a directive for a level', 'log_level = "tolerable=debug,info"', 'log_level', /no counterpart/],
    ['another spelling', 'supported_architectures = ["aarch64"]', 'supported_architectures[0]', /arm64/],
    ['no architecture', 'supported_architectures = []', 'supported_architectures', /empty/],
  ];
  for (const [what, text, key, expected] of noted) {
    it(`with ${what} gets a note`, () => {
      expect(notesOf(convert(text))[key]).to.match(expected);
    });
  }

  const refused: [what: string, text: string, expected: RegExp][] = [
    ['is not TOML', 'a = 1\nb =', /^Invalid TOML.*\(theirs:2\)$/],
    [
      'names one architecture without a list',
      'supported_architectures = "arm64"',
      /^supported_architectures: got "arm64", expected a list/,
    ],
    [
      'has another value as an architecture',
      'supported_architectures = ["arm64", 7]',
      /^supported_architectures\[1\]: got 7, expected an architecture/,
    ],
    ['has a list as the template', 'tolerations = []', /^tolerations: got \[\], expected a table/],
    [
      'has a key that a taint cannot have',
      '[tolerations]\nkey = "a b"',
      /^tolerations\.key: got "a b", expected a qualified name/,
    ],
    [
      'has an unknown effect',
      '[tolerations]\neffect = "noschedule"',
      /^tolerations\.effect: got "noschedule", expected one of NoSchedule/,
    ],
    [
      'has a number as a path',
      'registry_credential_path = 7',
      /^registry_credential_path: got 7, expected the path of a directory/,
    ],
  ];
  for (const [what, text, expected] of refused) {
    it(`is refused if it ${what}, with the file, the value and what is allowed`, () => {
      const [problem, ...others] = problemsOf(convert(text));
      expect(others).to.deep.equal([]);
      expect(problem)
        .to.match(expected)
        .and.match(/theirs/);
    });
  }

  it('with any content is refused, or becomes a valid configuration', () => {
    const value = fc.oneof(
      fc.string(),
      fc.constantFrom('amd64', 'aarch64', 'NoSchedule', 'NoExecute', 'Equal', 'kubernetes.io/arch', 'INFO', 'off', ''),
      fc.integer(),
      fc.boolean(),
    );
    const entry = fc.oneof(
      value.map((one) => JSON.stringify(one)),
      fc.array(value).map((list) => `[${list.map((one) => JSON.stringify(one)).join(', ')}]`),
    );
    const lines = (keys: string[]) => fc.dictionary(fc.constantFrom(...keys), entry);
    const top = ['log_level', 'ssl_key_path', 'registry_credential_path', 'supported_architectures', 'other'];
    const template = ['key', 'effect', 'operator', 'value', 'tolerationSeconds', 'other'];
    const text = (table: Readonly<Record<string, string>>) =>
      Object.entries(table)
        .map(([key, one]) => `${key} = ${one}\n`)
        .join('');
    fc.assert(
      fc.property(lines(top), lines(template), (first, second) => {
        convert(`${text(first)}\n[tolerations]\n${text(second)}`);
      }),
      { numRuns: 60 },
    );
  });
});
