import { randomBytes } from 'node:crypto';
import { access, constants, open, readdir, rename, stat, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { codeOf } from '../../kit/errors.ts';
import type { ImageCache } from './cache.ts';
import { CacheFormatError, cacheText, MAX_FILE, type Note, parseCache } from './format.ts';
import { sealed, unsealed } from './seal.ts';

export type CacheFileOptions = {
  readonly file: string;
  readonly cache: ImageCache;
  /** What else is kept in the file: `all` returns it, and `load` gets what was in the file. Default: nothing. */
  readonly notes?: { readonly all: () => readonly Note[]; readonly load: (notes: readonly Note[]) => void };
  /** The most entries of each kind. */
  readonly maxEntries: number;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /**
   * Called once for each problem until the file is written again, which is reported as undefined. A problem is never
   * fatal: the program goes on with the cache in memory.
   */
  readonly onProblem: (problem: string | undefined) => void;
  /**
   * Runs a function later; returns a function that cancels it. For tests; the default is a timer that does not keep the
   * process alive.
   */
  readonly schedule?: (milliseconds: number, run: () => void) => () => void;
};

export type CacheFile = {
  /** Fills the cache from the file, before the first lookup; returns how many entries the file had. Never throws. */
  load(): Promise<{ readonly digests: number; readonly tags: number }>;
  /** Call after each change of the cache or of the notes; the file is written within 10 s. */
  changed(): void;
  /** Writes the latest changes and then stops. Never throws. */
  close(): Promise<void>;
};

/** Milliseconds between a change and its write, and between a failed write and the next one. */
const INTERVAL = 10_000;
const RETRY = 60_000;
/** A temporary file that was not written to for this many milliseconds belongs to a process that died. */
const ABANDONED = 60_000;
/** Entries of a kind that are restored before other work gets a turn. */
const AT_ONCE = 5000;
/** The most entries of a kind that fit into a file. */
const MOST = 500_000;

/**
 * Keeps a cache's contents in a file across restarts. Several processes may use one file: the last one to write wins.
 */
export function createCacheFile(options: CacheFileOptions): CacheFile {
  const { file, cache, now } = options;
  const schedule = options.schedule ?? later;
  const most = Math.min(options.maxEntries, MOST);
  const reported = new Set<string>();
  let callOff: (() => void) | undefined;
  let running: Promise<void> | undefined;
  let isDirty = false;
  let isClosed = false;

  function report(problem: string): void {
    if (reported.has(problem)) return;
    reported.add(problem);
    options.onProblem(`images.cache.file: ${problem}`);
  }

  function reportUnwritable(error: unknown): void {
    report(
      `${file} cannot be written (${codeOf(error) || 'unknown error'}); ${adviceFor(codeOf(error), file)}. It is tried once a minute`,
    );
  }

  /** Returns the file's contents; undefined if the file does not exist, or must not be touched. */
  async function read(): Promise<Buffer | undefined> {
    try {
      if (!(await isOrdinary(file))) {
        await access(dirname(file), constants.W_OK).catch(reportUnwritable);
        return undefined;
      }
      const handle = await open(file, 'r');
      try {
        const { size } = await handle.stat();
        if (size > MAX_FILE) throw new CacheFormatError(`larger than ${MAX_FILE} bytes`);
        return await handle.readFile();
      } finally {
        await handle.close();
      }
    } catch (error) {
      if (error instanceof CacheFormatError) throw error;
      report(`${file} cannot be read (${codeOf(error) || 'unknown error'}); ${adviceFor(codeOf(error), file)}`);
      return undefined;
    }
  }

  async function setAside(problem: string): Promise<void> {
    const aside = `${file}.corrupt`;
    try {
      await rename(file, aside);
      report(`${file} is ${problem}; it was renamed to ${aside}, and images are looked up again`);
    } catch (error) {
      report(
        `${file} is ${problem}, and cannot be renamed to ${aside} (${codeOf(error) || 'unknown error'}); ${adviceFor(codeOf(error), file)}. ` +
          'Images are looked up again',
      );
    }
  }

  async function write(): Promise<void> {
    const temporary = `${file}.${randomBytes(6).toString('hex')}.tmp`;
    try {
      await isOrdinary(file);
      await removeAbandoned(file, now());
      const digests = cache.sharedDigests(most);
      await turn();
      const tags = cache.sharedTags(most);
      const handle = await open(temporary, 'wx', 0o600);
      try {
        for (const piece of sealed(cacheText({ digests, tags, notes: options.notes?.all() ?? [] }))) {
          await handle.writeFile(piece);
        }
        await handle.sync();
      } finally {
        await handle.close();
      }
      await rename(temporary, file);
    } catch (error) {
      await unlink(temporary).catch(() => undefined);
      throw error;
    }
  }

  /** Writes the file if something changed; returns the milliseconds to wait until the next time. */
  async function save(): Promise<number> {
    if (!isDirty) return INTERVAL;
    isDirty = false;
    const started = now();
    try {
      await write();
      if (reported.size > 0) options.onProblem(undefined);
      reported.clear();
      // On a slow disk, at most a twentieth of the time is spent writing.
      return Math.max(INTERVAL, 20 * (now() - started));
    } catch (error) {
      isDirty = true;
      reportUnwritable(error);
      return RETRY;
    }
  }

  function arrange(wait: number): void {
    if (callOff !== undefined || running !== undefined || isClosed || !isDirty) return;
    callOff = schedule(wait, () => {
      callOff = undefined;
      running = save().then((next) => {
        running = undefined;
        arrange(next);
      });
    });
  }

  return {
    async load() {
      try {
        const body = await read();
        if (body === undefined) return { digests: 0, tags: 0 };
        const text = await unsealed(body);
        const { digests, tags, notes } = await parseCache(text ?? body, options.maxEntries, now());
        // Whatever else is wrong with the file says more.
        if (text === undefined) throw new CacheFormatError('damaged: its checksum is missing or wrong');
        // From the end, because what was used last must be restored last.
        for (let end = Math.max(digests.length, tags.length); end > 0; end -= AT_ONCE) {
          const start = Math.max(0, end - AT_ONCE);
          cache.restore({ digests: digests.slice(start, end), tags: tags.slice(start, end) });
          await turn();
        }
        options.notes?.load(notes);
        return { digests: digests.length, tags: tags.length };
      } catch (error) {
        if (!(error instanceof CacheFormatError)) throw error;
        await setAside(error.message);
        return { digests: 0, tags: 0 };
      }
    },
    changed() {
      isDirty = true;
      arrange(INTERVAL);
    },
    async close() {
      isClosed = true;
      callOff?.();
      await running;
      await save();
    },
  };
}

function later(milliseconds: number, run: () => void): () => void {
  const timer = setTimeout(run, milliseconds);
  timer.unref();
  return () => clearTimeout(timer);
}

/**
 * Whether the file exists.
 *
 * @throws what `stat` throws, and an error with the code `EISDIR` or `ENOTFILE` if it is not an ordinary file: a rename
 * would replace a device
 */
async function isOrdinary(file: string): Promise<boolean> {
  const found = await stat(file).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  });
  if (found === undefined || found.isFile()) return found !== undefined;
  throw Object.assign(new Error('no file'), { code: found.isDirectory() ? 'EISDIR' : 'ENOTFILE' });
}

/** Removes temporary files of processes that died while they wrote. */
async function removeAbandoned(file: string, now: number): Promise<void> {
  const directory = dirname(file);
  const names = await readdir(directory);
  for (const name of names) {
    if (!name.startsWith(`${basename(file)}.`) || !/^\.[0-9a-f]{12}\.tmp$/.test(name.slice(basename(file).length)))
      continue;
    const path = join(directory, name);
    // Another process may rename or remove it at the same time.
    const changedAt = await stat(path).then(
      ({ mtimeMs }) => mtimeMs,
      () => now,
    );
    if (now - changedAt > ABANDONED) await unlink(path).catch(() => undefined);
  }
}

function adviceFor(code: string, file: string): string {
  switch (code) {
    case 'ENOENT':
    case 'ENOTDIR':
      return `create the directory ${dirname(file)}`;
    case 'EISDIR':
      return 'this is a directory: name a file in it';
    case 'ENOTFILE':
      return 'this is a device, a pipe or a socket: name a file';
    case 'EACCES':
    case 'EPERM':
      return 'let the user of this process read and write its directory';
    case 'EROFS':
      return 'the file system is read-only: name a file on a volume that can be written';
    case 'ENOSPC':
    case 'EDQUOT':
      return 'the disk or its quota is full: free or add some space';
    case 'EBUSY':
      return 'mount its directory instead of the file itself: it is replaced as a whole';
    default:
      return 'check its file system';
  }
}
