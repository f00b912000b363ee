import { expect } from 'chai';
import { parse } from 'yaml';
import { listAt, textAt } from '../../hack/cluster/json.ts';
import { krewManifest } from '../../hack/executables/krew.ts';
import { archiveOf, TARGETS } from '../../hack/executables/targets.ts';

const SUM = 'a1'.repeat(32);

describe("Krew's manifest of a release", () => {
  const addresses = {
    url: 'https://git.example.com/team/archaware-controller/releases/download',
    homepage: 'https://git.example.com/team/archaware-controller',
  };
  const text = krewManifest('1.2.3', addresses, () => SUM);
  const manifest: unknown = parse(text);

  it('names the archives where the release has them', () => {
    expect(listAt(manifest, 'spec', 'platforms').map((platform) => textAt(platform, 'uri'))).to.deep.equal(
      TARGETS.map((target) => `${addresses.url}/v1.2.3/${archiveOf(target)}`),
    );
  });

  it('has no placeholder left', () => expect(text).not.to.match(/\.invalid|npm run|0{64}/));
});
