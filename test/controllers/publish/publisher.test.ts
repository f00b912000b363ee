import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import type { ImageSource } from '../../../src/controllers/image-source.ts';
import { createPublisher } from '../../../src/controllers/publish/publisher.ts';
import { isObject, type JsonObject } from '../../../src/kit/json.ts';
import { ApiError } from '../../../src/kube/errors.ts';
import type { ImageAnswer } from '../../../src/placement/images.ts';
import { readPod } from '../../../src/placement/objects/pod.ts';
import { readAnswers } from '../../../src/placement/publish/known-images.ts';
import type { Settings } from '../../../src/placement/settings.ts';
import { settings } from '../../placement/objects.ts';
import { createHandClock } from '../hand-clock.ts';

const index = (...architectures: readonly string[]): ImageAnswer => ({
  ...{ kind: 'known', isIndex: true },
  platforms: architectures.map((architecture) => ({ os: 'linux', architecture })),
});
const PENDING: ImageAnswer = { kind: 'pending' };

const running: (() => Promise<void>)[] = [];

/** Publishes into an API server that has the one object, and records the requests. */
function publishing(stored?: JsonObject) {
  const clock = createHandClock();
  const over = new AbortController();
  const state = {
    ...{ stored, status: 0, settings: settings() as Settings, mayWrite: true },
    ...{ known: new Map<string, ImageAnswer>(), pods: [] as string[], refusing: [] as string[] },
  };
  const requests: string[] = [];
  const errors: unknown[] = [];
  const images: ImageSource = {
    namesOf: (image) => (image.includes(' ') ? [] : [image]),
    canonicalOf: (image) => image,
    unusableSecrets: () => [],
    answer: ({ image }) => state.known.get(image) ?? PENDING,
  };
  const publisher = createPublisher({
    ...{ clock, images, namespace: 'archaware' },
    client: {
      async request(verb, _path, options) {
        requests.push(verb);
        if (state.status > 0) throw new ApiError(state.status, {}, verb);
        const body = isObject(options?.body) ? options.body : {};
        if (verb === 'apply') state.stored = body;
        else if (state.stored === undefined) throw new ApiError(404, {}, verb);
        else if (verb === 'delete') state.stored = undefined;
        else if (verb === 'patch') state.stored = merged(state.stored, body);
        if (verb === 'apply' || verb === 'patch') version(state);
        return state.stored ?? {};
      },
    },
    mayWrite: () => state.mayWrite,
    settings: () => state.settings,
    loops: ['pods'],
    refusing: () => state.refusing,
    pods: { values: () => [readPod({ spec: { containers: state.pods.map((image) => ({ image })) } })] },
    onError: (error) => void errors.push(error),
  });
  const ended = publisher.run(over.signal);
  const pass = async (ms: number) => {
    await clock.advance(ms);
    for (let turns = 0; turns < 10; turns++) await turn();
  };
  const end = async () => {
    over.abort();
    await ended;
  };
  running.push(end);
  return {
    ...{ publisher, state, errors, pass, end },
    /** A pod uses an image of which this is known. */
    async use(image: string, answer: ImageAnswer) {
      state.known.set(image, answer);
      publisher.images.namesOf(image);
      await pass(5_000);
    },
    /** A lookup ends with this. */
    async settle(image: string, answer: ImageAnswer) {
      state.known.set(image, answer);
      publisher.settled(image);
      await pass(5_000);
    },
    answers: () => Object.fromEntries(readAnswers(state.stored ?? {})),
    /** What was sent since the last call. */
    sent: () => requests.splice(0).join(' '),
  };
}

/** Gives what was written another version. */
function version(state: { stored: JsonObject | undefined }): void {
  const { metadata } = state.stored ?? {};
  const before = Number(isObject(metadata) ? metadata.resourceVersion : 0) || 0;
  state.stored = merged(state.stored ?? {}, { metadata: { resourceVersion: String(before + 1) } });
}

function merged(before: JsonObject, patch: JsonObject): JsonObject {
  const after: Record<string, unknown> = { ...before };
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete after[name];
    else if (isObject(value)) after[name] = merged(isObject(after[name]) ? after[name] : {}, value);
    else after[name] = value;
  }
  return after;
}

const EARLIER = {
  metadata: { name: 'known' },
  taint: 'supported-arch:NoSchedule',
  schedulable: [],
  excluded: '^$',
  daemonSets: false,
  count: 1,
  images: { '/x/': '/amd64 a:a ' },
};

describe('the publisher', () => {
  afterEach(() => Promise.all(running.splice(0).map((end) => end())));

  it('publishes what pods use and is known, in batches, and nothing twice', async () => {
    const { publisher, state, answers, sent, pass, settle } = publishing();
    await pass(0);
    expect(sent()).to.equal('get apply');
    state.known.set('x/a:1', index('amd64', 'arm64'));
    for (const image of ['x/a:1', 'x/a:1', 'x/b:1']) publisher.images.namesOf(image);
    await pass(4_000);
    expect(sent()).to.equal('');
    await pass(1_000);
    expect(sent()).to.equal('patch');
    expect(answers()).to.deep.equal({ 'x/a:1': 'amd64,arm64' });
    await settle('x/b:1', index('arm64'));
    expect(answers()).to.deep.equal({ 'x/a:1': 'amd64,arm64', 'x/b:1': 'arm64' });
    publisher.images.namesOf('x/a:1');
    await pass(60_000);
    expect(sent()).to.equal('patch get');
    expect(publisher.publication()).to.include({ images: 2, problem: undefined });
  });

  it('keeps an answer until another one is known, whatever its registry says', async () => {
    const { answers, use, settle } = publishing();
    await use('x/a:1', index('amd64'));
    for (const answer of [
      PENDING,
      { kind: 'failed', code: 'not-found', message: '', registry: '', sinceMs: 0, retryInMs: 0 } as const,
    ]) {
      await settle('x/a:1', answer);
      expect(answers()).to.deep.equal({ 'x/a:1': 'amd64' });
    }
    await settle('x/a:1', index('amd64', 's390x'));
    expect(answers()).to.deep.equal({ 'x/a:1': 'amd64,s390x' });
  });

  it('takes over what an earlier leader published, and writes nothing if it is right', async () => {
    const { answers, sent, pass } = publishing(EARLIER);
    await pass(5_000);
    expect(sent()).to.equal('get');
    expect(answers()).to.deep.equal({ 'x/a:a': 'amd64' });
  });

  it('drops an image that no pod has had for a day, and keeps one that a pod has', async () => {
    const { publisher, state, answers, pass } = publishing();
    for (const image of ['x/a:1', 'x/b:1']) {
      state.known.set(image, index('amd64'));
      publisher.images.namesOf(image);
    }
    state.pods = ['x/b:1'];
    await pass(5_000);
    for (let hour = 0; hour < 25; hour++) await pass(60 * 60_000);
    expect(answers()).to.deep.equal({ 'x/b:1': 'amd64' });
  });

  it('writes it again within a minute if somebody deleted or changed it', async () => {
    const { state, answers, pass, use } = publishing();
    await use('x/a:1', index('amd64'));
    state.stored = undefined;
    await pass(60_000);
    await pass(5_000);
    expect(answers()).to.deep.equal({ 'x/a:1': 'amd64' });
    state.stored = { ...(state.stored ?? {}), metadata: { name: 'known' }, images: { '/x/': '/s390x z:z ' } };
    await pass(60_000);
    await pass(5_000);
    expect(answers()['x/a:1']).to.equal('amd64');
  });

  it('writes nothing twice where the kind is of an earlier version and drops a field', async () => {
    const { state, sent, pass, use } = publishing({ ...EARLIER, daemonSets: undefined });
    Object.defineProperty(state, 'stored', { get: () => ({ ...EARLIER, daemonSets: undefined }), set: () => {} });
    await pass(0);
    await pass(60_000);
    expect(sent()).to.equal('get patch get');
    await use('x/b:1', index('amd64'));
    expect(sent(), 'another change').to.equal('patch');
  });

  it('goes by what another leader published since its last term', async () => {
    const { publisher, state, answers, pass, use, end } = publishing();
    await use('x/a:1', index('amd64'));
    await end();
    state.stored = { ...state.stored, images: { '/x/': '/arm64 a:1 ' } };
    const over = new AbortController();
    const ended = publisher.run(over.signal);
    for (const ms of [5_000, 10 * 60_000, 5_000]) await pass(ms);
    expect(answers()).to.deep.equal({ 'x/a:1': 'arm64' });
    over.abort();
    await ended;
  });

  it('says once that it cannot write, tries again, and goes on when it can', async () => {
    const { publisher, state, answers, errors, pass } = publishing();
    state.known.set('x/a:1', index('amd64'));
    publisher.images.namesOf('x/a:1');
    state.status = 500;
    await pass(5_000);
    await pass(60_000);
    expect(errors).to.have.lengthOf(1);
    expect(publisher.publication().problem).to.match(/cannot be written/);
    state.status = 0;
    await pass(30_000);
    expect(answers()).to.deep.equal({ 'x/a:1': 'amd64' });
    expect(publisher.publication().problem).to.equal(undefined);
  });

  it('writes nothing without the Lease, and takes everything back where nothing may be published any more', async () => {
    const { publisher, state, answers, sent, pass, use } = publishing(EARLIER);
    await pass(0);
    state.mayWrite = false;
    await use('x/b:1', index('amd64'));
    expect(sent()).to.equal('get');
    state.settings = settings({ mode: 'affinity' });
    await pass(5_000);
    expect(sent()).not.to.include('delete');
    state.mayWrite = true;
    await pass(5_000);
    await pass(60_000);
    expect(sent()).to.equal('delete');
    expect(publisher.publication().problem).to.equal('placement.mode is affinity');
    state.settings = settings();
    await pass(5_000);
    expect(answers()).to.deep.equal({ 'x/a:a': 'amd64', 'x/b:1': 'amd64' });
  });

  it('keeps what is known through a flood of names that nobody knows, and remembers nothing while it does not lead', async () => {
    const { publisher, state, answers, pass } = publishing();
    publisher.images.namesOf('x/early:1');
    state.known.set('x/a:1', index('amd64'));
    await pass(0);
    publisher.images.namesOf('x/a:1');
    await pass(5_000);
    for (let name = 0; name < 20_000; name++) publisher.images.namesOf(`x/${name}:1`);
    publisher.images.namesOf(`x/${'a'.repeat(300)}:1`);
    await pass(5_000);
    expect(answers()).to.deep.equal({ 'x/a:1': 'amd64' });
  });

  it('publishes nothing of a malformed name that an override matches: its parts would be the names of other images', async () => {
    const { publisher, state, answers, pass } = publishing();
    state.settings = settings({ overrides: [{ pattern: '*-amd64', architectures: ['amd64'] }] });
    await pass(0);
    for (const image of ['x/tool:1-amd64', 'x/victim:1 y-amd64']) publisher.images.namesOf(image);
    await pass(5_000);
    expect(answers()).to.deep.equal({ 'x/tool:1-amd64': '!amd64' });
  });

  it('follows changed settings, and leaves a namespace alone that refuses what archaware adds', async () => {
    const { publisher, state, answers, pass, use } = publishing();
    await use('x/a:1', index('386'));
    publisher.images.namesOf('x/b:1');
    state.settings = settings({ overrides: [{ pattern: 'x/*', architectures: ['arm64'] }] });
    state.refusing = ['shop'];
    await pass(5_000);
    expect(answers()).to.deep.equal({ 'x/a:1': '!arm64', 'x/b:1': '!arm64' });
    expect(state.stored?.excluded).to.equal('^(shop)$');
    state.settings = settings();
    await pass(5_000);
    expect(answers(), 'x/b:1 is not known otherwise').to.have.all.keys('x/a:1');
  });
});
