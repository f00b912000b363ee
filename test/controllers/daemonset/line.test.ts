import { expect } from 'chai';
import { createLine } from '../../../src/controllers/daemonset/line.ts';

const nothing = () => false;

/** Adds DaemonSets; one with `!` takes the pods of many nodes down at once. */
function lineOf(...keys: readonly string[]) {
  const line = createLine((namespace) => namespace.startsWith('kube-'));
  for (const key of keys) line.add(key.replace('!', ''), key.endsWith('!'));
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
  it('has those of the system first, and one pod at a time before many, in the turns of namespaces', () => {
    const line = lineOf('a/1!', 'a/2', 'kube-x/1!', 'b/1', 'kube-x/2', 'a/3', 'b/2!');
    expect(order(line)).to.deep.equal(['kube-x/2', 'kube-x/1', 'a/2', 'b/1', 'a/3', 'b/2', 'a/1']);
  });

  it('passes over namespaces that are stopped', () => {
    expect(order(lineOf('a/1', 'kube-x/1', 'b/1'), (namespace) => namespace !== 'b')).to.deep.equal(['b/1']);
  });

  it('lets nobody be overtaken for ever', () => {
    const line = lineOf('a/many!');
    const found: string[] = [];
    for (let turn = 0; turn < 25; turn++) {
      line.add(`b/${turn}`, false);
      const key = line.first(nothing) ?? '';
      found.push(key);
      line.take(key);
    }
    expect(found.indexOf('a/many')).to.equal(20);
  });
});
