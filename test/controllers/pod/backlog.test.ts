import { expect } from 'chai';
import { createBacklog } from '../../../src/controllers/pod/backlog.ts';
import type { ImageAnswer } from '../../../src/placement/images.ts';
import type { PodImage } from '../../../src/placement/objects/containers.ts';
import { failed } from '../../placement/objects.ts';
import { createHandClock } from '../hand-clock.ts';

const PENDING: ImageAnswer = { kind: 'pending' };
const KNOWN: ImageAnswer = { kind: 'known', platforms: [{ os: 'linux', architecture: 'amd64' }] };

function pods(imagesOf: (key: string) => readonly string[]) {
  const clock = createHandClock();
  const answers = new Map<string, ImageAnswer>();
  const asked: string[] = [];
  const backlog = createBacklog(clock, reconcile);
  function reconcile(key: string): void {
    const recall = ({ image }: PodImage) => answers.get(image) ?? PENDING;
    const ask = ({ image }: PodImage): ImageAnswer => {
      asked.push(image);
      return PENDING;
    };
    const answerOf = backlog.answers(key, recall, ask);
    for (const image of imagesOf(key)) answerOf({ image, pullPolicy: 'IfNotPresent' });
  }
  return { clock, answers, asked, backlog, reconcile };
}

describe('the images of bound pods', () => {
  it('are looked up at five a second, in the order of the pods', async () => {
    const { clock, asked, reconcile } = pods((key) => [key]);
    for (let pod = 0; pod < 20; pod++) reconcile(`p${pod}`);
    expect(asked).to.deep.equal([]);
    for (let step = 0; step < 10; step++) await clock.advance(200);
    expect(asked).to.deep.equal(['p0', 'p1', 'p2', 'p3', 'p4', 'p5', 'p6', 'p7', 'p8', 'p9']);
  });

  it('are looked up namespace by namespace, in turns', async () => {
    const { clock, asked, reconcile } = pods((key) => [key]);
    for (const key of ['flood/1', 'flood/2', 'flood/3', 'bystander/1']) reconcile(key);
    for (let step = 0; step < 4; step++) await clock.advance(200);
    expect(asked).to.deep.equal(['flood/1', 'bystander/1', 'flood/2', 'flood/3']);
  });

  it('count one by one: a pod of five images takes the time of five', async () => {
    const { clock, asked, reconcile } = pods((key) => (key === 'many' ? ['a', 'b', 'c', 'd', 'e'] : [key]));
    for (const key of ['many', 'next']) reconcile(key);
    await clock.advance(200);
    expect(asked).to.deep.equal(['a', 'b', 'c', 'd', 'e']);
    for (const ms of [200, 600]) await clock.advance(ms);
    expect(asked).to.deep.equal(['a', 'b', 'c', 'd', 'e']);
    await clock.advance(200);
    expect(asked).to.deep.equal(['a', 'b', 'c', 'd', 'e', 'next']);
  });

  it('are looked up only if they are not known, and again after a failure only when the retry is due', async () => {
    const { clock, asked, answers, reconcile } = pods(() => ['known', 'late', 'due']);
    answers.set('known', KNOWN).set('late', failed(1, 10_000)).set('due', failed(1, Number.POSITIVE_INFINITY));
    reconcile('p');
    await clock.advance(1_000);
    expect(asked).to.deep.equal(['due']);
  });

  for (const [when, end] of [
    ['after the end of the term', ({ backlog }: ReturnType<typeof pods>) => backlog.end()],
    ['for a pod that is gone', ({ backlog }: ReturnType<typeof pods>) => backlog.forget('p')],
  ] as const) {
    it(`are not looked up ${when}`, async () => {
      const world = pods((key) => [key]);
      world.reconcile('p');
      end(world);
      await world.clock.advance(1_000);
      expect(world.asked).to.deep.equal([]);
    });
  }
});
