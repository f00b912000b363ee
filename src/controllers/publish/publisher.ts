import type { Clock } from '../../kit/clock.ts';
import { isoTime } from '../../kit/duration.ts';
import { createTurns, inTurns } from '../../kit/fairness/event-loop.ts';
import { isObject, type JsonObject, numberAt, objectAt, stringAt } from '../../kit/json.ts';
import { createLru } from '../../kit/lru.ts';
import type { ApiClient } from '../../kube/api-client.ts';
import { isForbidden, isGone } from '../../kube/errors.ts';
import { find } from '../../kube/read.ts';
import type { Store } from '../../kube/watch/collection.ts';
import { APP_LABEL, DEPLOYMENT, FIELD_MANAGER, KNOWN_IMAGES, knownImagesPath } from '../../names.ts';
import { narrowingOf } from '../../placement/images.ts';
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
/** The longest name that is published. */
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

/**
 * Creates a publisher. It publishes only what answers everybody: found anonymously or with the operator's logins. An answer stays
 * published until another one is known, so a registry that fails takes nothing back.
 */
export function createPublisher(options: PublisherOptions) {
  const { client, namespace, mayWrite, clock, images, settings } = options;
  const turns = createTurns(clock);
  const path = knownImagesPath(namespace);
  /** What is published, and what would be if it were known: a flood of names that nobody knows takes nothing from the others. */
  const entries = createLru<PublishedEntry>(MOST_IMAGES);
  const unknown = createLru<PublishedEntry>(MOST_IMAGES);
  const dirty = new Set<PublishedEntry>();
  const settled = new Set<string>();
  /** Lookups end on every replica, and only a leader publishes. */
  let isRunning = false;
  let object: JsonObject = {};
  let present: Settings | undefined;
  let checkedAt: number | undefined;
  /** The last change, as JSON. */
  let sent: string | undefined;
  let publication: Publication = { images: 0, written: undefined, problem: NOT_YET };

  function use(image: string): PublishedEntry {
    const known = entries.get(image) ?? unknown.get(image);
    const entry = known ?? { image, canonical: images.canonicalOf(image), usedAt: 0, text: undefined };
    entry.usedAt = clock.monotonic();
    if (known === undefined) unknown.set(image, entry);
    return entry;
  }

  function say(entry: PublishedEntry, text: string | undefined): void {
    entry.text = text;
    (text === undefined ? entries : unknown).delete(entry.image);
    (text === undefined ? unknown : entries).set(entry.image, entry);
  }

  /** Finds out what is known of an image now. What its registry said stays if nothing is known; what an override said does not. */
  function refresh(entry: PublishedEntry, now: Settings): void {
    const subject = { image: entry.image, pullPolicy: '' };
    const said = narrowingOf(subject, { os: 'linux', hasRuntimeClass: false }, now, images.namesOf(entry.image), () =>
      images.answer(subject, '', [], NEVER),
    );
    const answer = answerFor(said);
    const isKnown = said.kind !== 'pending' && said.kind !== 'failed';
    if ('text' in answer) say(entry, answer.text);
    else if (isKnown || entry.text?.startsWith('!')) say(entry, undefined);
  }

  async function gather(): Promise<Map<string, string>> {
    const now = settings();
    const all = [...entries.values(), ...unknown.values()];
    const changed = now === present ? all.filter((one) => dirty.has(one) || settled.has(one.canonical)) : all;
    present = now;
    for (const news of [dirty, settled]) news.clear();
    await inTurns(turns, changed, (entry) => refresh(entry, now));
    return new Map([...entries.entries()].flatMap(([image, { text }]) => (text === undefined ? [] : [[image, text]])));
  }

  async function read(signal: AbortSignal): Promise<void> {
    const stored = (await find(client, path, signal)) ?? {};
    const versionOf = (one: JsonObject) => stringAt(objectAt(one, 'metadata'), 'resourceVersion');
    if (versionOf(stored) !== versionOf(object)) sent = undefined;
    note(stored);
  }

  /** Remembers what is stored. */
  function note(stored: JsonObject): void {
    object = stored;
    const [images, written] = [numberAt(stored, 'count') ?? 0, stringAt(stored, 'written')];
    publication = { images, written, problem: written === undefined ? NOT_YET : undefined };
  }

  async function write(signal: AbortSignal): Promise<void> {
    const servesDaemonSets = options.loops.includes('daemonsets') && settings().daemonSets === 'patch';
    const wanted = knownImages(await gather(), settings(), options.refusing(), servesDaemonSets);
    const changed = changedFields(object, wanted);
    const text = JSON.stringify(changed);
    // A CustomResourceDefinition of an earlier version drops fields that it does not know.
    if (text === '{}' || text === sent || !mayWrite()) return;
    sent = text;
    const written = isoTime(clock.wall());
    const query = `?fieldManager=${FIELD_MANAGER}`;
    const metadata = { name: KNOWN_IMAGES, namespace, labels: { [APP_LABEL]: DEPLOYMENT } };
    const answer = isObject(object.metadata)
      ? await client.request('patch', `${path}${query}`, { body: { ...changed, written }, signal })
      : await client.request('create', `${path.slice(0, path.lastIndexOf('/'))}${query}`, {
          body: { apiVersion: 'archaware.dev/v1', kind: 'KnownImages', metadata, ...wanted, written },
          signal,
        });
    // The answer is what is stored now, also if somebody else had changed it.
    note(isObject(answer) ? answer : {});
  }

  /** Takes everything back, if there is anything. Without the right to look there is nothing of ours. */
  async function withdraw(signal: AbortSignal): Promise<void> {
    await client.request('delete', path, { signal }).catch((error: unknown) => {
      if (!isGone(error) && !isForbidden(error)) throw error;
    });
    object = {};
  }

  /** Reads the object and what is in use again, from time to time. The first time, what an earlier leader published is taken over. */
  async function check(signal: AbortSignal): Promise<void> {
    const now = clock.monotonic();
    if (checkedAt !== undefined && now - checkedAt < CHECK_MS) return;
    await read(signal);
    checkedAt = now;
    for (const [image, text] of readAnswers(object)) if (!entries.has(image)) say(use(image), text);
    await inTurns(turns, options.pods.values(), (pod) => {
      for (const { image } of pod.images) {
        const entry = entries.peek(image);
        if (entry !== undefined) entry.usedAt = now;
      }
    });
    for (const [image, { usedAt }] of [...entries.entries()]) if (now - usedAt > UNUSED_MS) entries.delete(image);
  }

  async function step(signal: AbortSignal): Promise<void> {
    const why = whyNothingIsPublished(settings(), options.loops);
    if (why === undefined) {
      await check(signal);
      await write(signal);
      return;
    }
    checkedAt = undefined;
    for (const news of [dirty, settled]) news.clear();
    if (publication.problem === why || !mayWrite()) return;
    await withdraw(signal);
    publication = { images: 0, written: undefined, problem: why };
  }

  return {
    /** Notes which images are used: every decision asks for the names of its images first. */
    images: {
      ...images,
      namesOf(image: string) {
        if (isRunning && dirty.size < MOST_NEWS && image.length <= LONGEST_NAME) dirty.add(use(image));
        return images.namesOf(image);
      },
    },
    /** Notes that the lookup of an image (its canonical name) has ended. */
    settled(canonical: string): void {
      if (isRunning && settled.size < MOST_NEWS) settled.add(canonical);
    },
    /** Returns what is published. */
    publication: (): Publication => publication,
    /** Publishes until the term is over. A write that fails is tried again: what is not published is placed by the controllers. */
    async run(over: AbortSignal): Promise<void> {
      let isFailing = false;
      isRunning = true;
      // Another leader may have found other answers since an earlier term.
      checkedAt = undefined;
      for (const known of [entries, unknown]) known.clear();
      while (!over.aborted) {
        try {
          await step(over);
          isFailing = false;
        } catch (error) {
          if (!isFailing && !over.aborted) options.onError(error);
          isFailing = true;
          [checkedAt, sent] = [undefined, undefined];
          publication = { ...publication, problem: FAILS };
        }
        await clock.delay(isFailing ? RETRY_MS : BATCH_MS, over);
      }
      isRunning = false;
    },
  };
}
