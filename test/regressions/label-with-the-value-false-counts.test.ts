import { expect } from 'chai';
import { readRules } from '../../src/placement/nodes/label-rules.ts';
import { decideLabels } from '../../src/placement/nodes/labels.ts';

// k8s-auto-labeller (2020) looked only at keys: a node that was labelled as lacking the hardware counted as having it.
describe('a label with the value false does not count', () => {
  const { rules } = readRules([{ label: 'a/x', file: 'a/x', text: 'usb\npci' }]);

  it('if it is the only one', () => {
    expect(decideLabels({ usb: 'false' }, [], rules).added).to.deep.equal([]);
    expect(decideLabels({ usb: 'false', 'a/x': 'true' }, ['a/x'], rules).removed).to.deep.equal(['a/x']);
  });

  it('beside one that counts', () => {
    expect(decideLabels({ usb: 'false', pci: 'true' }, [], rules).added).to.deep.equal(['a/x']);
  });
});
