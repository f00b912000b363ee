import type { Clock } from '../../kit/clock.ts';
import { isoTime } from '../../kit/duration.ts';
import { createTurns, inTurns, type Turns } from '../../kit/fairness/event-loop.ts';
import { isObject, type JsonObject, numberAt, objectAt, stringAt } from '../../kit/json.ts';
import { createLru } from '../../kit/lru.ts';
import type { ApiClient } from '../../kube/api-client.ts';
import { isForbidden, isGone } from '../../kube/errors.ts';
import { find } from '../../kube/read.ts';
import type { Store } from '../../kube/watch/collection.ts';
import { APP_LABEL, DEPLOYMENT, FIELD_MANAGER, KNOWN_IMAGES, knownImagesPath } from '../../names.ts';
import { narrowingOf } from '../../placement/images.ts';
import { readRuntime } from '../../placement/objects/asked-platform.ts';
import type { Pod } from '../../placement/objects/pod.ts';
import {
  answerFor,
  changedFields,
  knownImages,
  NOT_YET,
  readAnswers,
  whyNothingIsPublished,
} from '../../placement/publish/known-images.ts';
import type { Settings } from '../../placement/settings.ts';
import { type ImageSource, NEVER } from '../image-source.ts';

/** The most images that are published, and the most that are used and not known: their names are their pods' authors'. */
const MOST_IMAGES = 2_000;
/** The most images that are noted between two batches. One that is not is noted by its next use. */
const MOST_NEWS = 10_000;
const LONGEST_NAME = 255;
/** Changes are gathered for this long. */
const BATCH_MS = 5_000;
/** After a failed write. A new CustomResourceDefinition needs some seconds until it is served. */
const RETRY_MS = 30_000;
/** How often the object is read again, in case a person changed it or etcd was restored, and images are dropped that no pod has. */
const CHECK_MS = 60_000;
/** An image that no pod has is dropped after this time: nobody checks its tag any more. */
const UNUSED_MS = 24 * 60 * 60_000;

const FAILS = 'it cannot be written: see the log of the leader';

export type PublisherOptions = {
  readonly client: Pick<ApiClient, 'request'>;
  readonly namespace: string;
  readonly mayWrite: () => boolean;
  readonly clock: Clock;
  readonly images: ImageSource;
  readonly settings: () => Settings;
  readonly loops: readonly string[];
  /** Returns the namespaces in which the API server refuses what archaware adds to pods. */
  readonly refusing: () => Iterable<string>;
  readonly pods: Pick<Store<Pod>, 'values'>;
  readonly onError: (error: unknown) => void;
};

/** What is published, for people. `written`: when the object was written last, as `2026-01-01T00:00:00.000Z`. */
export type Publication = {
  readonly images: number;
  readonly written: string | undefined;
  readonly problem: string | undefined;
};

type PublishedEntry = { readonly image: string; readonly canonical: string; usedAt: number; text: string | undefined };

type PublisherState = PublisherOptions & {
  readonly turns: Turns;
  /** What is published, and what would be if it were known: a flood of names that nobody knows takes nothing from the others. */
  readonly entries: ReturnType<typeof createLru<PublishedEntry>>;
  readonly unknown: ReturnType<typeof createLru<PublishedEntry>>;
  readonly dirty: Set<PublishedEntry>;
  readonly settled: Set<string>;
  /** Lookups end on every replica, and only a leader publishes. */
  isRunning: boolean;
  /** The object as it is stored. */
  object: JsonObject;
  present: Settings | undefined;
  checkedAt: number | undefined;
  /** The last change, as JSON. */
  sent: string | undefined;
  publication: Publication;
};

/**
 * Creates a publisher. It publishes only what answers everybody: found anonymously or with the operator's logins. An answer stays
 * published until another one is known, so a registry that fails takes nothing back.
 */
export function createPublisher(options: PublisherOptions) {
  const { clock, images } = options;
  const state: PublisherState = {
    ...{ ...options, turns: createTurns(clock), entries: createLru(MOST_IMAGES), unknown: createLru(MOST_IMAGES) },
    ...{ dirty: new Set(), settled: new Set(), isRunning: false, object: {}, present: undefined, checkedAt: undefined },
    ...{ sent: undefined, publication: { images: 0, written: undefined, problem: NOT_YET } },
  };
  return {
    /**
     * Notes which images are used: every decision asks for the names of its images first. A malformed name is not noted: with a space in
     * it, what `images.overrides` says of it would be published of other images.
     */
    images: {
      ...images,
      namesOf(image: string) {
        const { isRunning, dirty } = state;
        const names = images.namesOf(image);
        const hasRoom = dirty.size < MOST_NEWS && image.length <= LONGEST_NAME;
        if (isRunning && hasRoom && names.length > 0) dirty.add(use(state, image));
        return names;
      },
    },
    /** Notes that the lookup of an image (its canonical name) has ended. */
    settled(canonical: string): void {
      if (state.isRunning && state.settled.size < MOST_NEWS) state.settled.add(canonical);
    },
    publication: (): Publication => state.publication,
    /** Publishes until the term is over. A write that fails is tried again: what is not published is placed by the controllers. */
    async run(over: AbortSignal): Promise<void> {
      let isFailing = false;
      state.isRunning = true;
      // Another leader may have found other answers since an earlier term.
      state.checkedAt = undefined;
      for (const known of [state.entries, state.unknown]) known.clear();
      while (!over.aborted) {
        try {
          await step(state, over);
          isFailing = false;
        } catch (error) {
          if (!isFailing && !over.aborted) options.onError(error);
          isFailing = true;
          [state.checkedAt, state.sent] = [undefined, undefined];
          state.publication = { ...state.publication, problem: FAILS };
        }
        await clock.delay(isFailing ? RETRY_MS : BATCH_MS, over);
      }
      state.isRunning = false;
    },
  };
}

async function step(state: PublisherState, signal: AbortSignal): Promise<void> {
  const why = whyNothingIsPublished(state.settings(), state.loops);
  if (why === undefined) {
    await check(state, signal);
    await write(state, signal);
    return;
  }
  state.checkedAt = undefined;
  for (const news of [state.dirty, state.settled]) news.clear();
  if (state.publication.problem === why || !state.mayWrite()) return;
  // Without the right to look there is nothing of ours.
  await state.client.request('delete', knownImagesPath(state.namespace), { signal }).catch((error: unknown) => {
    if (!isGone(error) && !isForbidden(error)) throw error;
  });
  state.object = {};
  state.publication = { images: 0, written: undefined, problem: why };
}

/** Reads the object and what is in use again, from time to time. The first time, what an earlier leader published is taken over. */
async function check(state: PublisherState, signal: AbortSignal): Promise<void> {
  const { entries, checkedAt } = state;
  const now = state.clock.monotonic();
  if (checkedAt !== undefined && now - checkedAt < CHECK_MS) return;
  const stored = (await find(state.client, knownImagesPath(state.namespace), signal)) ?? {};
  const versionOf = (one: JsonObject) => stringAt(objectAt(one, 'metadata'), 'resourceVersion');
  if (versionOf(stored) !== versionOf(state.object)) state.sent = undefined;
  note(state, stored);
  state.checkedAt = now;
  for (const [image, text] of readAnswers(stored)) if (!entries.has(image)) say(state, use(state, image), text);
  await inTurns(state.turns, state.pods.values(), (pod) => {
    for (const { image } of pod.images) {
      const entry = entries.peek(image);
      if (entry !== undefined) entry.usedAt = now;
    }
  });
  for (const [image, { usedAt }] of [...entries.entries()]) if (now - usedAt > UNUSED_MS) entries.delete(image);
}

function note(state: PublisherState, stored: JsonObject): void {
  state.object = stored;
  const [images, written] = [numberAt(stored, 'count') ?? 0, stringAt(stored, 'written')];
  state.publication = { images, written, problem: written === undefined ? NOT_YET : undefined };
}

function use({ entries, unknown, images, clock }: PublisherState, image: string): PublishedEntry {
  const known = entries.get(image) ?? unknown.get(image);
  const entry = known ?? { image, canonical: images.canonicalOf(image), usedAt: 0, text: undefined };
  entry.usedAt = clock.monotonic();
  if (known === undefined) unknown.set(image, entry);
  return entry;
}

function say({ entries, unknown }: PublisherState, entry: PublishedEntry, text: string | undefined): void {
  entry.text = text;
  (text === undefined ? entries : unknown).delete(entry.image);
  (text === undefined ? unknown : entries).set(entry.image, entry);
}

async function write(state: PublisherState, signal: AbortSignal): Promise<void> {
  const { client, namespace, object, loops, settings } = state;
  const servesDaemonSets = loops.includes('daemonsets') && settings().daemonSets === 'patch';
  const wanted = knownImages(await gather(state), settings(), state.refusing(), servesDaemonSets);
  const changed = changedFields(object, wanted);
  const text = JSON.stringify(changed);
  // A CustomResourceDefinition of an earlier version drops fields that it does not know.
  if (text === '{}' || text === state.sent || !state.mayWrite()) return;
  state.sent = text;
  const written = isoTime(state.clock.wall());
  const path = knownImagesPath(namespace);
  const query = `?fieldManager=${FIELD_MANAGER}`;
  const metadata = { name: KNOWN_IMAGES, namespace, labels: { [APP_LABEL]: DEPLOYMENT } };
  const answer = isObject(object.metadata)
    ? await client.request('patch', `${path}${query}`, { body: { ...changed, written }, signal })
    : await client.request('apply', `${path}${query}`, {
        body: { apiVersion: 'archaware.dev/v1', kind: 'KnownImages', metadata, ...wanted, written },
        signal,
      });
  // The answer is what is stored now, also if somebody else had changed it.
  note(state, isObject(answer) ? answer : {});
}

async function gather(state: PublisherState): Promise<Map<string, string>> {
  const { entries, unknown, dirty, settled } = state;
  const now = state.settings();
  const all = [...entries.values(), ...unknown.values()];
  const isSame = now === state.present;
  const changed = isSame ? all.filter((one) => dirty.has(one) || settled.has(one.canonical)) : all;
  state.present = now;
  for (const news of [dirty, settled]) news.clear();
  await inTurns(state.turns, changed, (entry) => refresh(state, entry, now));
  return new Map([...entries.entries()].flatMap(([image, { text }]) => (text === undefined ? [] : [[image, text]])));
}

/** Finds out what is known of an image now. What its registry said stays if nothing is known; what an override said does not. */
function refresh(state: PublisherState, entry: PublishedEntry, now: Settings): void {
  const { images } = state;
  const subject = { image: entry.image, pullPolicy: '' };
  const said = narrowingOf(subject, readRuntime({}), now, images.namesOf(entry.image), () =>
    images.answer(subject, '', [], NEVER),
  );
  const answer = answerFor(said);
  const isKnown = said.kind !== 'pending' && said.kind !== 'failed';
  if ('text' in answer) say(state, entry, answer.text);
  else if (isKnown || entry.text?.startsWith('!')) say(state, entry, undefined);
}
