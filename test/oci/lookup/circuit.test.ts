import { expect } from 'chai';
import { ImageError, type ImageErrorDetails } from '../../../src/oci/errors.ts';
import { createCircuits, type Extent, extentOf, type Standing } from '../../../src/oci/lookup/circuit.ts';
import type { Place } from '../../../src/oci/lookup/place.ts';

const ALL = ['one', 'two', 'three'];
const HOST = 'r.example.com';

/** `proxy/x` at the host; names are the keys of their level. */
function at(repository: string, host = HOST): Place {
  const project = repository.split('/', 1)[0] ?? '';
  return {
    repository: { key: `repository ${host}/${repository}`, name: repository },
    project: { key: `project ${host}/${project}`, name: project },
    host: { key: `host ${host}`, name: host },
  };
}

describe('the circuits', () => {
  let time: number;
  let circuits: ReturnType<typeof createCircuits>;
  const make = (details: Partial<ImageErrorDetails>) =>
    new ImageError('r.example.com failed', { code: 'unavailable', temporary: true, endpoint: HOST, ...details });
  /** The errors by what they say something about. */
  const errors = {
    path: make({ status: 502 }),
    silence: make({ code: 'timeout' }),
    host: make({ unreachable: HOST }),
  };
  const fail = (extent: keyof typeof errors, repository: string, times = 1, namespaces: readonly string[] = ALL) => {
    for (let count = 0; count < times; count += 1) {
      circuits.record(at(repository), namespaces, errors[extent], extentOf(errors[extent], HOST));
    }
  };
  const answer = (repository: string) => circuits.record(at(repository), ['somebody'], undefined);
  const isOpen = (repository: string, namespaces: readonly string[] = ALL) =>
    circuits.open(at(repository), namespaces) !== undefined;
  /** An error that must be there. */
  const given = (refused: ImageError | undefined): ImageError => {
    if (refused === undefined) throw new Error('the circuit refuses nothing');
    return refused;
  };
  beforeEach(() => {
    time = 1000;
    circuits = createCircuits({ now: () => time, random: () => 0.5 });
  });

  const extents: [what: string, details: Partial<ImageErrorDetails>, extent: Extent][] = [
    ['5xx', { status: 503 }, 'path'],
    ['408', { code: 'timeout', status: 408 }, 'path'],
    ['5xx of a token service', { status: 500, byCredential: true }, 'path'],
    ['a token service that is silent', { code: 'timeout', byCredential: true }, 'path'],
    [
      'a token service on another host without a connection',
      { byCredential: true, unreachable: 'auth.example.com' },
      'path',
    ],
    ['no answer', { code: 'timeout' }, 'silence'],
    ['a connection that broke off', {}, 'silence'],
    ['a redirect to a host without a connection', { unreachable: 'blobs.example.com' }, 'silence'],
    ['no connection', { unreachable: HOST }, 'host'],
    ['a token service on the same host without a connection', { byCredential: true, unreachable: HOST }, 'host'],
    ['an address that is not allowed', { code: 'forbidden-address' }, 'none'],
    ['429', { code: 'rate-limited', status: 429 }, 'answer'],
    ['404', { code: 'not-found', status: 404 }, 'answer'],
    ['401', { code: 'denied', status: 401 }, 'answer'],
    ['nonsense', { code: 'malformed' }, 'answer'],
    ['too much', { code: 'too-large' }, 'answer'],
    ['a schema that is not supported', { code: 'unsupported' }, 'answer'],
  ];
  for (const [what, details, extent] of extents) {
    it(`take ${what} for ${extent === 'path' || extent === 'host' ? `a failure of the ${extent}` : extent}`, () => {
      expect(extentOf(make(details), HOST)).to.equal(extent);
    });
  }

  const opens: [
    what: string,
    failures: [extent: keyof typeof errors, repository: string][],
    open: string[],
    closed: string[],
  ][] = [
    ['5xx of one repository: that one', [['path', 'a/x']], ['a/x'], ['a/y', 'b/x']],
    [
      '5xx of two repositories: those that failed of their project',
      [
        ['path', 'a/x'],
        ['path', 'a/y'],
      ],
      ['a/x', 'a/y'],
      ['a/z', 'b/x'],
    ],
    [
      '5xx of two projects: no more than these',
      [
        ['path', 'a/x'],
        ['path', 'b/x'],
      ],
      ['a/x', 'b/x'],
      ['a/y', 'b/y', 'c/x'],
    ],
    ['silence of one repository: that one', [['silence', 'a/x']], ['a/x'], ['a/y', 'b/x']],
    [
      'silence of two projects: those that were silent, and no third one',
      [
        ['silence', 'a/x'],
        ['silence', 'b/x'],
      ],
      ['a/x', 'b/x', 'a/y'],
      ['c/x'],
    ],
    ['no connection: the host', [['host', 'a/x']], ['a/x', 'a/y', 'b/x'], []],
  ];
  for (const [what, failures, open, closed] of opens) {
    it(`open by ${what}`, () => {
      for (const [extent, repository] of failures) fail(extent, repository, 5);
      for (const repository of open) expect(isOpen(repository), repository).to.equal(true);
      for (const repository of closed) expect(isOpen(repository), repository).to.equal(false);
      expect(circuits.open(at('a/x', 'other.example.com'), ALL)).to.equal(undefined);
    });
  }

  it('open after five failures in a row, for two seconds', () => {
    for (let count = 0; count < 5; count += 1) {
      expect(circuits.refusal(at('a/x'), ALL), `after ${count}`).to.equal(undefined);
      fail(count % 2 === 0 ? 'silence' : 'path', 'a/x');
    }
    expect(given(circuits.refusal(at('a/x'), ALL))).to.include({
      code: 'timeout',
      isUnasked: true,
      retryAfterMs: 2000,
    });
  });

  it('count failures of several repositories for those of them that failed, though none failed five times', () => {
    for (const name of ['1', '2', '3', '4', '5']) fail('path', `a/${name}`);
    expect(['1', '2', '3', '4', '5'].every((name) => isOpen(`a/${name}`))).to.equal(true);
    expect(isOpen('a/6')).to.equal(false);
  });

  const texts: [extent: keyof typeof errors, repositories: string[], text: string][] = [
    ['path', ['proxy/x'], 'r.example.com answers 502 for its repository proxy/x'],
    ['path', ['proxy/y', 'proxy/x'], 'r.example.com answers 502 for its project proxy'],
    ['silence', ['proxy/x'], 'r.example.com failed for its repository proxy/x'],
    ['host', ['proxy/x'], 'r.example.com failed'],
  ];
  for (const [extent, repositories, text] of texts) {
    it(`say what was answered where: ${text}`, () => {
      for (const repository of repositories) fail(extent, repository, 4);
      fail(extent, 'proxy/x');
      expect(given(circuits.open(at('proxy/x'), ALL))).to.include({ message: text, isUnasked: true, temporary: true });
    });
  }

  it('allow one try at a time when it is due, and close with any answer', () => {
    fail('host', 'a/x', 5);
    expect(given(circuits.open(at('a/x'), ALL))).to.include({ retryAfterMs: 2000 });
    time += 2000;
    // `open` does not count as a try.
    expect(isOpen('a/x')).to.equal(false);
    expect(circuits.refusal(at('a/x'), ALL)).to.equal(undefined);
    expect(given(circuits.refusal(at('b/x'), ALL))).to.include({ code: 'unavailable' });
    answer('b/y');
    for (let count = 0; count < 10; count += 1) expect(circuits.refusal(at('a/x'), ALL)).to.equal(undefined);
  });

  it('stay open longer with each try that fails, up to half a minute', () => {
    fail('host', 'a/x', 4);
    const waits = [0, 1, 2, 3, 4, 5].map(() => {
      fail('host', 'a/x');
      const wait = circuits.refusal(at('a/x'), ALL)?.retryAfterMs ?? 0;
      time += wait;
      expect(circuits.refusal(at('a/x'), ALL)).to.equal(undefined);
      return wait;
    });
    expect(waits).to.deep.equal([2000, 4000, 8000, 16_000, 30_000, 30_000]);
  });

  it('are not kept open by other repositories of the project that fail meanwhile', () => {
    fail('path', 'a/y');
    fail('path', 'a/x', 4);
    const { retryAfterMs = 0 } = circuits.open(at('a/x'), ALL) ?? {};
    for (let index = 0; index < 50; index += 1) {
      time += retryAfterMs / 50;
      fail('path', `a/new${index}`);
    }
    expect(isOpen('a/x')).to.equal(false);
  });

  it('hold back nothing for longer than half a minute after its own last failure, whatever the others do', () => {
    fail('path', 'a/x');
    fail('path', 'a/y', 20);
    expect(isOpen('a/x')).to.equal(true);
    for (let second = 0; second < 30; second += 1) {
      time += 1000;
      circuits.refusal(at('a/y'), ALL);
      fail('path', 'a/y');
    }
    expect(isOpen('a/y')).to.equal(true);
    expect(isOpen('a/x')).to.equal(false);
  });

  it('close what is wider with an answer, but not another repository that fails', () => {
    fail('silence', 'a/x', 5);
    fail('silence', 'b/x', 5);
    expect(isOpen('a/y')).to.equal(true);
    answer('a/y');
    expect(['a/x', 'a/y', 'b/x', 'b/y'].map((name) => isOpen(name))).to.deep.equal([true, false, true, false]);
  });

  it('take 5xx for an answer of the host', () => {
    fail('host', 'a/x', 5);
    fail('path', 'b/x');
    expect(isOpen('a/x')).to.equal(false);
  });

  const standings: [what: string, events: () => void, standing: Standing][] = [
    ['nobody asked', () => undefined, 'unknown'],
    ['the project answered', () => answer('a/x'), 'proven'],
    ['another project answered', () => answer('b/x'), 'new'],
    ['another project answers 5xx', () => fail('path', 'b/x'), 'new'],
    ['another project is silent', () => fail('silence', 'b/x'), 'unknown'],
    ['the project answers 5xx', () => fail('path', 'a/y'), 'failing'],
    ['the project is silent', () => fail('silence', 'a/y'), 'failing'],
    [
      'the project answered, and another one is silent',
      () => {
        answer('a/x');
        fail('silence', 'b/x', 9);
      },
      'proven',
    ],
    [
      'the project answered, and no connection can be made since',
      () => {
        answer('a/x');
        fail('host', 'b/x');
      },
      'failing',
    ],
    [
      'a redirect to a forbidden address',
      () => circuits.record(at('a/x'), ALL, make({ code: 'forbidden-address' }), 'none'),
      'unknown',
    ],
  ];
  for (const [what, events, standing] of standings) {
    it(`call a project ${standing} if ${what}`, () => {
      events();
      expect(circuits.standing(at('a/x'))).to.equal(standing);
    });
  }

  it('open for a namespace whose paths fail, and for no other one', () => {
    for (const repository of ['a/x', 'b/x']) fail('silence', repository, 50, ['flood']);
    expect(isOpen('a/x', ['flood'])).to.equal(true);
    expect(isOpen('a/x', ['bystander'])).to.equal(false);
    expect(isOpen('a/x', ['flood', 'bystander']), 'a lookup for both').to.equal(false);
  });

  it('open for everybody when three namespaces have met failures, and close for everybody with one answer', () => {
    for (const name of ['one', 'two', 'one', 'two']) fail('host', 'a/x', 1, [name]);
    expect(isOpen('a/x', ['one'])).to.equal(false);
    fail('host', 'a/x', 1, ['three']);
    for (const name of ['one', 'four']) expect(isOpen('a/x', [name]), name).to.equal(true);
    answer('a/x');
    for (const name of ['one', 'four']) expect(isOpen('a/x', [name]), name).to.equal(false);
  });

  it('forget the oldest of very many names, and then ask', () => {
    fail('path', 'a/x', 5);
    const long = 'y'.repeat(200);
    for (let index = 0; index < 20_000; index += 1) fail('path', `${long}${index}/x`, 1, ['tenant']);
    expect(isOpen('a/x')).to.equal(false);
    expect(isOpen(`${long}19999/x`, ['tenant'])).to.equal(false);
    fail('path', `${long}19999/x`, 4, ['tenant']);
    expect(isOpen(`${long}19999/x`, ['tenant'])).to.equal(true);
  });
});
