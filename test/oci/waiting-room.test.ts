import { expect } from 'chai';
import { createWaitingRoom } from '../../src/oci/waiting-room.ts';

describe('the room for lookups that wait', () => {
  const keys = (count: number, length: number) => Array.from({ length: count }, (_, at) => `${at}`.padEnd(length, 'x'));

  it('is bounded in bytes for one namespace, and others have theirs', () => {
    const room = createWaitingRoom();
    const entered = keys(20_000, 800).filter((key) => room.enter('flood', key)).length;
    expect(entered).to.be.within(2_000, 3_000);
    expect(room.enter('other', 'app')).to.equal(true);
  });

  it('is enough for 10,000 ordinary images of one namespace', () => {
    const room = createWaitingRoom();
    for (const key of keys(10_000, 100)) expect(room.enter('shop', key)).to.equal(true);
  });

  it('is there again for what comes after those that have left', () => {
    const room = createWaitingRoom();
    for (let round = 0; round < 5; round += 1) {
      for (const key of keys(2_000, 800)) expect(room.enter('flood', key)).to.equal(true);
      for (const key of keys(2_000, 800)) room.leave('flood', key);
    }
  });
});
