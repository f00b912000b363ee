import { expect } from 'chai';
import { createProgress } from '../../src/cli/progress.ts';
import { systemClock } from '../../src/kit/clock.ts';
import { productForEach } from '../support/product.ts';

function surroundings(isTerminal: boolean) {
  const shown: string[] = [];
  const time = { now: 0 };
  const show = (line: string) => void shown.push(line);
  const clock = { ...systemClock, monotonic: () => time.now };
  return { shown, time, progress: createProgress({ clock, note: show, status: isTerminal ? show : undefined }) };
}

describe('the progress of long work', () => {
  it('is a bar on a terminal, which is removed at the end', () => {
    const { shown, time, progress } = surroundings(true);
    progress.show('images', 5, 20);
    progress.show('images', 6, 20);
    time.now += 100;
    progress.show('images', 20, 20);
    progress.end();
    expect(shown).to.deep.equal(['images [#####...............] 5/20', 'images [####################] 20/20', '']);
  });

  it('counts where the total is not known', () => {
    const { shown, progress } = surroundings(true);
    progress.show('pods', 500);
    expect(shown).to.deep.equal(['pods 500']);
  });

  it('is a line every few seconds elsewhere, and nothing for short work', () => {
    const { shown, time, progress } = surroundings(false);
    for (; time.now < 12_000; time.now += 1_000) progress.show('images', time.now / 1_000, 100);
    progress.end();
    expect(shown).to.deep.equal(['images: 5 of 100', 'images: 10 of 100']);
  });

  it('says at once for whom it waits, and again every few seconds', () => {
    const { shown, time, progress } = surroundings(false);
    progress.wait('r.example', 'waiting for r.example: 0 of 3');
    progress.wait('r.example', 'waiting for r.example: 1 of 3');
    progress.wait('s.example', 'waiting for s.example: 1 of 3');
    time.now += 5_000;
    progress.wait('r.example', 'waiting for r.example: 2 of 3');
    expect(shown).to.deep.equal([
      'waiting for r.example: 0 of 3',
      'waiting for s.example: 1 of 3',
      'waiting for r.example: 2 of 3',
    ]);
  });

  it('shows for whom it waits in place of the bar', () => {
    const { shown, time, progress } = surroundings(true);
    progress.show('images', 5, 20);
    time.now += 100;
    progress.wait('r.example', 'waiting for r.example: 5 of 20');
    progress.end();
    expect(shown).to.deep.equal(['images [#####...............] 5/20', 'waiting for r.example: 5 of 20', '']);
  });
});

describe('the progress of status', () => {
  const product = productForEach();

  it('says at a terminal whom it asks', async () => {
    const shown: string[] = [];
    await product.command(['status'], { shown });
    const lines = shown.filter((line) => !line.startsWith('connecting'));
    expect(lines).to.include.ordered.members(['asking the cluster …', '']);
  });
});
