import { expect } from 'chai';
import { absentArchitectures, absentNote } from '../../src/config/absent.ts';
import { parseConfig } from '../../src/config/config-file.ts';
import { loadConfig } from '../../src/config/load.ts';

describe('configured architectures that no node has', () => {
  const CLUSTER = ['amd64', 'arm64'];
  const rows: [file: string, cluster: readonly string[], expected: readonly string[]][] = [
    ['', CLUSTER, []],
    ['', ['arm64'], []],
    ['architectures: {schedulable: [amd64, riscv64, s390x]}', CLUSTER, ['architectures.schedulable: riscv64,s390x']],
    ['architectures: {fallback: [ppc64le]}', CLUSTER, ['architectures.fallback: ppc64le']],
    ['architectures: {preferred: {s390x: 5, arm64: 5}}', CLUSTER, ['architectures.preferred: s390x']],
    ['architectures: {compatible: {s390x: [arm], arm64: [arm]}}', CLUSTER, ['architectures.compatible: s390x']],
    [
      'policies: [{name: a}, {name: b, schedulable: [arm], preferred: {arm: 5}, fallback: [arm]}]',
      CLUSTER,
      ['policies[1].schedulable: arm', 'policies[1].preferred: arm', 'policies[1].fallback: arm'],
    ],
    ['images: {overrides: [{pattern: a, architectures: [amd64, s390x]}]}', CLUSTER, []],
    ['images: {overrides: [{pattern: a, architectures: ["386"]}]}', CLUSTER, []],
    [
      'images: {overrides: [{pattern: a, architectures: [amd64]}, {pattern: b, architectures: [arm]}]}',
      CLUSTER,
      ['images.overrides[1].architectures: arm'],
    ],
    // Without a node there is nothing to compare with.
    ['architectures: {schedulable: [amd64]}', [], []],
  ];
  for (const [file, cluster, expected] of rows) {
    it(`${file || 'nothing'}, with nodes of ${cluster.join(', ') || 'none'}: ${expected.join('; ') || 'none'}`, () => {
      const { config } = loadConfig({ file: parseConfig('c.yaml', file), environment: {}, flags: {} });
      const found = absentArchitectures(config, cluster).map(({ key, architectures }) => `${key}: ${architectures}`);
      expect(found).to.deep.equal(expected);
    });
  }

  it('are listed with those of the nodes', () =>
    expect(absentNote({ key: 'a.b', architectures: ['arm', 's390x'] }, CLUSTER)).to.equal(
      'a.b names arm, s390x, which no node of the cluster has (nodes: amd64, arm64)',
    ));
});
