import { readFileSync } from 'node:fs';
import { expect } from 'chai';

const read = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8');

describe('the versions of Node.js', () => {
  it('are the same wherever the least one is stated', () => {
    const [, least = ''] = /"node": ">=(.+)"/.exec(read('package.json')) ?? [];
    const [major = ''] = least.split('.');
    expect(read('.nvmrc').trim()).to.equal(least);
    expect(read('hack/build.mjs')).to.include(`target: 'node${least}'`);
    expect(read('package.json')).to.include(`"@types/node": "^${major}.`);
    for (const page of ['CONTRIBUTING.md', 'docs/support.md']) expect(read(page), page).to.include(`${least} `);
  });

  it('are the same in the image and in the tests for it (npm run test:node24)', () => {
    const [, version] = /with Node\.js ([\d.]+),/.exec(read('Dockerfile')) ?? [];
    expect(read('package.json')).to.include(`--package node@${version} `);
  });

  it('find in the image what hack/build.mjs imports', () => {
    const imported = [...read('hack/build.mjs').matchAll(/from '\.\/(.+)'/g)].map(([, name = '']) => `hack/${name}`);
    for (const file of ['Dockerfile', '.dockerignore'])
      for (const name of imported) expect(read(file)).to.include(name);
  });
});
