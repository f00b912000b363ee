import { expect } from 'chai';
import { createDeadlines } from '../../src/webhook/deadlines.ts';
import { until } from '../oci/server.ts';

describe('deadlines with one timer', () => {
  it('are all called once, in order, except the cancelled ones', async () => {
    const deadlines = createDeadlines(10);
    const called: string[] = [];
    const add = (name: string) => deadlines.add(() => called.push(name));
    const cancels = ['one', 'two', 'three'].map(add);
    cancels[1]?.();
    await until(() => called.length === 2);
    add('four');
    await until(() => called.length === 3);
    expect(called).to.deep.equal(['one', 'three', 'four']);
  });
});
