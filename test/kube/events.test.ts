import { expect } from 'chai';
import type { ApiClient } from '../../src/kube/api-client.ts';
import { createEvents, type EventRecorder, type Occurrence } from '../../src/kube/events.ts';
import { at, type JsonObject, objects, text } from '../simulator/json.ts';
import { createSetClock, type Server, type SetClock, startServer } from './cluster.ts';

const MINUTE = 60_000;

describe('Events', () => {
  let server: Server;
  let clock: SetClock;
  let end: AbortController;
  let recorder: EventRecorder;
  let mayWrite: boolean;
  let errors: unknown[];
  let drops: number;
  let told: number[];
  let later: { ms: number; act: () => void }[];
  beforeEach(async () => {
    server = await startServer();
    [clock, end, mayWrite, errors] = [createSetClock(), new AbortController(), true, []];
    [drops, told, later] = [0, [], []];
    recorder = create(server.client);
  });
  afterEach(async () => {
    end.abort();
    await server.stop();
  });

  const create = (client: ApiClient) =>
    createEvents({
      client,
      instance: 'host-1',
      mayWrite: () => mayWrite,
      clock: {
        ...clock,
        after(ms, act) {
          const entry = { ms, act };
          later.push(entry);
          return () => void later.splice(later.indexOf(entry), 1);
        },
      },
      signal: end.signal,
      onError: (error) => void errors.push(error),
      onDrop: () => void drops++,
      onDropped: (count) => void told.push(count),
    });
  const about = (more: Partial<Occurrence> = {}): Occurrence => ({
    regarding: { apiVersion: 'v1', kind: 'Pod', namespace: 'default', name: 'p', uid: 'u' },
    type: 'Warning',
    reason: 'NoCommonArchitecture',
    action: 'Placing',
    note: 'nothing in common',
    ...more,
  });
  const emit = async (occurrence: Occurrence) => {
    recorder.emit(occurrence);
    await recorder.flush(new AbortController().signal);
  };
  const written = async (namespace = 'default'): Promise<readonly JsonObject[]> => {
    const { body } = await server.cluster.request('GET', `/apis/events.k8s.io/v1/namespaces/${namespace}/events`);
    return objects(at(body, 'items'));
  };
  const asked = () => server.asked('/events').map((line) => line.split(' ')[0]);

  it('have all fields that the API server requires', async () => {
    await emit(about());
    const [event, ...more] = await written();
    expect(more).to.deep.equal([]);
    expect(event).to.deep.include({
      type: 'Warning',
      reason: 'NoCommonArchitecture',
      action: 'Placing',
      note: 'nothing in common',
      reportingController: 'archaware-controller',
      reportingInstance: 'host-1',
      eventTime: '2030-01-01T00:00:00.000000Z',
    });
    expect(at(event, 'regarding')).to.deep.equal(about().regarding);
    expect(errors).to.deep.equal([]);
  });

  it('about objects without a namespace go to default', async () => {
    await emit(about({ regarding: { apiVersion: 'v1', kind: 'Node', name: 'n', uid: 'u' } }));
    expect((await written()).map(({ regarding }) => at(regarding, 'kind'))).to.deep.equal(['Node']);
  });

  it('are cut to 1,024 bytes, and escaped', async () => {
    await emit(about({ note: `\u0007${'ü'.repeat(2_000)}` }));
    const note = text((await written())[0]?.note);
    expect(note).to.match(/^\\u0007ü.*…$/);
    expect(Buffer.byteLength(note)).to.be.within(1_000, 1_024);
  });

  it('are new ones when they are repeated', async () => {
    for (let second = 0; second < 3; second++) {
      clock.now.wall += 1_000;
      await emit(about());
    }
    expect(asked()).to.deep.equal(['POST', 'POST', 'POST']);
    expect(await written()).to.have.lengthOf(3);
  });

  it('about different things are different ones', async () => {
    await emit(about());
    await emit(about({ note: 'something else' }));
    await emit(about({ reason: 'OpenPlacement' }));
    expect(await written()).to.have.lengthOf(3);
  });

  it('that are refused are reported, and do not stop the others', async () => {
    server.cluster.faults.inject({ method: 'POST', path: /events/, times: 1, status: 403 });
    await emit(about());
    await emit(about({ note: 'another' }));
    expect(errors).to.have.lengthOf(1);
    expect(await written()).to.have.lengthOf(1);
  });

  describe('in a flood', () => {
    /** The namespaces in which Events were written, in order; the test answers each request by hand. */
    let order: string[];
    let answers: (() => void)[];
    let stuck: EventRecorder;
    beforeEach(() => {
      [order, answers] = [[], []];
      stuck = create({
        ...server.client,
        request: (_verb, path) =>
          new Promise((resolve) => {
            order.push(/namespaces\/([^/]+)/.exec(path)?.[1] ?? '');
            answers.push(() => resolve({}));
          }),
      });
    });
    const of = (namespace: string | undefined, index: number, note = 'x') => {
      const pod = { apiVersion: 'v1', kind: 'Pod', name: `p${index}`, uid: `${index}` };
      return about({ regarding: namespace === undefined ? pod : { ...pod, namespace }, note });
    };

    it('one namespace gets a quarter of the queue; those of others are accepted and written in turns', async () => {
      const loud = Array.from({ length: 1_000 }, (_, index) => stuck.emit(of('loud', index)));
      // Four of them are being written.
      expect(loud.filter((taken) => taken)).to.have.lengthOf(254);
      expect(drops).to.equal(746);
      for (let index = 0; index < 3; index++) expect(stuck.emit(of('quiet', index))).to.equal(true);
      expect(stuck.emit(of(undefined, 0))).to.equal(true);
      while (order.length < 14) {
        answers.shift()?.();
        await new Promise((resolve) => setImmediate(resolve));
      }
      expect(order.slice(0, 4)).to.deep.equal(['loud', 'loud', 'loud', 'loud']);
      const others = order.slice(4, 13).filter((namespace) => namespace !== 'loud');
      expect(others).to.deep.equal(['quiet', 'default', 'quiet', 'quiet']);
    });

    it('the queue is bounded for all together', () => {
      const taken = Array.from({ length: 5_000 }, (_, index) => stuck.emit(of(`ns-${index % 50}`, index)));
      expect(taken.filter((each) => each)).to.have.lengthOf(1_004);
    });

    it('of a namespace are accepted even if others have filled the queue', () => {
      for (let index = 0; index < 5_000; index++) stuck.emit(of(`ns-${index % 5}`, index));
      const quiet = Array.from({ length: 10 }, (_, index) => stuck.emit(of('quiet', index)));
      expect(quiet.filter((taken) => taken)).to.have.lengthOf(8);
      expect(stuck.emit(of('ns-0', 0))).to.equal(false);
    });

    it('about one object are limited in ten minutes, and each object has its own limit', () => {
      const say = (index: number) => Array.from({ length: 20 }, (_, note) => stuck.emit(of('a', index, `${note}`)));
      expect(say(1).filter((taken) => taken)).to.have.lengthOf(16);
      expect(say(2).filter((taken) => taken)).to.have.lengthOf(16);
      clock.now.monotonic += 10 * MINUTE - 1;
      expect(say(1).filter((taken) => taken)).to.have.lengthOf(0);
      clock.now.monotonic += 1;
      expect(say(1).filter((taken) => taken)).to.have.lengthOf(16);
    });

    it('that are dropped are counted, and reported once a minute', () => {
      for (let index = 0; index < 20; index++) stuck.emit(of('a', 1, `${index}`));
      expect([drops, told, later.map(({ ms }) => ms)]).to.deep.equal([4, [], [MINUTE]]);
      later.shift()?.act();
      expect([drops, told]).to.deep.equal([4, [4]]);
      stuck.emit(of('a', 1));
      expect(later).to.have.lengthOf(1);
      end.abort();
      expect(later).to.deep.equal([]);
      expect(stuck.emit(of('a', 1))).to.equal(false);
    });
  });

  it('are not accepted if another replica may lead, and that does not count as dropped', async () => {
    mayWrite = false;
    expect(recorder.emit(about())).to.equal(false);
    await recorder.flush(new AbortController().signal);
    expect([drops, asked()]).to.deep.equal([0, []]);
  });

  it('do not delay a shutdown for longer than its signal allows', async () => {
    server.cluster.faults.inject({ path: /events/, hang: true });
    recorder.emit(about());
    const deadline = new AbortController();
    const flushed = recorder.flush(deadline.signal);
    deadline.abort();
    await flushed;
  });
});
