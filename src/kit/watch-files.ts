import { createHash } from 'node:crypto';
import { type BigIntStats, createReadStream } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from './clock.ts';
import { codeOf } from './errors.ts';

export type WatchFilesOptions = {
  /** Paces the checks. */
  readonly clock: Pick<Clock, 'delay'>;
  readonly signal: AbortSignal;
  /** Milliseconds between two checks; default: 2000. */
  readonly intervalMs?: number;
  /** Gets what `onRead` threw for a change; watching goes on. */
  readonly onError?: (error: unknown) => void;
};

/** A file as it was last seen. `contents` identifies what is in it, and stays valid until `metadata` changes. */
type SeenFile = { readonly metadata: string; readonly contents: string; readonly isSettled: boolean };
type Snapshot = ReadonlyMap<string, SeenFile>;

const MAX_NAMES = 10_000;
/** The most bytes that are read of one file, and of all files in one check. Beyond that, only metadata is compared. */
const MAX_FILE = 8 * 1024 * 1024;
const MAX_BYTES = 64 * 1024 * 1024;
/** How deep a watched directory is searched, for example `certs.d/<host>/hosts.toml`. */
const MAX_DEPTH = 2;
/** Milliseconds. A file that changed more recently may change again while its times stay the same. */
const SETTLED = 3000;

/**
 * Calls `onRead` once with false when the watch has begun, and with true for each later change of the contents. The first
 * call closes a gap: a change after the caller first read the files, and before the watch began, is otherwise never
 * noticed. Resolves when the first call has ended, and throws what it throws.
 *
 * A path names a file, or a directory whose files are watched one and two levels deep. A missing path counts as a state.
 * Contents are compared, not links, so a mounted Secret or ConfigMap needs no special care. Only one call or
 * check runs at a time; a change during either is seen by the next check.
 * Watching ends with the signal, and keeps the process alive until then.
 *
 * `paths` is called at each check, because a file may name other files to watch; a new path counts as a change.
 */
export async function watchFiles(
  paths: () => readonly string[],
  onRead: (isChanged: boolean) => void | Promise<void>,
  options: WatchFilesOptions,
): Promise<void> {
  const before = await look(paths(), new Map());
  try {
    await onRead(false);
  } finally {
    void watch(paths, before, () => onRead(true), options);
  }
}

async function watch(
  paths: () => readonly string[],
  first: Snapshot,
  onChange: () => void | Promise<void>,
  { clock, signal, intervalMs = 2000, onError }: WatchFilesOptions,
): Promise<void> {
  let before = first;
  /** Whether a file changed while `onChange` read the files: it may have read a state that no check ever saw. */
  let isUnsure = false;
  while (!signal.aborted) {
    await clock.delay(intervalMs, signal);
    if (signal.aborted) return;
    const now = await look(paths(), before);
    const isSame = isEqual(before, now, ({ contents }) => contents) && !isUnsure;
    before = now;
    if (isSame || signal.aborted) continue;
    try {
      await onChange();
    } catch (error) {
      onError?.(error);
    }
    before = await look(paths(), now);
    isUnsure = !isEqual(before, now, ({ metadata, contents }) => `${metadata} ${contents}`);
  }
}

function isEqual(one: Snapshot, other: Snapshot, what: (seen: SeenFile) => string): boolean {
  if (one.size !== other.size) return false;
  return [...one].every(([path, seen]) => {
    const found = other.get(path);
    return found !== undefined && what(found) === what(seen);
  });
}

/** Returns the current state of the paths. Never throws: a file that cannot be read is recorded as unreadable. */
async function look(paths: readonly string[], before: Snapshot): Promise<Snapshot> {
  const seen = new Map<string, SeenFile>();
  let bytes = 0;

  async function visit(path: string, depth: number): Promise<void> {
    if (seen.has(path) || seen.size >= MAX_NAMES) return;
    try {
      const stats = await stat(path, { bigint: true });
      if (stats.isDirectory()) {
        seen.set(path, remark('a directory'));
        if (depth === MAX_DEPTH) return;
        // The kubelet keeps the real files of a mounted Secret in names that begin with two dots, and swaps links to them.
        const names = (await readdir(path)).filter((name) => !name.startsWith('..')).sort();
        for (const name of names) await visit(join(path, name), depth + 1);
      } else {
        seen.set(path, await visitFile(path, stats));
      }
    } catch (error) {
      seen.set(path, remark(`unreadable: ${codeOf(error)}`));
    }
  }

  async function visitFile(path: string, stats: BigIntStats): Promise<SeenFile> {
    const { dev, ino, size, mtimeNs, ctimeNs } = stats;
    const metadata = [dev, ino, size, mtimeNs, ctimeNs].join(' ');
    const changedAt = Math.max(Number(mtimeNs), Number(ctimeNs)) / 1e6;
    // The times of files are the machine's, whatever clock paces the checks.
    const isSettled = Date.now() - changedAt > SETTLED;
    const known = before.get(path);
    if (known?.metadata === metadata && known.isSettled) return known;
    // Reading a pipe or a device could block for ever.
    if (!stats.isFile() || size > MAX_FILE || bytes + Number(size) > MAX_BYTES) {
      return { metadata, contents: `unread: ${metadata}`, isSettled };
    }
    bytes += Number(size);
    return { metadata, contents: await hashOf(path), isSettled };
  }

  for (const path of paths) await visit(path, 0);
  return seen;
}

/** Stops at the limit: some kernel files report a size of 0 and never end. */
async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path, { end: MAX_FILE })) hash.update(chunk);
  return hash.digest('base64');
}

function remark(contents: string): SeenFile {
  return { metadata: '', contents, isSettled: false };
}
