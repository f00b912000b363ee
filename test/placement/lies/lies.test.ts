import { expect } from 'chai';
import { createLies, readShowing, type Showing, writeShowing } from '../../../src/placement/lies/lies.ts';
import { digest } from '../objects.ts';

const shown = (namespace: string, more: Partial<Showing> = {}): Showing => ({
  ...{ digest: digest('app'), platform: 'linux/arm64', namespace, image: `r.test/app@${digest('app')}`, node: 'n1' },
  ...{ atMs: 1_000 },
  ...more,
});
const APP = digest('app');

describe('what pods have shown of images', () => {
  it('counts for their namespace', () => {
    const lies = createLies();
    expect(lies.add(shown('a'))).to.equal(true);
    expect(lies.lyingFor('a', APP)).to.deep.equal(['linux/arm64']);
    expect(lies.lyingFor('b', APP)).to.deep.equal([]);
    expect(lies.lyingFor('a', digest('next')), 'another digest').to.deep.equal([]);
  });

  it('counts for all once the pods of two namespaces have shown it', () => {
    const lies = createLies();
    lies.add(shown('a'));
    lies.add(shown('a', { node: 'n2', atMs: 2_000 }));
    expect(lies.lyingFor('c', APP), 'two pods of one namespace').to.deep.equal([]);
    lies.add(shown('b', { platform: 'linux/amd64' }));
    expect(lies.lyingFor('c', APP), 'each shows another platform').to.deep.equal([]);
    lies.add(shown('b'));
    expect(lies.lyingFor('c', APP)).to.deep.equal(['linux/arm64']);
    expect(lies.add(shown('c')), 'a third one changes nothing').to.equal(false);
  });

  it('is reported when it changes, and not when it is known', () => {
    const lies = createLies();
    let changes = 0;
    lies.onChange(() => changes++);
    lies.add(shown('a'));
    expect(lies.add(shown('a', { atMs: 9_000, node: 'n9' }))).to.equal(false);
    lies.clear();
    lies.clear();
    expect([changes, lies.count(), lies.all().length]).to.deep.equal([2, 0, 0]);
  });

  it('is counted by digest and platform', () => {
    const lies = createLies();
    for (const namespace of ['a', 'b']) lies.add(shown(namespace));
    lies.add(shown('a', { platform: 'linux/s390x' }));
    lies.add(shown('a', { digest: digest('other') }));
    expect(lies.count()).to.equal(3);
    expect(lies.of(APP).map(({ namespace }) => namespace)).to.deep.equal(['a', 'b', 'a']);
  });

  const flood = (lies: ReturnType<typeof createLies>, namespace: string, count: number) => {
    for (let index = 0; index < count; index += 1) {
      lies.add(shown(namespace, { digest: digest(`${namespace}-${index}`), atMs: 10_000 + index }));
    }
  };
  const bytesOf = (all: readonly Showing[]) => Buffer.byteLength(JSON.stringify(all.map(writeShowing)));

  it('is bounded for a namespace that shows digests without end, which loses its own oldest ones', () => {
    const lies = createLies();
    lies.add(shown('victim'));
    flood(lies, 'tenant', 5_000);
    expect(lies.lyingFor('victim', APP)).to.deep.equal(['linux/arm64']);
    expect(bytesOf(lies.all())).to.be.below(20 * 1024);
    expect(lies.lyingFor('tenant', digest('tenant-4999'))).to.deep.equal(['linux/arm64']);
    expect(lies.lyingFor('tenant', digest('tenant-0'))).to.deep.equal([]);
  });

  it('is bounded in all, and the namespace with the most bytes loses', () => {
    const lies = createLies();
    lies.add(shown('victim'));
    for (let tenant = 0; tenant < 40; tenant += 1) flood(lies, `tenant-${tenant}`, 60);
    expect(lies.lyingFor('victim', APP)).to.deep.equal(['linux/arm64']);
    expect(bytesOf(lies.all())).to.be.below(300 * 1024);
  });
});

describe('an entry of a file about an image', () => {
  it('is read as it was written', () => {
    const [key, value] = writeShowing(shown('a'));
    expect(readShowing(key, JSON.parse(JSON.stringify(value)), 5_000)).to.deep.equal(shown('a'));
  });

  const [key] = writeShowing(shown('a'));
  const value = { image: 'r.test/app', node: 'n1', atMs: 1 };
  const rows: readonly (readonly [what: string, key: string, value: unknown])[] = [
    ['no object', key, 'text'],
    ['no digest', key.replace('sha256:', 'sha1:'), value],
    ['an unknown architecture', key.replace('arm64', 'toaster'), value],
    ['another name of an architecture', key.replace('arm64', 'aarch64'), value],
    ['a strange namespace', key.replace(/a$/, 'A/..'), value],
    ['a strange node', key, { ...value, node: 'n1\n' }],
    ['no time', key, { ...value, atMs: '1' }],
    ['a fourth part', `${key} b`, value],
  ];
  for (const [what, strange, entry] of rows) {
    it(`is left out with ${what}`, () => {
      expect(readShowing(strange, entry, 5_000)).to.equal(undefined);
    });
  }

  it('was not written in the future', () => {
    expect(readShowing(key, { ...value, atMs: 9_000 }, 5_000)?.atMs).to.equal(5_000);
  });
});
