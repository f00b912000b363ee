import { expect } from 'chai';
import { createCircuits } from '../../src/oci/circuit.ts';
import { ImageError, type ImageErrorCode } from '../../src/oci/errors.ts';

describe('the circuit of a host', () => {
  let time: number;
  const circuits = () => createCircuits({ now: () => time, random: () => 0.5 });
  const error = (code: ImageErrorCode) => new ImageError(`it was ${code}`, { code, temporary: true, endpoint: 'a' });
  beforeEach(() => {
    time = 1000;
  });

  it('opens after five failures in a row, for two seconds, and touches no other host', () => {
    const { settled, refusal, isHealthy } = circuits();
    for (let count = 0; count < 5; count += 1) {
      expect(refusal('a'), `after ${count}`).to.equal(undefined);
      settled('a', error(count % 2 === 0 ? 'timeout' : 'unavailable'));
    }
    expect(refusal('a')).to.include({ code: 'timeout', message: 'it was timeout', retryAfterMs: 2000, endpoint: 'a' });
    expect(refusal('b')).to.equal(undefined);
    expect(isHealthy('a')).to.equal(false);
  });

  it('lets one try at a time when it is due, and closes with any answer', () => {
    const { settled, open, refusal, isHealthy } = circuits();
    for (let count = 0; count < 5; count += 1) settled('a', error('unavailable'));
    expect(open('a')).to.include({ code: 'unavailable', retryAfterMs: 2000 });
    time += 2000;
    // Looking is not trying.
    expect(open('a')).to.equal(undefined);
    expect(refusal('a')).to.equal(undefined);
    expect(refusal('a')).to.include({ code: 'unavailable' });
    expect(open('a')).to.include({ code: 'unavailable' });
    settled('a', error('not-found'));
    expect(isHealthy('a')).to.equal(true);
    for (let count = 0; count < 10; count += 1) expect(refusal('a')).to.equal(undefined);
  });

  it('stays open longer with each try that fails, up to half a minute', () => {
    const { settled, refusal } = circuits();
    for (let count = 0; count < 4; count += 1) settled('a', error('timeout'));
    const waits = [0, 1, 2, 3, 4, 5].map(() => {
      settled('a', error('timeout'));
      const wait = refusal('a')?.retryAfterMs ?? 0;
      time += wait;
      expect(refusal('a')).to.equal(undefined);
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
      const { settled, refusal } = circuits();
      for (let count = 0; count < 20; count += 1) settled('a', code === undefined ? undefined : error(code));
      expect(refusal('a') !== undefined).to.equal(opens);
    });
  }

  it('is not healthy before it has answered', () => {
    const { settled, isHealthy } = circuits();
    expect(isHealthy('a')).to.equal(false);
    settled('a', error('forbidden-address'));
    expect(isHealthy('a')).to.equal(false);
    settled('a', undefined);
    expect(isHealthy('a')).to.equal(true);
  });
});
