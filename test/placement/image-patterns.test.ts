import { expect } from 'chai';
import { loadConfig } from '../../src/config/load.ts';
import { toSettings } from '../../src/config/settings.ts';
import { createNameMatcher } from '../../src/placement/image-patterns.ts';
import { answerLocally } from '../../src/placement/images.ts';

describe("a pattern of images' names", () => {
  const rows: [pattern: string, name: string, matches: boolean][] = [
    ['registry.example.com/*', 'registry.example.com/team/app', true],
    ['Registry.Example.com:5000/*', 'registry.example.com:5000/team/app', true],
    ['*.Example.com/team/*', 'registry.example.com/team/app', true],
    ['*', 'registry.example.com/team/app', true],
    ['index.docker.io/library/*', 'docker.io/library/nginx', true],
    ['Registry-1.Docker.io/library/*', 'docker.io/library/nginx', true],
    ['docker.io/library/*', 'registry-1.docker.io/library/nginx', true],
    ['registry-1.docker.io/library/*', 'registry-1.docker.io/library/nginx', true],
    ['docker.io/library/*', 'quay.io/library/nginx', false],
    ['index.docker.io/library/*', 'xindex.docker.io/library/nginx', false],
    ['registry.example.com/Team/*', 'registry.example.com/team/app', false],
  ];
  for (const [pattern, name, matches] of rows)
    it(`${pattern} ${matches ? 'means' : 'does not mean'} ${name}`, () =>
      expect(createNameMatcher([pattern])(name)).to.equal(matches));

  it('is read alike in overrides, whose tags keep their case', () => {
    const patterns = ['Registry.Example.com/team/*:Legacy', 'index.docker.io/library/nginx'];
    const overrides = patterns.map((pattern, index) => ({ pattern, architectures: [['arm64'], ['s390x']][index] }));
    const { config } = loadConfig({ environment: {}, flags: { 'images.overrides': JSON.stringify(overrides) } });
    const answer = (...names: string[]) =>
      answerLocally({ image: names[0] ?? '', pullPolicy: '' }, names, toSettings(config));
    expect(answer('registry.example.com/team/app:Legacy')).to.deep.equal(['arm64']);
    expect(answer('registry.example.com/team/app:legacy')).to.equal(undefined);
    expect(answer('nginx', 'docker.io/library/nginx')).to.deep.equal(['s390x']);
  });
});
