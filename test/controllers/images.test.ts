import { expect } from 'chai';
import { announceSecrets, createAnnouncer } from '../../src/controllers/announce.ts';
import { createImageSource } from '../../src/controllers/images.ts';
import type { Occurrence } from '../../src/kube/events.ts';
import { ImageError } from '../../src/oci/errors.ts';
import type { Resolver } from '../../src/oci/resolver.ts';
import { createHandClock } from './hand-clock.ts';

const RETRY_AT = 1_000;

/** A resolver that knows nothing. */
function blank(more: Partial<Resolver> = {}): Resolver {
  return {
    known: () => undefined,
    isStale: () => false,
    failure: () => undefined,
    request: () => true,
    onSettled: () => undefined,
    resolve: () => Promise.reject(new Error('nothing is resolved')),
    pending: () => 0,
    failing: () => 0,
    forgive: () => undefined,
    ...more,
  };
}

describe('the pull secrets of a pod', () => {
  const names = (count: number) => Array.from({ length: count }, (_, index) => `s${index}`);

  it('are passed to a lookup up to the limit', () => {
    const given: number[] = [];
    const resolver = blank({ request: (_image, { pullSecrets }) => given.push(pullSecrets.length) > 0 });
    const images = createImageSource(resolver, createHandClock(), () => undefined);
    for (const count of [0, 32, 33]) images.answer({ image: 'nginx', pullPolicy: '' }, 'default', names(count));
    expect(given).to.deep.equal([0, 32, 32]);
  });

  it('that cannot be used cause one Event, however many they are', () => {
    const images = createImageSource(blank(), createHandClock(), (_namespace, name) =>
      name === 's0' ? undefined : 'it does not exist',
    );
    const note = (count: number): string[] => {
      const reported: Occurrence[] = [];
      const announcer = createAnnouncer({ emit: (occurrence) => reported.push(occurrence) > 0 }, createHandClock());
      const regarding = { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u' };
      announceSecrets('k', regarding, images.unusableSecrets('default', names(count)), announcer);
      return reported.map((occurrence) => occurrence.note);
    };
    expect(note(1)).to.deep.equal([]);
    expect(note(2)).to.deep.equal(['pull secret s1 cannot be used: it does not exist']);
    expect(note(3)).to.deep.equal(['pull secrets cannot be used: s1 (it does not exist), s2 (it does not exist)']);
    expect(note(33)).to.deep.equal([
      'pull secrets cannot be used: s32 and all after it (only the first 32 are read), s1 (it does not exist), s2 (it does not exist) and 29 more',
    ]);
  });
});

describe('an announcer', () => {
  it('reports again what could not be written as an Event', () => {
    const clock = createHandClock();
    let [takes, asked] = [false, 0];
    const announcer = createAnnouncer(
      {
        emit() {
          asked++;
          return takes;
        },
      },
      clock,
    );
    const regarding = { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u' };
    const report = () =>
      announcer.report('k', { regarding, type: 'Warning', reason: 'WrongNode', action: 'Placing', note: 'n' });
    report();
    takes = true;
    report();
    report();
    expect(asked).to.equal(2);
  });

  it('reports a problem again after half an hour, or if the object was forgotten', async () => {
    const clock = createHandClock();
    const notes: string[] = [];
    const announcer = createAnnouncer({ emit: ({ note }) => notes.push(note) > 0 }, clock);
    const regarding = { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u' };
    const report = (key: string, note: string) =>
      announcer.report(key, { regarding, type: 'Warning', reason: 'WrongNode', action: 'Placing', note });
    report('k', 'a');
    report('k', 'b');
    report('other', 'a');
    expect(notes).to.deep.equal(['a', 'b', 'a']);
    await clock.advance(30 * 60_000 - 1);
    report('k', 'a');
    announcer.forget('other');
    report('k', 'a');
    report('other', 'a');
    expect(notes.splice(0)).to.deep.equal(['a', 'b', 'a', 'a']);
    await clock.advance(1);
    report('k', 'a');
    report('other', 'a');
    expect(notes).to.deep.equal(['a']);
  });
});

describe('the image source', () => {
  it('starts a lookup if the knowledge is old, but never for recall', () => {
    const started: string[] = [];
    const resolver = blank({
      known: (image) =>
        image === 'old'
          ? { platforms: [{ os: 'linux', architecture: 'amd64' }], isIndex: false, isStale: true }
          : undefined,
      request: (image, _access, mayStart = () => true) => {
        if (mayStart()) started.push(image);
        return true;
      },
    });
    const images = createImageSource(resolver, createHandClock(), () => undefined);
    for (const image of ['old', 'new']) {
      const asked = [{ image, pullPolicy: '' }, 'default', []] as const;
      const kind = image === 'old' ? 'known' : 'pending';
      expect(images.recall(...asked).kind).to.equal(kind);
      expect(images.answer(...asked, () => false).kind).to.equal(kind);
      expect(started).to.deep.equal([]);
      expect(images.answer(...asked).kind).to.equal(kind);
      expect(started.splice(0)).to.deep.equal([image]);
    }
  });

  it('says when to ask again for an image that no lookup is planned for, because too many wait', () => {
    const images = createImageSource(blank({ request: () => false }), createHandClock(), () => undefined);
    const answer = images.answer({ image: 'nginx', pullPolicy: '' }, 'default', []);
    expect(answer).to.deep.equal({ kind: 'pending', retryInMs: 10_000 });
  });

  const registries: [what: string, image: string, endpoint: string | undefined, registry: string][] = [
    ['that of the image', 'quay.io/team/app', undefined, 'quay.io'],
    ["Docker Hub's", 'nginx', undefined, 'docker.io'],
    ['the mirror that failed', 'quay.io/team/app', 'mirror.example.com', 'mirror.example.com'],
    ['none, of a malformed image', 'a b', undefined, ''],
  ];
  for (const [what, image, endpoint, registry] of registries) {
    it(`names the registry of a failure: ${what}`, () => {
      const error = new ImageError('gone', {
        ...{ code: 'unavailable', temporary: true },
        ...(endpoint === undefined ? {} : { endpoint }),
      });
      const resolver = blank({ failure: () => ({ error, firstFailedAt: 0, retryAt: RETRY_AT, attempts: 1 }) });
      const images = createImageSource(resolver, createHandClock(), () => undefined);
      expect(images.answer({ image, pullPolicy: '' }, 'default', [])).to.include({ registry });
    });
  }

  it('plans the retry of a failed image that becomes due during the call', () => {
    let [wall, started] = [RETRY_AT - 1, false];
    const error = new ImageError('gone', { code: 'unavailable', temporary: true });
    const resolver: Resolver = {
      known: () => undefined,
      isStale: () => false,
      failure: () => ({ error, firstFailedAt: 0, retryAt: RETRY_AT, attempts: 1 }),
      request() {
        started = wall >= RETRY_AT;
        wall = RETRY_AT;
        return true;
      },
      onSettled: () => undefined,
      resolve: () => Promise.reject(error),
      pending: () => 0,
      failing: () => 1,
      forgive: () => undefined,
    };
    const images = createImageSource(resolver, { ...createHandClock(), steady: () => wall }, () => undefined);
    const first = images.answer({ image: 'nginx', pullPolicy: '' }, 'default', []);
    expect(started).to.equal(false);
    expect(first).to.have.property('retryInMs', 1);
    const second = images.answer({ image: 'nginx', pullPolicy: '' }, 'default', []);
    expect(started).to.equal(true);
    expect(second).to.have.property('retryInMs', Number.POSITIVE_INFINITY);
  });
});
