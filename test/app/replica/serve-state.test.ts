import { expect } from 'chai';
import { countByArchitecture, outcomeOf } from '../../../src/app/replica/serve-state.ts';
import { node } from '../../placement/objects.ts';

describe('the gauges of nodes', () => {
  it('count by architecture, and all names that Go does not have together', () => {
    const names = ['amd64', 'x86_64', 'arm64', 'evil-1', 'evil-2', 'wasm-wasi', '', 'a b'];
    const nodes = names.map((architecture) => node({ architecture }));
    expect(countByArchitecture(nodes, () => true)).to.deep.equal({ amd64: 2, arm64: 1, other: 3, unknown: 2 });
    expect(countByArchitecture(nodes, ({ reportedArchitecture }) => reportedArchitecture === 'arm64')).to.deep.equal({
      arm64: 1,
    });
  });
});

describe('the gauge of pods', () => {
  it('counts as ignored only those that would need tolerations of their own', () => {
    const counted = (['ignored', 'namespace-excluded', 'daemon-pod', 'terminal', 'deleting', 'mirror'] as const).map(
      (reason) => outcomeOf({ kind: 'skip', reason }),
    );
    expect(counted).to.deep.equal(['ignored', 'ignored', undefined, undefined, undefined, undefined]);
  });
});
