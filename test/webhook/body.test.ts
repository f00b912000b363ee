import { PassThrough } from 'node:stream';
import { expect } from 'chai';
import { type BodyLimits, createBodyReader, RequestError } from '../../src/webhook/body.ts';

const LIMITS: BodyLimits = { size: 1000, total: 2500, large: 100, time: 60_000, tokens: 50, depth: 5 };

/** A request whose whole body has arrived. */
const sent = (body: string) => Object.assign(new PassThrough().end(body), { headers: {} });
const body = (name: string, length: number) => JSON.stringify({ name, text: 'x'.repeat(length) });

describe('the bodies of requests', () => {
  it('are parsed one after the other if they are large, with small ones in between', async () => {
    const read = createBodyReader(LIMITS);
    const used: unknown[] = [];
    const use = ({ name }: { readonly name?: unknown }) => used.push(name);
    const requests = ['large 1', 'large 2', 'large 3'].map((name) => read(sent(body(name, 500)), use));
    // The small one arrives while the first large one is parsed.
    const small = new Promise(setImmediate).then(() => read(sent(body('small', 1)), use));
    await Promise.all([...requests, small]);
    expect(used).to.have.members(['large 1', 'large 2', 'large 3', 'small']);
    expect(used.indexOf('small')).to.be.below(used.indexOf('large 3'));
    expect(used.filter((name) => name !== 'small')).to.deep.equal(['large 1', 'large 2', 'large 3']);
  });

  it('count against the limit until they are parsed or refused', async () => {
    const read = createBodyReader(LIMITS);
    const outcome = (text: string) =>
      read(sent(text), () => 'used').catch((error: unknown) => (error instanceof RequestError ? error.status : error));
    const large = () => outcome(body('x', 900));
    expect(await Promise.all([large(), large(), large()])).to.deep.equal(['used', 'used', 503]);
    const mixed = [outcome('{'.padEnd(990)), outcome(`{"a":[${'1,'.repeat(60)}`), large()];
    expect(await Promise.all(mixed)).to.deep.equal([400, 413, 'used']);
    expect(await Promise.all([large(), large()])).to.deep.equal(['used', 'used']);
  });

  it('no longer count if their use fails', async () => {
    const read = createBodyReader(LIMITS);
    const fail = () => {
      throw new TypeError('a defect');
    };
    for (let times = 0; times < 5; times += 1) {
      const failure = await read(sent(body('x', 900)), fail).catch((error: unknown) => error);
      expect(failure).to.be.instanceOf(TypeError);
    }
    expect(await read(sent(body('x', 900)), () => 'used')).to.equal('used');
  });
});
