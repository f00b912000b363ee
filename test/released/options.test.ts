import { expect } from 'chai';
import { PLACEHOLDER } from '../../hack/release/names.ts';
import { readCommandLine, readTarget } from '../../hack/release/options.ts';

describe('the command line of a release', () => {
  const rows: readonly (readonly [string, ReturnType<typeof readCommandLine>])[] = [
    ['0.2.0', { version: '0.2.0', push: true }],
    ['v0.2.0', { version: '0.2.0', push: true }],
    ['--no-push 0.2.0-rc.1', { version: '0.2.0-rc.1', push: false }],
    ['', 'VERSION is missing, for example 0.2.0'],
    ['0.2', 'got the version "0.2", expected MAJOR.MINOR.PATCH, for example 0.2.0'],
    ['0.2.0 0.3.0', 'got "0.3.0" after the version, expected nothing'],
    ['0.2.0 --push', 'got --push, expected --no-push'],
  ];
  for (const [line, expected] of rows) {
    it(`"${line}"`, () =>
      expect(readCommandLine(line.split(' ').filter((word) => word !== ''))).to.deep.equal(expected));
  }
});

describe('where a release goes', () => {
  const local = {
    REGISTRY: 'localhost:5000',
    REPOSITORY: 'acme',
    COSIGN_KEY: 'cosign.key',
    SOURCE: 'https://git.example/a/b',
  };
  const actions = {
    GITHUB_ACTIONS: 'true',
    GITHUB_REPOSITORY: 'Acme/archaware-controller',
    GITHUB_REPOSITORY_OWNER: 'Acme',
    GITHUB_SERVER_URL: 'https://github.example',
    ACTIONS_ID_TOKEN_REQUEST_URL: 'https://token.example',
  };
  const read = (env: Readonly<Record<string, string>>, push = true, origin?: string) => readTarget(env, push, origin);

  it('is what the variables say', () => {
    expect(read(local)).to.deep.equal({
      target: {
        registry: 'localhost:5000',
        repository: 'acme',
        source: 'https://git.example/a/b',
        baseImage: undefined,
        signing: { kind: 'key', key: 'cosign.key' },
      },
      problems: [],
      notes: [],
    });
  });

  it('is, in GitHub Actions, the registry, the owner in lower case, and the repository of the workflow, which signs', () => {
    const { target, problems } = read(actions);
    expect(problems).to.deep.equal([]);
    expect(target).to.include({
      registry: 'ghcr.io',
      repository: 'acme',
      source: 'https://github.example/Acme/archaware-controller',
    });
    expect(target.signing).to.deep.equal({ kind: 'keyless' });
  });

  it('is, in GitHub Actions, elsewhere if the variables say so', () => {
    const { target } = read({ ...actions, ...local });
    expect(target).to.include({ registry: 'localhost:5000', repository: 'acme', source: 'https://git.example/a/b' });
    expect(target.signing).to.deep.equal({ kind: 'key', key: 'cosign.key' });
  });

  describe('is refused with', () => {
    const rows: readonly (readonly [string, Readonly<Record<string, string>>, RegExp])[] = [
      ['no registry', { REGISTRY: '' }, /^REGISTRY is not set/],
      ['a path in the registry', { REGISTRY: 'localhost:5000/acme' }, /^REGISTRY is "localhost:5000\/acme"/],
      ['a scheme in the registry', { REGISTRY: 'https://localhost' }, /^REGISTRY is/],
      [
        'a registry that crane would take for Docker Hub',
        { REGISTRY: 'registry' },
        /^REGISTRY is "registry", expected HOST\.DOMAIN or HOST:PORT/,
      ],
      ['no repository', { REPOSITORY: '' }, /^REPOSITORY is not set/],
      ['capital letters', { REPOSITORY: 'Acme' }, /^REPOSITORY is "Acme", expected lower case/],
      ['an empty part of the path', { REPOSITORY: 'acme//x' }, /^REPOSITORY is/],
      ['a base image by tag', { BASE_IMAGE: 'node:24' }, /^BASE_IMAGE is "node:24", expected a digest/],
      [
        'a source that is only a host',
        { SOURCE: 'https://git.example' },
        /^SOURCE \("https:\/\/git\.example"\) is not/,
      ],
      ['a space in the source', { SOURCE: 'https://git.example/a b' }, /^SOURCE .* is not/],
      ['a pattern of String.replace in the source', { SOURCE: 'https://git.example/a$&' }, /^SOURCE .* is not/],
      ['a source by ssh', { SOURCE: 'git@git.example:a/b' }, /^SOURCE is not the https URL/],
      [
        'a source by http',
        { SOURCE: 'http://git.example/a' },
        /^SOURCE \("http:\/\/git\.example\/a"\) is not the https URL/,
      ],
      [
        'credentials in the source, and does not show them',
        { SOURCE: 'https://me:secret@git.example/a' },
        /^SOURCE is not/,
      ],
      ['no key outside of GitHub Actions', { COSIGN_KEY: '' }, /^COSIGN_KEY is not set/],
    ];
    for (const [title, env, expected] of rows) {
      it(title, () => {
        const { problems } = read({ ...local, ...env });
        expect(problems).to.have.lengthOf(1);
        expect(problems[0]).to.match(expected);
      });
    }

    it('a job that has no identity', () => {
      const { problems } = read({ ...actions, ACTIONS_ID_TOKEN_REQUEST_URL: '' });
      expect(problems.join()).to.match(/give it the permission "id-token: write"/);
    });

    it('several problems, all named together', () => expect(read({}).problems).to.have.lengthOf(3));
  });

  it('needs no key where nothing is pushed', () => {
    const { target, problems } = read({ ...local, COSIGN_KEY: '' }, false);
    expect([target.signing, problems]).to.deep.equal([{ kind: 'none' }, []]);
  });

  for (const [given, expected] of [
    ['https://git.example:8443/A/b.git/', 'https://git.example:8443/A/b'],
    ['HTTPS://Git.Example/A/b', 'https://git.example/A/b'],
    ['https://git.example/a\n', 'https://git.example/a'],
  ] as const) {
    it(`has the source ${expected} for ${JSON.stringify(given)}`, () => {
      expect(read({ ...local, SOURCE: given }).target.source).to.equal(expected);
    });
  }

  describe('has a source', () => {
    const withoutSource = { ...local, SOURCE: '' };
    const rows: readonly (readonly [string, string | undefined, string])[] = [
      ['of the remote origin', 'https://git.example/a/b.git', 'https://git.example/a/b'],
      ['that names nobody, if the remote is reached by ssh', 'git@git.example:a/b.git', PLACEHOLDER.source],
      ['that names nobody, if the remote has credentials', 'https://me:secret@git.example/a/b', PLACEHOLDER.source],
      ['that names nobody, without a remote', undefined, PLACEHOLDER.source],
    ];
    for (const [title, origin, expected] of rows) {
      it(`${title}, and a note says so`, () => {
        const { target, problems, notes } = read(withoutSource, true, origin);
        expect(target.source).to.equal(expected);
        expect(problems).to.deep.equal([]);
        expect(notes.join())
          .to.match(/^SOURCE is not set/)
          .and.not.to.include('secret');
      });
    }
  });
});
