import { setImmediate as turn } from 'node:timers/promises';
import { isObject, type JsonObject, parseObject } from '../../kit/json.ts';
import { printableAscii } from '../../kit/printable.ts';
import { isDigest } from '../digest.ts';
import { ImageError } from '../errors.ts';
import { readPlatform, type Skipped } from '../manifest.ts';
import { parseReference } from '../reference.ts';
import { hasOwnFacts, type ImageFacts, type SharedEntries, type TagEntry } from './cache.ts';

/**
 * The file is one JSON object, `{"version":2,"digests":{…},"tags":{…}}`, with one entry on each line, the most recently
 * used first. A third object, `lies`, has what was learned of digests; this module does not read its entries. Version 1 had platforms of
 * indexes that no container runtime takes. The file is also read line by line: parsing 50,000 entries at once would block all other work for half a
 * second.
 */
const VERSION = 2;
const HEAD = `{"version":${VERSION},"digests":{`;
const MIDDLE = '},"tags":{';
/** This section is absent if it is empty. */
const NOTES = '},"lies":{';
const END = '}}';

/** The most bytes of a file that are read. */
export const MAX_FILE = 64 * 1024 * 1024;
/** The most bytes that are written of each kind; together they stay below {@link MAX_FILE}. */
const MAX_DIGESTS = 46 * 1024 * 1024;
const MAX_TAGS = 16 * 1024 * 1024;
const MAX_NOTES = 512 * 1024;
/**
 * The most bytes of an entry; a real one has about 500. An image whose entry is larger is looked up again after a
 * restart.
 */
const MAX_ENTRY = 64 * 1024;
/** Bytes that are written or read before other work gets a turn, which is a matter of milliseconds. */
const PIECE = 256 * 1024;
const MAX_REASON = 300;

/** A file that does not have the form that {@link cacheText} writes. The message completes a sentence: `it is …`. */
export class CacheFormatError extends Error {
  override readonly name = 'CacheFormatError';
}

/** An entry that belongs to another part of the program, and only lives in the same file. */
export type Note = readonly [key: string, value: JsonObject];

type FileEntries = SharedEntries & { readonly notes?: readonly Note[] };

/**
 * Returns the file's text in pieces of about 256 KiB. A tag is written only together with its digest, or with what was found
 * where manifests may be missing. Entries that do
 * not fit are left out; those are the ones that were unused for longest.
 */
export function* cacheText({ digests, tags, notes = [] }: FileEntries): Generator<string> {
  const written = new Set<string>();
  function* digestsAndTheTags(): Generator<readonly [string, ImageFacts]> {
    yield* digests;
    // In memory a tag may outlive its digest; without the digest it is useless.
    for (const [, { digest, found, ...tag }] of tags) {
      if (!written.has(digest) && !hasOwnFacts(tag)) yield [digest, found];
    }
  }
  function* complete(): Generator<readonly [string, TagEntry]> {
    for (const tag of tags) if (written.has(tag[1].digest) || hasOwnFacts(tag[1])) yield tag;
  }
  yield `${HEAD}\n`;
  yield* pieces(MAX_DIGESTS, digestsAndTheTags(), toFound, written);
  yield `\n${MIDDLE}\n`;
  yield* pieces(
    MAX_TAGS,
    complete(),
    ({ found, ...entry }) => (hasOwnFacts(entry) ? { ...entry, own: toFound(found) } : entry),
    new Set(),
  );
  if (notes.length > 0) {
    yield `\n${NOTES}\n`;
    yield* pieces(MAX_NOTES, notes, (value) => value, new Set());
  }
  yield `\n${END}\n`;
}

function* pieces<T>(
  most: number,
  entries: Iterable<readonly [string, T]>,
  toJson: (value: T) => object,
  written: Set<string>,
): Generator<string> {
  let total = 0;
  let piece = '';
  for (const [key, value] of entries) {
    const line = `${total === 0 ? '' : ',\n'}${JSON.stringify(key)}:${JSON.stringify(toJson(value))}`;
    const size = Buffer.byteLength(line);
    if (size > MAX_ENTRY) continue;
    if (total + size > most) break;
    total += size;
    written.add(key);
    piece += line;
    if (piece.length < PIECE) continue;
    yield piece;
    piece = '';
  }
  yield piece;
}

/**
 * Parses what {@link cacheText} wrote, and gives other work a turn meanwhile. Nothing in the file is trusted: an
 * invalid entry is left out.
 *
 * @param most entries of each kind
 * @param now the wall clock in milliseconds; no tag can have been checked later
 * @throws CacheFormatError if the file has another form or is not complete
 */
export async function parseCache(body: Buffer, most: number, now: number): Promise<Required<FileEntries>> {
  const digests = new Map<string, ImageFacts>();
  const tags = new Map<string, TagEntry>();
  const notes = new Map<string, JsonObject>();
  let section: 'none' | 'digests' | 'tags' | 'notes' | 'end' = 'none';
  let pause = PIECE;
  for (let start = 0, end = 0; start < body.length; start = end + 1) {
    const newline = body.indexOf(0x0a, start);
    end = newline < 0 ? body.length : newline;
    const line = body.toString('utf8', start, end);
    if (section === 'none') {
      if (line !== HEAD) throw new CacheFormatError(strange(line));
      section = 'digests';
    } else if (section === 'digests' && line === MIDDLE) section = 'tags';
    else if (section === 'tags' && line === NOTES) section = 'notes';
    else if ((section === 'tags' || section === 'notes') && line === END) section = 'end';
    else if (line !== '') {
      if (section === 'end') throw new CacheFormatError('followed by something else');
      const entry = line.length > MAX_ENTRY ? undefined : parseObject(`{${line.replace(/,$/, '')}}`);
      if (entry === undefined) throw new CacheFormatError('damaged or cut off');
      for (const [key, value] of Object.entries(entry)) {
        if (section === 'digests') setOnce(digests, key, readFound(key, value));
        else if (section === 'notes') setOnce(notes, key, isObject(value) ? value : undefined);
        else setOnce(tags, key, readTag(key, value, digests, now));
      }
    }
    if (end < pause) continue;
    pause = end + PIECE;
    await turn();
  }
  if (section !== 'end') throw new CacheFormatError(section === 'none' ? strange('') : 'cut off');
  const found = [...digests].slice(0, most);
  await turn();
  return { digests: found, tags: [...tags].slice(0, most), notes: [...notes] };
}

function toFound({ platforms, skipped, isIndex, only, isBundle }: ImageFacts): object {
  return { platforms, skipped, index: isIndex, only, bundle: isBundle };
}

function strange(firstLine: string): string {
  const version = /^\{\s*"version"\s*:\s*(\d{1,9})\b/.exec(firstLine.slice(0, 100))?.[1] ?? String(VERSION);
  if (version === String(VERSION)) return 'not a cache file of archaware';
  return `of version ${version}, which ${Number(version) < VERSION ? 'an earlier release wrote' : 'this program cannot read'}`;
}

/** If a key appears twice, the first entry is the one that was used last. */
function setOnce<T>(map: Map<string, T>, key: string, value: T | undefined): void {
  if (value !== undefined && !map.has(key)) map.set(key, value);
}

function readFound(digest: string, value: unknown): ImageFacts | undefined {
  if (!isDigest(digest) || !isObject(value)) return undefined;
  if (!Array.isArray(value.platforms) || value.platforms.length === 0) return undefined;
  const platforms = value.platforms.flatMap((platform: unknown) => {
    const read = isObject(platform) ? readPlatform(platform) : '';
    return typeof read === 'string' ? [] : [read];
  });
  const skipped = readSkipped(value.skipped);
  // A partial list of platforms would give wrong answers for as long as it is remembered.
  if (platforms.length < value.platforms.length || skipped === undefined) return undefined;
  if (typeof value.index !== 'boolean') return undefined;
  const { only } = value;
  if (only !== undefined && only !== 'containerd' && only !== 'CRI-O') return undefined;
  // Only an index has several entries.
  const isIndex = value.index || platforms.length + skipped.length > 1;
  return {
    platforms,
    skipped,
    isIndex,
    ...(only === undefined ? {} : { only }),
    ...(value.bundle === true && !isIndex ? { isBundle: true } : {}),
  };
}

function readSkipped(value: unknown): Skipped[] | undefined {
  if (!Array.isArray(value)) return undefined;
  return value.flatMap((entry: unknown) => {
    if (!isObject(entry) || typeof entry.reason !== 'string') return [];
    const reason = printableAscii(entry.reason, MAX_REASON);
    const { digest } = entry;
    const named = typeof digest === 'string' && isDigest(digest) ? { digest } : {};
    return [{ ...named, reason, ...(entry.isSecond === true ? { isSecond: true as const } : {}) }];
  });
}

function readTag(
  canonical: string,
  value: unknown,
  digests: ReadonlyMap<string, ImageFacts>,
  now: number,
): TagEntry | undefined {
  if (!isObject(value)) return undefined;
  const { digest, checkedAt, source, etag, headless, route, isPartial } = value;
  if (route !== undefined && (typeof route !== 'string' || !/^[0-9a-f]{32}$/.test(route))) return undefined;
  if (isPartial !== undefined && isPartial !== true) return undefined;
  const ofRoute: Pick<TagEntry, 'route' | 'isPartial'> = {
    ...(route === undefined ? {} : { route }),
    ...(isPartial === undefined ? {} : { isPartial }),
  };
  if (!isName(canonical, hasOwnFacts(ofRoute))) return undefined;
  if (typeof digest !== 'string' || typeof source !== 'string' || typeof checkedAt !== 'number') return undefined;
  const found = hasOwnFacts(ofRoute) ? readFound(digest, value.own) : digests.get(digest);
  if (found === undefined || !/^[\x21-\x7e]{1,1024}$/.test(source) || !(checkedAt >= 0)) return undefined;
  return {
    digest,
    found,
    checkedAt: Math.min(checkedAt, now),
    source,
    ...(typeof etag === 'string' && /^(W\/)?"[\x21\x23-\x7e]{1,256}"$/.test(etag) ? { etag } : {}),
    ...(headless === true ? { headless } : {}),
    ...ofRoute,
  };
}

/** Whether a name is in the form under which tags are looked up: that of a tag, or also of a digest with an entry of its own. */
function isName(canonical: string, mayBeDigest: boolean): boolean {
  try {
    const reference = parseReference(canonical);
    return reference.canonical === canonical && (mayBeDigest || reference.digest === undefined);
  } catch (error) {
    if (error instanceof ImageError) return false;
    throw error;
  }
}
