import { expect } from 'chai';
import { createRegistryLabels } from '../../src/observability/bounded-labels.ts';

describe('the labels of registries', () => {
  let time: number;
  let forgotten: string[];
  const create = () =>
    createRegistryLabels({ most: 3, idleMs: 1_000, now: () => time, onForgotten: (host) => forgotten.push(host) });
  beforeEach(() => {
    time = 5_000;
    forgotten = [];
  });

  it('are the hosts, and one for those that are too many', () => {
    const { labelOf } = create();
    expect(['a', 'b', 'c', 'd', 'a'].map((host) => labelOf(host, true))).to.deep.equal(['a', 'b', 'c', 'other', 'a']);
    expect(forgotten).to.deep.equal([]);
  });

  it('are always the configured hosts, which do not count', () => {
    const { labelOf, configure } = create();
    for (const host of ['a', 'b', 'c']) labelOf(host, true);
    configure(['c', 'd']);
    expect(['c', 'd', 'e', 'f'].map((host) => labelOf(host, true))).to.deep.equal(['c', 'd', 'e', 'other']);
    expect(forgotten).to.deep.equal([]);
  });

  it('go from names that never answered to a host that answers, and not the other way round', () => {
    const { labelOf } = create();
    for (let index = 0; index < 500; index += 1) labelOf(`invented${index}`, false);
    expect(['a', 'b', 'c'].map((host) => labelOf(host, true))).to.deep.equal(['a', 'b', 'c']);
    expect(forgotten).to.deep.equal(['invented0', 'invented1', 'invented2']);
    for (let index = 0; index < 500; index += 1) expect(labelOf(`more${index}`, false)).to.equal('other');
    expect(labelOf('a', false)).to.equal('a');
    expect(labelOf('more', true)).to.equal('other');
    expect(forgotten).to.have.length(3);
  });

  it('go from a host that was not asked for a while to the next one', () => {
    const { labelOf } = create();
    for (const host of ['a', 'b', 'c']) labelOf(host, true);
    time += 999;
    labelOf('a', false);
    expect(labelOf('d', true)).to.equal('other');
    time += 1;
    expect(labelOf('d', false)).to.equal('d');
    expect(labelOf('a', true)).to.equal('a');
    expect(forgotten).to.deep.equal(['b']);
  });
});
