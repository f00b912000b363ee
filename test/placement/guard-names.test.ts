import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { policies } from '../../hack/manifests/policies.ts';

describe('the architectures that the guard policies accept', () => {
  it('are those of the program, generated from its list', async () => {
    const generated = await policies();
    expect(generated).to.have.length(6);
    for (const { file, content } of generated) expect(await readFile(file, 'utf8'), file.pathname).to.equal(content);
  });
});
