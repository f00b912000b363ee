import { expect } from 'chai';
import { parseConfig } from '../../src/config/config-file.ts';
import { allKeys } from '../../src/config/keys.ts';
import { loadConfig } from '../../src/config/load.ts';
import { compareConfig, concernsRegistries } from '../../src/config/reload.ts';
import type { Config } from '../../src/config/schema.ts';

const load = (file: string, flags: Record<string, string> = {}): Config =>
  loadConfig({ file: parseConfig('config.yaml', file), environment: {}, flags }).config;

describe('a configuration that is read again', () => {
  const rows: [before: string, after: string, applies: readonly string[], needsRestart: readonly string[]][] = [
    ['', '', [], []],
    ['# a comment', 'workers: 16', [], []],
    ['', 'policies: [{name: a}]', ['policies'], []],
    ['policies: [{name: a}, {name: b}]', 'policies: [{name: b}, {name: a}]', ['policies'], []],
    [
      'registries: {mirrors: {docker.io: {endpoints: [a]}, quay.io: {endpoints: [b]}}}',
      'registries: {mirrors: {quay.io: {endpoints: [b]}, docker.io: {endpoints: [a]}}}',
      [],
      [],
    ],
    ['', 'architectures: {schedulable: [arm64]}', ['architectures.schedulable'], []],
    ['', 'pods: {daemonSets: ignore}', ['pods.daemonSets'], []],
    ['', 'images: {unresolvable: wait, cache: {tagTtl: 1m}}', ['images.unresolvable', 'images.cache.tagTtl'], []],
    ['', 'images: {cache: {maxEntries: 100}}', [], ['images.cache.maxEntries']],
    ['', 'registries: {private: [a]}', ['registries.private'], []],
    ['', 'credentials: {pullSecrets: false}', ['credentials.pullSecrets'], []],
    ['', 'log: {level: debug, format: pretty}', ['log.level'], ['log.format']],
    ['', 'taints: {key: a}\nimages: {unresolvable: wait}', ['images.unresolvable'], ['taints.key']],
    ['workers: 3', '', [], ['workers']],
    ['', 'systemNamespaces: [a]\nloops: [pods]', [], ['systemNamespaces', 'loops']],
    ['', 'placement: {noCommonArchitecture: release}', [], ['placement.noCommonArchitecture']],
  ];
  for (const [before, after, applies, needsRestart] of rows) {
    const what = [
      ...applies.map((key) => `applies ${key}`),
      ...needsRestart.map((key) => `wants a restart for ${key}`),
    ];
    it(`${what.join(' and ') || 'changes nothing'} where ${before || 'nothing'} becomes ${after || 'nothing'}`, () => {
      const reload = compareConfig(load(before), load(after));
      expect(reload.applies).to.deep.equal(applies);
      expect(reload.needsRestart).to.deep.equal(needsRestart);
    });
  }

  it('applies except for what needs a restart, which keeps its old value', () => {
    const before = load('taints: {key: old}\nimages: {cache: {maxEntries: 100}}');
    const after = load('taints: {key: new}\nimages: {cache: {maxEntries: 200, tagTtl: 1m}}\npolicies: [{name: a}]');
    const { config } = compareConfig(before, after);
    expect(config).to.deep.equal({
      ...after,
      taints: before.taints,
      images: { ...after.images, cache: { ...after.images.cache, maxEntries: 100 } },
    });
  });

  it('needs the restart until it happens, or the change is reverted', () => {
    const before = load('');
    const first = compareConfig(before, load('workers: 3'));
    expect(compareConfig(first.config, load('workers: 3\nlog: {level: debug}')).needsRestart).to.deep.equal([
      'workers',
    ]);
    expect(compareConfig(first.config, load('')).needsRestart).to.deep.equal([]);
  });

  it('changes no key that a flag sets', () => {
    const flags = { 'images.unresolvable': 'wait' };
    const { applies } = compareConfig(load('', flags), load('images: {unresolvable: open}', flags));
    expect(applies).to.deep.equal([]);
  });

  it('changes which registries are asked by the keys of registries, credentials and the cache', () => {
    const keys = allKeys().map(({ path }) => path);
    const groups = ['registries', 'credentials', 'images.cache'];
    expect(keys.filter(concernsRegistries)).to.deep.equal(
      keys.filter((key) => groups.some((group) => key.startsWith(`${group}.`))),
    );
  });
});
