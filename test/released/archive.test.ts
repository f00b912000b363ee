import { gunzipSync } from 'node:zlib';
import { expect } from 'chai';
import { archive } from '../../hack/executables/archive.ts';

describe('an archive of a release', () => {
  const entry = (name: string) => ({ name, bytes: Buffer.from('x'), mode: 0o644 });

  it('has names of up to 100 bytes', () => {
    const name = 'n'.repeat(100);
    expect(gunzipSync(archive([entry(name)])).toString('latin1', 0, 101)).to.equal(`${name}0`);
  });

  it('is refused if a name does not fit, instead of cutting it', () => {
    expect(() => archive([entry(`${'n'.repeat(99)}ö`)])).to.throw('takes more than 100 bytes');
  });
});
