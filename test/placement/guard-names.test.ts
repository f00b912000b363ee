import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { ARCHITECTURES } from '../../src/kit/platform.ts';

describe('the architectures that the guard policies accept', () => {
  for (const kind of ['pods', 'daemonsets']) {
    it(`${kind}: all that can be configured or stated`, async () => {
      const policy = new URL(`../../manifests/kustomize/components/${kind}/policy.yaml`, import.meta.url);
      const [, names = ''] =
        /name: architectures\n +expression: >-\n +'\^\((.*)\)\$'/.exec(await readFile(policy, 'utf8')) ?? [];
      expect(names.split('|').sort()).to.deep.equal([...ARCHITECTURES].sort());
    });
  }
});
