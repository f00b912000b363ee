import { createHash } from 'node:crypto';
import { type BigIntStats, createReadStream } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { codeOf } from './errors.ts';

export type WatchOptions = {
  readonly signal: AbortSignal;
  /** Milliseconds between two checks; 2000 unless told. */
  readonly intervalMs?: number;
  /** What `onChange` threw; the watching goes on. */
  readonly onError?: (error: unknown) => void;
};

/** A file as it was seen: `contents` says what is in it, and holds until `metadata` changes. */
type Seen = { readonly metadata: string; readonly contents: string; readonly isSettled: boolean };
type Snapshot = ReadonlyMap<string, Seen>;

/** Names that are looked at, in all. */
const MAX_NAMES = 10_000;
/** Bytes of a file whose contents are looked at, and of all files in one check; else its metadata must do. */
const MAX_FILE = 8 * 1024 * 1024;
const MAX_BYTES = 64 * 1024 * 1024;
/** Below a watched directory: `certs.d/<host>/hosts.toml`. */
const MAX_DEPTH = 2;
/** A file that changed less than so many milliseconds ago may change again without its times being seen to move. */
const SETTLED = 3000;

/**
 * Calls `onChange` when what the paths hold has changed since the call: files, and directories with their files one and
 * two levels deep. A missing path is a state like any other, and contents are compared rather than links, so that a
 * mounted Secret or ConfigMap needs nothing else. One check, and one `onChange`, at a time; what changes while it runs
 * is seen by the next check. Does not keep the process alive.
 *
 * The paths are asked for at each check, so that what is read may itself name what is to be watched; a path that is new
 * counts as a change. Resolves as soon as it has seen what there is: what is read after that, and changes, is told.
 */
export async function watchFiles(
  paths: () => readonly string[],
  onChange: () => void | Promise<void>,
  options: WatchOptions,
): Promise<void> {
  void watch(paths, await look(paths(), new Map()), onChange, options);
}

async function watch(
  paths: () => readonly string[],
  first: Snapshot,
  onChange: () => void | Promise<void>,
  { signal, intervalMs = 2000, onError }: WatchOptions,
): Promise<void> {
  let before = first;
  while (!signal.aborted) {
    await wait(intervalMs, undefined, { signal, ref: false }).catch(() => undefined);
    if (signal.aborted) return;
    const now = await look(paths(), before);
    const isSame =
      now.size === before.size && [...now].every(([path, seen]) => before.get(path)?.contents === seen.contents);
    before = now;
    if (isSame || signal.aborted) continue;
    try {
      await onChange();
    } catch (error) {
      onError?.(error);
    }
  }
}

/** All that the paths hold now. Never throws: what cannot be read is remembered as that. */
async function look(paths: readonly string[], before: Snapshot): Promise<Snapshot> {
  const seen = new Map<string, Seen>();
  let bytes = 0;

  async function visit(path: string, depth: number): Promise<void> {
    if (seen.has(path) || seen.size >= MAX_NAMES) return;
    try {
      const stats = await stat(path, { bigint: true });
      if (stats.isDirectory()) {
        seen.set(path, remark('a directory'));
        if (depth === MAX_DEPTH) return;
        // What begins with two dots is how the kubelet swaps a mounted Secret; its files are links into that.
        const names = (await readdir(path)).filter((name) => !name.startsWith('..')).sort();
        for (const name of names) await visit(join(path, name), depth + 1);
      } else {
        seen.set(path, await visitFile(path, stats));
      }
    } catch (error) {
      seen.set(path, remark(`unreadable: ${codeOf(error)}`));
    }
  }

  async function visitFile(path: string, stats: BigIntStats): Promise<Seen> {
    const { dev, ino, size, mtimeNs, ctimeNs } = stats;
    const metadata = [dev, ino, size, mtimeNs, ctimeNs].join(' ');
    const changedAt = Number(mtimeNs > ctimeNs ? mtimeNs : ctimeNs) / 1e6;
    const isSettled = Date.now() - changedAt > SETTLED;
    const known = before.get(path);
    if (known?.metadata === metadata && known.isSettled) return known;
    // A pipe or a device would be waited for.
    if (!stats.isFile() || size > MAX_FILE || bytes + Number(size) > MAX_BYTES) {
      return { metadata, contents: `unread: ${metadata}`, isSettled };
    }
    bytes += Number(size);
    return { metadata, contents: await hashOf(path), isSettled };
  }

  for (const path of paths) await visit(path, 0);
  return seen;
}

/** No further than the limit: files of the kernel say that they are empty, and never end. */
async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path, { end: MAX_FILE })) hash.update(chunk);
  return hash.digest('base64');
}

function remark(contents: string): Seen {
  return { metadata: '', contents, isSettled: false };
}
