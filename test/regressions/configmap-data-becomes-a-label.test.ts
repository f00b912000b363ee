import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { readLabelRules } from '../../src/app/label-rules/files.ts';
import { mount } from '../support/mounted.ts';

// k8s-auto-labeller (2020) read the folders behind a mounted ConfigMap as namespaces of labels: `..data/edgetpu`.
describe('the internal entries of a mounted ConfigMap do not become labels', () => {
  it('at either level, before and after it was swapped', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'archaware-labels-'));
    const labels = async () => {
      const { rules, problems } = await readLabelRules(directory);
      return [...rules.rules.map(({ label }) => label), ...rules.refused, ...problems];
    };
    try {
      for (const text of ['a', 'b']) {
        await mount(directory, { 'accelerators/edgetpu': text });
        expect(await labels()).to.deep.equal(['accelerators/edgetpu']);
      }
      await mount(directory, {});
      await mount(join(directory, 'accelerators'), { ncs2: 'a' });
      expect(await labels()).to.deep.equal(['accelerators/ncs2']);
    } finally {
      await rm(directory, { recursive: true });
    }
  });
});
