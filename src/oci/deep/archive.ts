import { Parser } from 'tar/parse';
import { messageOf } from '../../kit/errors.ts';
import { printableAscii } from '../../kit/printable.ts';
import { GZIP, LayerProblem, type Reading, ZSTD } from './layer-reading.ts';
import type { LayerTree } from './layer-tree.ts';
import { formatOf, HEAD_BYTES } from './program-format.ts';

/** Longer names and targets are not of this world: Linux allows 4096 bytes. */
const LONGEST_NAME = 4096;

/** Feeds an archive to the tree. The library's own decompression is never reached. */
export function createArchive({ tree, allowance }: Omit<Reading, 'isEnough'>) {
  let problem: string | undefined;
  let hasEnd = false;
  let hasBegun = false;
  const parser = new Parser({
    // Longer extended headers are skipped.
    maxMetaEntrySize: 256 * 1024,
    onwarn: (code, message) => {
      const isEmpty = code === 'TAR_BAD_ARCHIVE' && hasEnd;
      if (['TAR_ENTRY_INVALID', 'TAR_BAD_ARCHIVE', 'TAR_ABORT'].includes(code) && !isEmpty) problem ??= String(message);
    },
  });
  parser.on('error', (error: unknown) => {
    problem ??= messageOf(error);
  });
  parser.on('nullBlock', () => {
    hasEnd = true;
  });
  // What the library does not know, such as a sparse file of GNU tar.
  parser.on('ignoredEntry', ({ path, type, meta }) => {
    if (meta) problem ??= 'the header of an entry is too large';
    else add(path, { kind: 'other', text: `of the type ${type} in its layer, which is not read` });
  });
  parser.on('entry', (entry) => {
    const { path, linkpath = '', mode = 0, size } = entry;
    const isExecutable = (mode & 0o111) !== 0;
    const isFile = ['File', 'OldFile', 'ContiguousFile'].includes(entry.type);
    // Other files cannot be what is started, and are no whiteouts; a layer may have hundreds of thousands of them.
    const isOfUse = isExecutable || path.includes('.wh.') || tree.isAwaited(path);
    const isWanted = isFile && path.length <= LONGEST_NAME && isOfUse;
    if (isWanted) {
      const head: Buffer[] = [];
      let length = 0;
      let isAdded = false;
      const finish = (): void => {
        if (isAdded) return;
        isAdded = true;
        add(path, { kind: 'file', isExecutable, format: formatOf(Buffer.concat(head, length)) });
      };
      const wanted = Math.min(HEAD_BYTES, size);
      entry.on('data', (data: Buffer) => {
        if (isAdded) return;
        const part = data.subarray(0, wanted - length);
        head.push(part);
        length += part.length;
        if (length === wanted) finish();
      });
      if (size === 0) finish();
      return void entry.resume();
    }
    entry.resume();
    if (entry.type === 'SymbolicLink' || entry.type === 'Link') {
      const isLong = linkpath.length > LONGEST_NAME;
      const kind = entry.type === 'Link' ? 'link' : 'symlink';
      add(path, isLong ? { kind: 'other', text: 'a link with a target that is too long' } : { kind, target: linkpath });
    } else if (entry.type === 'Directory' || entry.type === 'GNUDumpDir') add(path, { kind: 'directory' });
    else if (!isFile) add(path, { kind: 'other', text: `of the type ${entry.type} in its layer` });
  });

  function add(path: string, node: Parameters<LayerTree['add']>[1]): void {
    if (path.length > LONGEST_NAME) return;
    const before = tree.bytes();
    tree.add(path, node);
    allowance.memory -= tree.bytes() - before;
  }

  function refuse(): void {
    if (problem !== undefined) {
      throw new LayerProblem(`was not found: a layer is not a valid tar archive (${printableAscii(problem, 100)})`);
    }
    if (allowance.memory < 0) throw new LayerProblem('was not reached: the layers have too many entries');
  }

  /** The library throws for some archives, and warns of others. */
  function feed(work: () => void): void {
    try {
      work();
    } catch (error) {
      problem ??= messageOf(error);
    }
    refuse();
  }

  return {
    write(piece: Uint8Array) {
      const bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
      if (!hasBegun) {
        hasBegun = true;
        const start = bytes.subarray(0, 4);
        if (start.subarray(0, 2).equals(GZIP) || start.equals(ZSTD)) problem ??= 'it is compressed twice';
        refuse();
      }
      feed(() => parser.write(bytes));
    },
    end() {
      feed(() => parser.end());
    },
  };
}
