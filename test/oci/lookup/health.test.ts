import { expect } from 'chai';
import { ImageError, type ImageErrorDetails } from '../../../src/oci/errors.ts';
import { createHealth, type Place, type Standing } from '../../../src/oci/lookup/health.ts';

const HOST = 'r.example.com';

/** A repository at a host; its project is the first part. */
function at(repository: string, host = HOST): Place {
  const project = repository.split('/', 1)[0] ?? '';
  return {
    repository: { key: `repository ${host}/${repository}`, name: repository },
    project: { key: `project ${host}/${project}`, name: project },
    host: { key: `host ${host}`, name: host },
  };
}

describe('the health of registries', () => {
  let time: number;
  let recovered: string[];
  let health: ReturnType<typeof createHealth>;
  const make = (details: Partial<ImageErrorDetails>) =>
    new ImageError('r.example.com failed', { code: 'unavailable', temporary: true, endpoint: HOST, ...details });
  /** The errors by what they are. */
  const errors = {
    '5xx': make({ status: 502 }),
    '5xx of a token service': make({ status: 500, byCredential: true }),
    'silence of a token service': make({ code: 'timeout', byCredential: true }),
    'no connection to a token service': make({ byCredential: true, unreachable: 'auth.example.com' }),
    silence: make({ code: 'timeout' }),
    'no connection to where it leads': make({ unreachable: 'blobs.example.com' }),
    'no connection': make({ unreachable: HOST }),
  };
  type What = keyof typeof errors;
  const fail = (what: What, repository: string, namespace = 'one') =>
    health.failed(at(repository), [namespace], errors[what]);
  const answer = (repository: string) => health.answered(at(repository));
  const isHeld = (repository: string, ...namespaces: string[]) =>
    health.refusal(at(repository), namespaces.length === 0 ? ['one'] : namespaces) !== undefined;
  const heldOf = (...repositories: string[]) => repositories.filter((repository) => isHeld(repository));
  /** Tries, and fails as long as it may; returns the milliseconds until the next try. */
  const tryAt = (repository: string, namespace = 'one', what: What = '5xx'): number => {
    const refused = health.start(at(repository), [namespace]);
    return (refused ?? fail(what, repository, namespace)).retryAfterMs ?? 0;
  };
  beforeEach(() => {
    time = 1000;
    recovered = [];
    health = createHealth(
      () => time,
      (key) => void recovered.push(key),
    );
  });

  const each = (what: What, ...names: string[]) => names.map((name): [What, string] => [what, name]);
  const rows: [what: string, failures: [What, string][], held: string[], free: string[]][] = [
    ['5xx of one repository: it', [['5xx', 'a/x']], ['a/x'], ['a/y', 'b/x']],
    ...(['5xx of a token service', 'silence of a token service', 'no connection to a token service'] as const).map(
      (what): (typeof rows)[number] => [`${what}: the repository`, [[what, 'a/x']], ['a/x'], ['a/y', 'b/x']],
    ),
    ['5xx of two repositories: those that failed', each('5xx', 'a/x', 'a/y'), ['a/x', 'a/y'], ['a/z', 'b/x']],
    ['silence of one repository: it', [['silence', 'a/x']], ['a/x'], ['a/y', 'b/x']],
    ['no connection to where one leads: it', [['no connection to where it leads', 'a/x']], ['a/x'], ['a/y', 'b/x']],
    ['silence of two projects: those that were silent', each('silence', 'a/x', 'b/x'), ['a/x', 'b/x'], ['c/x']],
    ['no connection: the host', [['no connection', 'a/x']], ['a/x', 'a/y', 'b/x'], []],
  ];
  for (const [what, failures, held, free] of rows) {
    it(`holds back, after ${what}`, () => {
      for (const [kind, repository] of failures) fail(kind, repository);
      expect(heldOf(...held, ...free)).to.deep.equal(held);
      expect(health.refusal(at('a/x', 'other.example.com'), ['one'])).to.equal(undefined);
    });
  }

  it('takes no host for silent that answered somebody lately, and any other one', () => {
    answer('good/x');
    for (const repository of ['a/x', 'b/x']) fail('silence', repository);
    expect(health.standing(at('c/x'))).to.equal('new');
    time += 30_000;
    for (const repository of ['a/x', 'b/x']) fail('silence', repository);
    expect(health.standing(at('c/x'))).to.equal('unknown');
  });

  for (const [what, repository] of [
    ['5xx', 'a/x'],
    ['no connection', 'a/x'],
  ] as const) {
    it(`asks where there is ${what} once after each pause, which doubles up to half a minute`, () => {
      const waits = [1, 2, 3, 4, 5, 6, 7].map(() => {
        const wait = tryAt(repository, 'one', what);
        time += wait - 1;
        expect(health.start(at(repository), ['one'])).to.include({ isUnasked: true, retryAfterMs: 1 });
        time += 1;
        return wait / 1000;
      });
      expect(waits).to.deep.equal([1, 2, 4, 8, 16, 30, 30]);
    });
  }

  it('lets one try at a time, of another namespace too, for as long as it runs, at most five seconds', () => {
    fail('no connection', 'a/x');
    time += 1000;
    expect(health.start(at('a/x'), ['one'])).to.equal(undefined);
    expect(health.start(at('b/x'), ['two'])).to.include({ retryAfterMs: 5000 });
    time += 5000;
    expect(health.start(at('b/x'), ['two'])).to.equal(undefined);
  });

  it('does not let those prolong the pause that were under way before it', () => {
    for (let index = 0; index < 8; index += 1) fail('5xx', 'a/x');
    expect(health.refusal(at('a/x'), ['one'])).to.include({ retryAfterMs: 1000 });
  });

  it('ends each pause with the first answer, at once and for everybody, and says so', () => {
    for (let index = 0; index < 6; index += 1) time += tryAt('a/x', 'one', 'no connection');
    tryAt('a/x', 'one', 'no connection');
    expect(isHeld('b/y')).to.equal(true);
    answer('c/x');
    expect(isHeld('a/x')).to.equal(false);
    expect(recovered).to.deep.equal(['host r.example.com']);
    answer('c/x');
    expect(recovered).to.have.length(1);
  });

  it('lets a namespace that has not tried there try at once, however long the pause of the others is', () => {
    for (let index = 0; index < 9; index += 1) time += tryAt('a/x', 'flood');
    tryAt('a/x', 'flood');
    expect(isHeld('a/x', 'flood')).to.equal(true);
    expect(isHeld('a/x', 'bystander')).to.equal(false);
    expect(isHeld('a/x', 'flood', 'bystander'), 'a lookup for both').to.equal(false);
    health.start(at('a/x'), ['bystander']);
    answer('a/x');
    expect(isHeld('a/x', 'flood')).to.equal(false);
  });

  it('lets those try first after a pause that tried before the others', () => {
    for (const namespace of ['one', 'two', 'three']) tryAt('a/x', namespace);
    const waits = ['one', 'two', 'three'].map((name) => health.refusal(at('a/x'), [name])?.retryAfterMs);
    expect(waits).to.deep.equal([1000, 2000, 3000]);
    time += 1000;
    expect(['three', 'two', 'one'].map((name) => isHeld('a/x', name))).to.deep.equal([true, true, false]);
    tryAt('a/x', 'one');
    time += 2000;
    expect(['one', 'three', 'two'].map((name) => isHeld('a/x', name))).to.deep.equal([true, true, false]);
  });

  it('holds back nothing for longer than half a minute after its own failure, whatever others of its project do', () => {
    for (const repository of ['a/x', 'a/y']) fail('5xx', repository);
    for (let second = 0; second < 30; second += 1) {
      time += 1000;
      tryAt('a/y');
    }
    expect(heldOf('a/x', 'a/y')).to.deep.equal(['a/y']);
  });

  it('ends the pause of what is wider with an answer, but not that of another repository', () => {
    for (const repository of ['a/x', 'b/x']) fail('silence', repository);
    answer('a/y');
    expect(heldOf('a/x', 'a/y', 'b/x', 'b/y')).to.deep.equal(['a/x', 'b/x']);
  });

  it('takes 5xx for an answer of the host', () => {
    fail('no connection', 'a/x');
    fail('5xx', 'b/x');
    expect(heldOf('a/x', 'b/x')).to.deep.equal(['b/x']);
  });

  const texts: [what: What, repositories: string[], text: string][] = [
    ['5xx', ['proxy/x'], 'r.example.com answers 502 for its repository proxy/x'],
    ['5xx', ['proxy/x', 'proxy/y'], 'r.example.com answers 502 for its project proxy'],
    ['5xx of a token service', ['proxy/x'], 'r.example.com answers 500 to logins for its repository proxy/x'],
    ['silence', ['proxy/x'], 'r.example.com failed for its repository proxy/x'],
    ['no connection', ['proxy/x'], 'r.example.com failed'],
  ];
  for (const [what, repositories, text] of texts) {
    it(`says what was answered where: ${text}`, () => {
      for (const repository of repositories) fail(what, repository);
      const refused = health.refusal(at(repositories[0] ?? ''), ['one']);
      expect(refused).to.include({ message: text, isUnasked: true, temporary: true, endpoint: HOST });
    });
  }

  const standings: [what: string, events: () => void, standing: Standing][] = [
    ['nobody asked', () => undefined, 'unknown'],
    ['the project answered', () => answer('a/x'), 'proven'],
    ['another project answered', () => answer('b/x'), 'new'],
    ['another project answers 5xx', () => fail('5xx', 'b/x'), 'new'],
    ['another project is silent', () => fail('silence', 'b/x'), 'unknown'],
    ['one of its repositories is silent', () => fail('silence', 'a/y'), 'unknown'],
    ['two of its repositories failed', () => ['a/y', 'a/z'].map((name) => fail('5xx', name)), 'failing'],
    ['they failed, and one answers', () => ['a/y', 'a/z'].map((name) => [fail('5xx', name), answer(name)]), 'proven'],
    ['it answered, and another project is silent', () => [answer('a/x'), fail('silence', 'b/x')], 'proven'],
    ['it answered, and one of its repositories fails', () => [answer('a/x'), fail('5xx', 'a/y')], 'proven'],
    ['it answered, and no connection can be made', () => [answer('a/x'), fail('no connection', 'b/x')], 'failing'],
  ];
  for (const [what, events, standing] of standings) {
    it(`calls a project ${standing} if ${what}`, () => {
      events();
      expect(health.standing(at('a/x'))).to.equal(standing);
    });
  }

  type Head = Parameters<typeof health.sawHead>[1];
  const heads: [what: string, seen: string, headless: string[]][] = [
    ['one repository: there', 'a/x broken', ['a/x']],
    ['one repository, twice: there', 'a/x broken, a/x broken', ['a/x']],
    ['two repositories: in their project', 'a/x broken, a/y broken', ['a/x', 'a/y', 'a/z']],
    ['two repositories with doubt: there', 'a/x doubtful, a/y doubtful', ['a/x', 'a/y']],
    ['two repositories, in one of which it works again: in the other', 'a/x broken, a/y broken, a/x works', ['a/y']],
  ];
  for (const [what, seen, headless] of heads) {
    it(`knows that HEAD does not work in ${what}, for six hours`, () => {
      for (const [, name = '', head] of seen.matchAll(/([a-z/]+) (\w+)/g)) health.sawHead(at(name), head as Head);
      for (const repository of ['a/x', 'b/x']) answer(repository);
      const where = () => ['a/x', 'a/y', 'a/z', 'b/x'].filter((repository) => health.isHeadless(at(repository)));
      expect(where()).to.deep.equal(headless);
      time += 6 * 3_600_000;
      expect(where()).to.deep.equal([]);
    });
  }

  it('takes a 503 for a limit where the project answered lately, three times in a row for one repository', () => {
    const busy = (repository: string) => health.mayBeLimit(at(repository));
    expect(busy('a/x'), 'never answered').to.equal(false);
    answer('a/y');
    expect(busy('b/x'), 'another project').to.equal(false);
    expect([busy('a/x'), busy('a/x'), busy('a/x'), busy('a/x')]).to.deep.equal([true, true, true, false]);
    expect(busy('a/z')).to.equal(true);
    answer('a/x');
    expect(busy('a/x')).to.equal(true);
    time += 10_000;
    expect(busy('a/x'), 'long ago').to.equal(false);
  });

  it('forgets the oldest of very many names, and then asks', () => {
    fail('5xx', 'a/x');
    const long = 'y'.repeat(200);
    for (let index = 0; index < 4000; index += 1) fail('5xx', `${long}${index}/x`);
    expect(heldOf('a/x', `${long}3999/x`)).to.deep.equal([`${long}3999/x`]);
  });
});
