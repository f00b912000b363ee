import { expect } from 'chai';
import { readRules } from '../../src/placement/nodes/label-rules.ts';
import { decideLabels } from '../../src/placement/nodes/labels.ts';

// k8s-auto-labeller (2020) looked at keys alone: a node said to be without the hardware was labelled as having it.
describe('a label with the value false does not count', () => {
  const { rules } = readRules([{ label: 'a/x', file: 'a/x', text: 'usb\npci' }]);

  it('where it is the only one', () => {
    expect(decideLabels({ usb: 'false' }, [], rules).added).to.deep.equal([]);
    expect(decideLabels({ usb: 'false', 'a/x': 'true' }, ['a/x'], rules).removed).to.deep.equal(['a/x']);
  });

  it('beside one that does', () => {
    expect(decideLabels({ usb: 'false', pci: 'true' }, [], rules).added).to.deep.equal(['a/x']);
  });
});
