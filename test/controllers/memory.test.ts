import { expect } from 'chai';
import {
  answered,
  behindMs,
  createMemory,
  createRecords,
  decidedOf,
  holds,
  isFinal,
  type Notes,
  note,
  waitedMs,
} from '../../src/controllers/memory.ts';
import { type Decision, standing } from '../../src/placement/decide.ts';
import { readDaemonSet } from '../../src/placement/objects/daemonset.ts';
import { daemonSetSubject, settings, toleration } from '../placement/objects.ts';
import { createHandClock } from './hand-clock.ts';

const BASIS = { subjectKey: '1', settings: settings() };
const ARM = [toleration('supported-arch=arm64:NoSchedule')];
const WAITS: Decision = { kind: 'wait', images: ['app'], failed: [], againInMs: undefined, givesUpInMs: undefined };
const PLACED = standing(['amd64', 'arm64'], undefined);
const HELD: Decision = { kind: 'hold', reason: 'no-common-architecture', images: [] };
const SKIPPED = { kind: 'skip', reason: 'terminal' } as const;

function arrangeMemory() {
  const clock = createHandClock();
  const memory = createMemory({ canonicalOf: (image) => `canonical/${image}` }, clock);
  const remember = (name: string, decision: Decision | typeof SKIPPED, wrote?: typeof ARM) => {
    const record = memory.of(`shop/${name}`, name);
    memory.remember(`shop/${name}`, record, BASIS, decision, wrote);
    return record;
  };
  return { clock, memory, remember };
}

describe('the record of an object', () => {
  it('is that of one uid: nothing is known about another object of the same name', () => {
    const records = createRecords();
    const first = records.of('shop/web', 'u1');
    note(first, 'startsAt', 5);
    expect(records.of('shop/web', 'u1')).to.equal(first);
    const second = records.of('shop/web', 'u2');
    expect([second.notes, second.decision, records.all.size]).to.deep.equal([undefined, undefined, 1]);
    records.forget('shop/web');
    expect(records.all.size).to.equal(0);
  });

  it('has notes only for as long as one is needed, because every pod has a record', () => {
    const record = createRecords().of('shop/web', 'u');
    const all: Required<Notes> = {
      since: { of: 'images', at: 1 },
      wrote: ARM,
      expected: daemonSetSubject(readDaemonSet({}), settings()),
      answered: { resourceVersion: '7', at: 1 },
      contested: { intent: 'i', writes: [1], blockedUntil: 0, blocks: 0 },
      refused: { what: '422', since: 1, count: 1 },
      lessened: { by: 1, refusal: new Error('no') },
      announced: new Map(),
      startsAt: 1,
      givenBack: { count: 1, notBefore: 1 },
      unrecordedUntil: 1,
    };
    const parts = Object.keys(all) as (keyof Notes)[];
    for (const part of parts) note(record, part, all[part]);
    expect(record.notes).to.deep.equal(all);
    for (const [index, part] of parts.entries()) {
      expect(Object.keys(record.notes ?? {})).to.have.length(parts.length - index);
      note(record, part, undefined);
    }
    expect(record.notes).to.equal(undefined);
  });
});

describe('the memory of a term', () => {
  const decisions: [what: string, decided: (moment: number) => Decision | typeof SKIPPED][] = [
    ['placed objects', () => standing(['amd64', 'arm64'], undefined)],
    [
      'objects that wait for a time',
      (moment) => ({ ...WAITS, againInMs: 5_000 - moment, givesUpInMs: 9_000 - moment }),
    ],
  ];
  for (const [what, decided] of decisions) {
    it(`has one decision for all equal ${what}`, () => {
      const { remember } = arrangeMemory();
      const [one, two] = ['one', 'two'].map((name, moment) => remember(name, decided(moment)));
      // The time is not kept.
      const kept = { ...decided(0), ...(decided(0).kind === 'wait' ? WAITS : {}) };
      expect(one?.decision).to.deep.equal(kept);
      expect(one?.decision).to.equal(two?.decision);
      expect([one?.uid, two?.uid]).to.deep.equal(['one', 'two']);
    });
  }

  const valid: [given: string, decision: Decision | typeof SKIPPED, expected: boolean][] = [
    ['a placement on known images', PLACED, true],
    ['a placement without an image', standing(['amd64'], { failed: [], unknown: ['app'] }), false],
    ['a hold', HELD, true],
    ['a wait', WAITS, false],
  ];
  for (const [given, decision, expected] of valid) {
    it(`${expected ? 'need not make again' : 'makes again'} the decision after ${given}`, () => {
      const { memory, remember } = arrangeMemory();
      expect(
        holds(memory.of('shop/another', 'u'), () => '1'),
        'not decided yet',
      ).to.equal(false);
      const record = remember('web', decision);
      expect([holds(record, () => '1'), holds(record, () => '2')]).to.deep.equal([expected, false]);
      memory.invalidate('shop/web');
      expect(holds(record, () => '1')).to.equal(false);
      expect([...decidedOf(memory.all)]).to.deep.equal([['shop/web', record]]);
    });
  }

  it('knows which objects wait for an image, until they are decided or gone', () => {
    const { memory, remember } = arrangeMemory();
    const due = () => memory.lookupEnded('canonical/app').map(({ key }) => key);
    for (const name of ['placed', 'skipped', 'gone', 'stays']) remember(name, WAITS);
    remember('placed', PLACED);
    remember('skipped', SKIPPED);
    memory.forget('shop/gone');
    expect(due()).to.deep.equal(['shop/stays']);
  });

  it('keeps what was written until the next decision', () => {
    const { remember } = arrangeMemory();
    expect(remember('web', PLACED, ARM).notes?.wrote).to.equal(ARM);
    expect(remember('web', PLACED).notes).to.equal(undefined);
  });
});

describe('the time since when an object waits', () => {
  const now = [{ image: 'app', pullPolicy: '' }];
  it('begins with its images, and again with others', () => {
    const record = createRecords().of('shop/web', 'u');
    expect([waitedMs(record, now, 5), waitedMs(record, now, 8), waitedMs(record, [...now], 9)]).to.deep.equal([
      0, 3, 4,
    ]);
    expect([waitedMs(record, 'others', 10), waitedMs(record, 'others', 12)]).to.deep.equal([0, 2]);
  });

  it('ends with a decision that depends on no lookup', () => {
    const { memory, remember } = arrangeMemory();
    const record = memory.of('shop/web', 'web');
    waitedMs(record, now, 5);
    remember('web', WAITS);
    expect(waitedMs(record, now, 8)).to.equal(3);
    remember('web', PLACED);
    expect(waitedMs(record, now, 9)).to.equal(0);
  });
});

describe('the answer to a write', () => {
  const at = (resourceVersion: string, uid = 'a') => ({ uid, resourceVersion });
  function answeredAfter(seen = at('5')) {
    const record = createRecords().of('k', 'a');
    answered(record, '7', seen, 0);
    return record;
  }

  it('makes the object wait until the watch shows the write', () => {
    const record = answeredAfter();
    expect(['6', '7', '6'].map((version) => behindMs(record, at(version), 0))).to.deep.equal([30_000, 0, 0]);
  });

  it('causes no wait if the watch was faster than the answer', () => {
    expect(answeredAfter(at('7')).notes).to.equal(undefined);
    expect(behindMs(answeredAfter(at('7', 'b')), at('6'), 0)).to.equal(30_000);
  });

  it('causes a wait of half a minute at most, because after a restored backup no event comes', () => {
    const record = answeredAfter();
    expect([20_000, 30_000].map((now) => behindMs(record, at('6'), now))).to.deep.equal([10_000, 0]);
  });
});

describe('a decision with many images', () => {
  const many = Array.from({ length: 60 }, (_, at) => `i${at}`);
  const failed = many.map((image) => ({ image, code: 'timeout', message: 'no answer', registry: 'r' }));
  const images = many.map((image) => ({ image, platforms: many }));
  const decisions: readonly Decision[] = [
    { kind: 'wait', images: many, failed, againInMs: 5, givesUpInMs: 7 },
    { ...PLACED, failed, unknown: many, images },
    { ...HELD, images },
  ];
  for (const decision of decisions) {
    it(`keeps the first of each list, and waits for all images: ${decision.kind}`, () => {
      const { lookupEnded, of, remember } = createMemory({ canonicalOf: (image) => image }, createHandClock());
      const record = of('shop/a', 'a');
      remember('shop/a', record, BASIS, decision);
      const lists = Object.values(record.decision ?? {}).filter((value) => Array.isArray(value));
      expect(JSON.stringify(record.decision).length).to.be.below(6_000);
      expect(Math.max(...lists.map(({ length }) => length))).to.equal(16);
      expect(isFinal(record.decision ?? decision)).to.equal(isFinal(decision));
      expect(lookupEnded('i59')).to.have.length(decision.kind === 'hold' ? 0 : 1);
    });
  }
});
