import { expect } from 'chai';
import { ImageError, type ImageErrorCode } from '../../../src/oci/errors.ts';
import { createCircuits } from '../../../src/oci/lookup/circuit.ts';

const ALL = ['one', 'two', 'three'];

describe('the circuit of a host', () => {
  let time: number;
  const circuits = () => createCircuits({ now: () => time, random: () => 0.5 });
  const error = (code: ImageErrorCode) => new ImageError(`it was ${code}`, { code, temporary: true, endpoint: 'a' });
  beforeEach(() => {
    time = 1000;
  });

  it('opens after five failures in a row, for two seconds, and affects no other host', () => {
    const { record, refusal, isHealthy } = circuits();
    for (let count = 0; count < 5; count += 1) {
      expect(refusal('a', ALL), `after ${count}`).to.equal(undefined);
      record('a', ALL, error(count % 2 === 0 ? 'timeout' : 'unavailable'));
    }
    expect(refusal('a', ALL)).to.include({
      code: 'timeout',
      message: 'it was timeout',
      retryAfterMs: 2000,
      endpoint: 'a',
    });
    expect(refusal('b', ALL)).to.equal(undefined);
    expect(isHealthy('a')).to.equal(false);
  });

  it('allows one try at a time when it is due, and closes with any answer', () => {
    const { record, open, refusal, isHealthy } = circuits();
    for (let count = 0; count < 5; count += 1) record('a', ALL, error('unavailable'));
    expect(open('a', ALL)).to.include({ code: 'unavailable', retryAfterMs: 2000 });
    time += 2000;
    // `open` does not count as a try.
    expect(open('a', ALL)).to.equal(undefined);
    expect(refusal('a', ALL)).to.equal(undefined);
    expect(refusal('a', ALL)).to.include({ code: 'unavailable' });
    expect(open('a', ALL)).to.include({ code: 'unavailable' });
    record('a', ALL, error('not-found'));
    expect(isHealthy('a')).to.equal(true);
    for (let count = 0; count < 10; count += 1) expect(refusal('a', ALL)).to.equal(undefined);
  });

  it('stays open longer with each try that fails, up to half a minute', () => {
    const { record, refusal } = circuits();
    for (let count = 0; count < 4; count += 1) record('a', ALL, error('timeout'));
    const waits = [0, 1, 2, 3, 4, 5].map(() => {
      record('a', ALL, error('timeout'));
      const wait = refusal('a', ALL)?.retryAfterMs ?? 0;
      time += wait;
      expect(refusal('a', ALL)).to.equal(undefined);
      return wait;
    });
    expect(waits).to.deep.equal([2000, 4000, 8000, 16_000, 30_000, 30_000]);
  });

  const rows: [code: ImageErrorCode | undefined, opens: boolean][] = [
    [undefined, false],
    ['denied', false],
    ['not-found', false],
    ['unsupported', false],
    ['malformed', false],
    ['too-large', false],
    ['rate-limited', false],
    ['forbidden-address', false],
    ['unavailable', true],
    ['timeout', true],
  ];
  for (const [code, opens] of rows) {
    it(`${opens ? 'opens' : 'does not open'} by ${code ?? 'success'}`, () => {
      const { record, refusal } = circuits();
      for (let count = 0; count < 20; count += 1) record('a', ALL, code === undefined ? undefined : error(code));
      expect(refusal('a', ALL) !== undefined).to.equal(opens);
    });
  }

  it('is not healthy before the host has answered', () => {
    const { record, isHealthy } = circuits();
    expect(isHealthy('a')).to.equal(false);
    record('a', ALL, error('forbidden-address'));
    expect(isHealthy('a')).to.equal(false);
    record('a', ALL, undefined);
    expect(isHealthy('a')).to.equal(true);
  });

  it('opens for a namespace whose paths fail, and for no other one', () => {
    const { record, refusal } = circuits();
    for (let count = 0; count < 100; count += 1) record('a', ['flood'], error('timeout'));
    expect(refusal('a', ['flood'])).to.include({ code: 'timeout' });
    expect(refusal('a', ['bystander'])).to.equal(undefined);
    expect(refusal('a', ['flood', 'bystander']), 'a lookup for both').to.equal(undefined);
  });

  it('opens for everybody when three namespaces have met failures, and closes for everybody with one answer', () => {
    const { record, refusal } = circuits();
    for (const name of ['one', 'two', 'one', 'two']) record('a', [name], error('unavailable'));
    expect(refusal('a', ['one'])).to.equal(undefined);
    record('a', ['three'], error('unavailable'));
    for (const name of ['one', 'four']) expect(refusal('a', [name]), name).to.include({ code: 'unavailable' });
    record('a', ['four'], undefined);
    for (const name of ['one', 'four']) expect(refusal('a', [name]), name).to.equal(undefined);
  });
});
