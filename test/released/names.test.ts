import { expect } from 'chai';
import { pageOf, releasedPage, withRealNames } from '../../hack/release/names.ts';

const NAMES = {
  tag: 'v1.2.3',
  registry: 'registry.example.com:5000',
  repository: 'some/team',
  source: 'https://git.example.com/team/repo',
  downloads: 'https://git.example.com/team/repo/releases/download',
};

describe('the names of a release', () => {
  const rows: readonly [of: string, source: string, released: string][] = [
    [
      'the image',
      'registry.invalid/archaware-controller:1.2.3',
      'registry.example.com:5000/some/team/archaware-controller:1.2.3',
    ],
    [
      'the chart',
      'oci://registry.invalid/charts/archaware-controller',
      'oci://registry.example.com:5000/some/team/charts/archaware-controller',
    ],
    [
      'the identity that signs',
      'https://source.invalid/archaware-controller/.github/workflows/release.yml@refs/tags/v1.2.3',
      'https://git.example.com/team/repo/.github/workflows/release.yml@refs/tags/v1.2.3',
    ],
    [
      'a page',
      'https://source.invalid/archaware-controller/blob/main/docs/runbooks/gates.md',
      'https://git.example.com/team/repo/blob/v1.2.3/docs/runbooks/gates.md',
    ],
    [
      'a file',
      'https://releases.invalid/archaware/v1.2.3/archaware-controller.yaml',
      'https://git.example.com/team/repo/releases/download/v1.2.3/archaware-controller.yaml',
    ],
    [
      'two on a line',
      'registry.invalid/a registry.invalid/b',
      'registry.example.com:5000/some/team/a registry.example.com:5000/some/team/b',
    ],
    ['nothing', 'x.invalid/a is invalid', 'x.invalid/a is invalid'],
  ];
  for (const [of, source, released] of rows) {
    it(`stand in place of the placeholders: ${of}`, () => expect(withRealNames(source, NAMES)).to.equal(released));
  }

  it('include the page of a document, as it is in the release', () => {
    expect(pageOf(NAMES, 'docs/verify.md')).to.equal('https://git.example.com/team/repo/blob/v1.2.3/docs/verify.md');
  });
});

describe('a page in a release', () => {
  const BLOB = 'https://git.example.com/team/repo/blob/v1.2.3';
  const rows: readonly [does: string, source: string, released: string][] = [
    [
      'leaves out what is true before a release only',
      'a\n<!-- unreleased -->\nb\n\nc\n<!-- /unreleased -->\nd',
      'a\nd',
    ],
    ['has what is true in a release only', 'a\n<!-- released\nb\n-->\nc', 'a\nb\nc'],
    ['keeps other comments', '<!-- note -->\na -->\n-->', '<!-- note -->\na -->\n-->'],
    [
      'links to the repository',
      'see [x](other.md#part) and [`y`](../LICENSE)',
      `see [x](${BLOB}/docs/other.md#part) and [\`y\`](${BLOB}/LICENSE)`,
    ],
    [
      'keeps links to the web and to itself',
      '[x](https://a.example) [y](#part) [z](mailto:a@b.example)',
      '[x](https://a.example) [y](#part) [z](mailto:a@b.example)',
    ],
    [
      'shows pictures, not pages with a picture',
      '![a](pictures/a.svg)',
      `![a](${BLOB.replace('/blob/', '/raw/')}/docs/pictures/a.svg)`,
    ],
    [
      'links pictures',
      '[![a](a.svg)](b.md)',
      `[![a](${BLOB.replace('/blob/', '/raw/')}/docs/a.svg)](${BLOB}/docs/b.md)`,
    ],
    [
      'has real names',
      'registry.invalid/archaware-controller',
      'registry.example.com:5000/some/team/archaware-controller',
    ],
  ];
  for (const [does, source, released] of rows) {
    it(does, () => expect(releasedPage(source, 'docs/page.md', NAMES)).to.equal(released));
  }

  for (const mark of ['<!-- unreleased -->', '<!-- released']) {
    it(`is refused if "${mark}" has no end`, () => {
      expect(() => releasedPage(`a\n${mark}\nb`, 'docs/page.md', NAMES)).to.throw(`docs/page.md: "${mark}" has no`);
    });
  }
});
