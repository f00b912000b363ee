import { expect } from 'chai';
import { createLine } from '../../../src/controllers/daemonset/rollout.ts';

const nothing = () => false;

function lineOf(...keys: readonly string[]) {
  const line = createLine((namespace) => namespace.startsWith('kube-'));
  for (const key of keys) line.add(key);
  return line;
}

function order(line: ReturnType<typeof lineOf>, isStopped: (namespace: string) => boolean = nothing): string[] {
  const found: string[] = [];
  for (let key = line.first(isStopped); key !== undefined; key = line.first(isStopped)) {
    found.push(key);
    line.take(key);
  }
  return found;
}

describe('the line of DaemonSets that wait to roll', () => {
  it('has those of the system first, and else goes by the turns of namespaces', () => {
    const line = lineOf('a/1', 'a/2', 'kube-x/1', 'b/1', 'kube-x/2', 'a/3', 'b/2', 'a/1');
    expect(order(line)).to.deep.equal(['kube-x/1', 'kube-x/2', 'a/1', 'b/1', 'a/2', 'b/2', 'a/3']);
  });

  it('passes over namespaces that are stopped', () =>
    expect(order(lineOf('a/1', 'kube-x/1', 'b/1'), (namespace) => namespace !== 'b')).to.deep.equal(['b/1']));
});
