import { cp, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { expect } from 'chai';
import { parseDocument } from 'yaml';
import { at, listAt } from '../../hack/cluster/json.ts';
import { makePolicies, POLICIES } from '../../hack/release/artifacts/policies.ts';
import { ROOT, testRelease } from './release.ts';

const EXAMPLES = join(ROOT, 'docs/examples');
const read = (name: string) => readFile(join(EXAMPLES, name), 'utf8');

function parsed(text: string): unknown {
  const document = parseDocument(text);
  expect(document.errors).to.deep.equal([]);
  return document.toJS();
}

/** The images of a policy, and whom it trusts to sign them. */
function trusted(policy: unknown) {
  const kyverno = at(policy, 'kind') === 'ImageValidatingPolicy';
  const images = listAt(policy, 'spec', kyverno ? 'matchImageReferences' : 'images').map((one) => at(one, 'glob'));
  const identities = listAt(policy, 'spec', kyverno ? 'attestors' : 'authorities').flatMap((one) =>
    listAt(kyverno ? at(one, 'cosign') : one, 'keyless', 'identities'),
  );
  const types = kyverno
    ? listAt(policy, 'spec', 'attestations').map((one) => at(one, 'intoto', 'type'))
    : listAt(policy, 'spec', 'authorities').flatMap((one) =>
        listAt(one, 'attestations').map((wanted) => at(wanted, 'predicateType')),
      );
  return { images, identities, types };
}

const subject = (source: string) =>
  `^\\Q${source}/.github/workflows/release.yml@refs/tags/v\\E[0-9]+[.][0-9]+[.][0-9]+$`;

const expected = (place: string, source: string) => ({
  images: [`${place}/archaware-controller:*`, `${place}/archaware-controller@*`],
  identities: [{ issuer: 'https://token.actions.githubusercontent.com', subjectRegExp: subject(source) }],
  types: ['https://sigstore.dev/cosign/sign/v1', 'https://slsa.dev/provenance/v1'],
});

describe('the policies of docs/examples', () => {
  for (const name of POLICIES) {
    it(`trust the release workflow of a placeholder, for the image of a placeholder: ${name}`, async () => {
      const source = 'https://source.invalid/archaware-controller';
      expect(trusted(parsed(await read(name)))).to.deep.equal(expected('registry.invalid', source));
    });
  }

  it('are written beside the other files of a release, with its names', async () => {
    const release = await testRelease();
    try {
      await cp(EXAMPLES, join(release.checkout, 'docs/examples'), { recursive: true });
      const files = await makePolicies(release);
      expect(files.map((file) => basename(file))).to.deep.equal(POLICIES);
      for (const file of files) {
        const text = await readFile(file, 'utf8');
        const page = `${release.source}/blob/${release.tag}/docs/verify.md`;
        expect(trusted(parsed(text))).to.deep.equal(expected('registry.example.com:5000/team', release.source));
        expect(text)
          .to.contain(page)
          .and.not.to.match(/[.]invalid/);
      }
    } finally {
      await release.remove();
    }
  });
});
