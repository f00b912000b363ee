import { expect } from 'chai';
import { connectionText, subjectOf } from '../../src/oci/sentences.ts';

describe('a sentence about a failed connection', () => {
  const request = (registry: string, url: string) => ({ registry, url: new URL(url) });
  const rows: readonly (readonly [registry: string, url: string, subject: string])[] = [
    ['r.example', 'https://r.example/v2/', 'r.example'],
    ['r.example:443', 'https://r.example:443/v2/', 'r.example:443'],
    ['r.example:80', 'http://r.example:80/v2/', 'r.example:80'],
    ['mirror.example/hub', 'https://mirror.example/v2/hub/', 'mirror.example/hub'],
    ['r.example', 'https://r.example:8443/token', 'r.example leads to r.example:8443, which'],
    ['docker.io', 'https://registry-1.docker.io/v2/', 'docker.io leads to registry-1.docker.io, which'],
  ];
  for (const [registry, url, subject] of rows) {
    it(`to ${url} for ${registry} begins with "${subject}"`, () =>
      expect(subjectOf(request(registry, url))).to.equal(subject));
  }

  it('never says of an address that the DNS lacks it', () => {
    for (const host of ['10.0.0.1:5000', '[fd00::1]']) {
      expect(connectionText('ENOTFOUND', request(host, `https://${host}/v2/`))).to.equal(
        `${host} could not be reached (ENOTFOUND)`,
      );
    }
  });
});
