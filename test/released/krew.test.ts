import { expect } from 'chai';
import { parse } from 'yaml';
import { at, listAt, textAt } from '../../hack/cluster/json.ts';
import { krewManifest } from '../../hack/executables/krew.ts';
import { archiveOf, TARGETS } from '../../hack/executables/targets.ts';

const SUM = 'a1'.repeat(32);
/** The platforms of Krew itself. */
const PLATFORMS = [
  ...['windows/386', 'windows/amd64', 'windows/arm64'],
  ...['linux/386', 'linux/amd64', 'linux/arm', 'linux/arm64', 'linux/ppc64le'],
  ...['darwin/386', 'darwin/amd64', 'darwin/arm64'],
];

/** The rules of validate-krew-manifest, which Krew's index runs, and of https://krew.sigs.k8s.io/docs/developer-guide/ */
function krewProblems(fileName: string, manifest: unknown): string[] {
  const name = textAt(manifest, 'metadata', 'name');
  const spec = at(manifest, 'spec');
  const short = textAt(spec, 'shortDescription');
  const rules: readonly [holds: boolean, rule: string][] = [
    [at(manifest, 'apiVersion') === 'krew.googlecontainertools.github.com/v1alpha2', 'its version of the API'],
    [at(manifest, 'kind') === 'Plugin', 'its kind'],
    [fileName === `${name}.yaml`, 'the name of the file'],
    // The guide of names: lower case, hyphens, and not what kubectl already says.
    [/^[a-z][a-z0-9-]*$/.test(name) && !/^kube/.test(name), 'the name'],
    [/^v\d+\.\d+\.\d+(?:-[\w.-]+)?$/.test(textAt(spec, 'version')), 'the version begins with v'],
    [/^https:\/\//.test(textAt(spec, 'homepage')), 'the home page'],
    // kubectl krew search shows it in a column.
    [short.length <= 60 && !/[\r\n]/.test(short) && !/\.$|kubectl|plugin/i.test(short), 'the short description'],
    [textAt(spec, 'description').length > short.length, 'the description'],
  ];
  const platforms = listAt(spec, 'platforms').flatMap((platform) => {
    const { os, arch } = Object(at(platform, 'selector', 'matchLabels'));
    const [uri, bin] = [textAt(platform, 'uri'), textAt(platform, 'bin')];
    const platformRules: readonly [holds: boolean, rule: string][] = [
      [PLATFORMS.includes(`${os}/${arch}`), 'is one of Krew'],
      [Object.keys(Object(at(platform, 'selector', 'matchLabels'))).length === 2, 'is chosen by os and arch'],
      [/^https:\/\/.*\.(?:tar\.gz|zip)$/.test(uri), 'has the address of an archive'],
      [/^[a-f0-9]{64}$/.test(textAt(platform, 'sha256')), 'has a sum'],
      [os === 'windows' ? bin.endsWith('.exe') : !bin.includes('.'), 'has a program'],
    ];
    return platformRules.filter(([holds]) => !holds).map(([, rule]) => `${os}/${arch}: ${rule}`);
  });
  const labels = listAt(spec, 'platforms').map((platform) => JSON.stringify(at(platform, 'selector')));
  return [
    ...rules.filter(([holds]) => !holds).map(([, rule]) => rule),
    ...platforms,
    ...(new Set(labels).size === labels.length ? [] : ['two platforms are the same']),
  ];
}

describe("Krew's manifest of a release", () => {
  const addresses = {
    url: 'https://git.example.com/team/archaware-controller/releases/download',
    homepage: 'https://git.example.com/team/archaware-controller',
  };
  const text = krewManifest('1.2.3', addresses, () => SUM);
  const manifest: unknown = parse(text);

  it("keeps the rules of Krew's index", () => expect(krewProblems('archaware.yaml', manifest)).to.deep.equal([]));

  it('names the archives where the release has them', () => {
    expect(listAt(manifest, 'spec', 'platforms').map((platform) => textAt(platform, 'uri'))).to.deep.equal(
      TARGETS.map((target) => `${addresses.url}/v1.2.3/${archiveOf(target)}`),
    );
  });

  it('has no placeholder left', () => expect(text).not.to.match(/\.invalid|npm run|0{64}/));
});
