import { Socket } from 'node:net';
import { expect } from 'chai';
import { createConnections } from '../../../src/kit/network/connections.ts';

/** Connections of clients: `a1` is the first one of the address `a`. `!` proves, `-` ends one; `later` is ten seconds later. */
function left(steps: string, limits: { all: number; unproven: number }): string {
  let time = 0;
  const connections = createConnections(limits, () => time);
  const sockets = new Map<string, Socket>();
  for (const step of steps.split(' ')) {
    const name = step.replace(/[!-]/g, '');
    const [address = '', port = 0] = [name.slice(0, 1), Number(name.slice(1))];
    if (step === 'later') time += 10_000;
    else if (step.includes('!')) connections.prove(address, port);
    else if (step.includes('-')) sockets.get(name)?.emit('close');
    else {
      const socket = Object.defineProperties(new Socket(), {
        remoteAddress: { value: address },
        remotePort: { value: port },
      });
      sockets.set(name, socket);
      connections.add(socket);
    }
  }
  return [...sockets].flatMap(([name, { destroyed }]) => (destroyed ? [] : [name])).join(' ');
}

describe('the connections of a server', () => {
  const rows: [given: string, steps: string, expected: string][] = [
    ['few stay', 'a1 a2 b1', 'a1 a2 b1'],
    ['the oldest of many makes room', 'a1 a2 a3 a4', 'a2 a3 a4'],
    ['one address with many closes its own', 'b1 a1 a2 a3', 'b1 a2 a3'],
    ['many addresses with one each, which ask nothing: the oldest goes first', 'b1 c1 later a1 a2', 'c1 a1 a2'],
    ['an old one that proved itself is not the oldest', 'a1 !a1 b1 c1 later a2 a3', 'a1 c1 a2 a3'],
    ['all are new: one address with many closes its own', 'b1 c1 a1 a2', 'b1 c1 a2'],
    ['the one that proved to know the path stays', 'a1 !a1 a2 a3 a4 a5', 'a1 a3 a4 a5'],
    ['one that knows the path takes no place of those that do not', 'a1 !a1 a2 !a2 b1 b2 b3', 'a1 a2 b1 b2 b3'],
    ['one that has ended takes no place', 'a1 a2 a3 -a1 a4', 'a2 a3 a4'],
    ['one that has ended after it proved itself neither', 'a1 !a1 -a1 a1 a2 a3', 'a1 a2 a3'],
    ['many that know the path: others go first', 'a1 !a1 a2 !a2 a3 !a3 b1 a4 !a4 a5 !a5 a6 !a6', 'a1 a2 a3 a4 a5 a6'],
    ['too many that know it: the next is refused', 'a1 !a1 a2 !a2 a3 !a3 a4 !a4 a5 !a5 a6 !a6 a7', 'a1 a2 a3 a4 a5 a6'],
  ];
  for (const [given, steps, expected] of rows) {
    it(given, () => {
      // A Map keeps the last one of a name.
      expect(left(steps, { all: 6, unproven: 3 })).to.equal(expected);
    });
  }
});
