import type { Format } from './program-format.ts';

/** What a layer says about a path. */
export type Node =
  | { readonly kind: 'file'; readonly isExecutable: boolean; readonly format: Format }
  | { readonly kind: 'symlink'; readonly target: string }
  /** A second name of a file: `target` is a path from the root. */
  | { readonly kind: 'link'; readonly target: string }
  | { readonly kind: 'directory' }
  /** A device, a sparse file: it exists, and is not read. */
  | { readonly kind: 'other'; readonly text: string };

/** What one layer says of a path. */
type Mark = {
  readonly layer: number;
  node?: Node;
  /** Whether the layer hides the path, and all below it, as the layers under it have them. */
  isWhiteout?: true;
  /** The same for all below the path only. */
  isOpaque?: true;
  /** Of a layer under this one. */
  next?: Mark;
};

/** What the layers say of a path. */
type Entry = {
  children?: Map<string, Entry>;
  /** Of the top layer that says something. */
  first?: Mark;
  /** The number of layers that were whole when an answer last depended on what is not read yet of this path. */
  awaited?: number;
};

/** An entry as a walk came to it. `hiddenBy`: the top one of the layers that hide it, as those under it have it. */
type Stop = { readonly entry: Entry; readonly hiddenBy: number };

/** Where a path leads. `unread`: that depends on layers, or the rest of a layer, that were not read. */
type Place =
  | { readonly kind: 'found'; readonly node: Exclude<Node, { kind: 'symlink' | 'link' | 'directory' }> }
  | { readonly kind: 'absent' | 'unread' | 'loop' | 'directory' };

/** As Linux (`MAXSYMLINKS`). */
const MAX_LINKS = 40;
/** Components of a path. Linux allows 4096 bytes, so this is enough, and long paths of hostile layers cost little. */
const MAX_DEPTH = 256;
const ENTRY_BYTES = 150;
const MARK_BYTES = 100;

/** The file system of an image, as far as its layers were read, from the top layer down. */
export type LayerTree = ReturnType<typeof createLayerTree>;

type LayerTreeOptions = {
  /** Called for each component of a path that is looked up. What it throws ends the look-up. */
  readonly step: () => void;
  /** As in Windows; default: false. */
  readonly isCaseless?: boolean;
};

export function createLayerTree({ step, isCaseless = false }: LayerTreeOptions) {
  const root: Entry = {};
  let present = -1;
  /** The number of layers that were read to their end. */
  let complete = 0;
  let isWhole = false;
  let bytes = 0;
  let isNew = false;
  /** Answers, so that none is worked out twice. `until`: the number of changes up to which it holds. */
  const kept = new Map<string, { readonly place: Place; readonly until: number }>();
  let changes = 0;

  const pathOf = (name: string): string => (isCaseless ? normalPath(name).toLowerCase() : normalPath(name));

  function childOf(entry: Entry, part: string): Entry {
    entry.children ??= new Map();
    const known = entry.children.get(part);
    if (known !== undefined) return known;
    const child: Entry = {};
    entry.children.set(part, child);
    bytes += ENTRY_BYTES + 2 * part.length;
    return child;
  }

  /** Returns the mark of the present layer at a path. */
  function markAt(path: string): { entry: Entry; mark: Mark } {
    const entry = path === '' ? root : path.split('/').reduce(childOf, root);
    let last = entry.first;
    while (last?.next !== undefined) last = last.next;
    if (last?.layer === present) return { entry, mark: last };
    const mark: Mark = { layer: present };
    if (last === undefined) entry.first = mark;
    else last.next = mark;
    bytes += MARK_BYTES;
    return { entry, mark };
  }

  /** Returns the top one of the whole layers, from one down, whose mark is such; infinite if there is none. */
  function layerOf(entry: Entry, from: number, isSuch: (mark: Mark) => boolean): number {
    for (let mark = entry.first; mark !== undefined && mark.layer < complete; mark = mark.next) {
      if (mark.layer >= from && isSuch(mark)) return mark.layer;
    }
    return Number.POSITIVE_INFINITY;
  }

  function startOf(from: number): Stop {
    return { entry: root, hiddenBy: layerOf(root, from, isHidden) };
  }

  function descend({ entry, hiddenBy }: Stop, part: string, from: number): Stop {
    step();
    const child = childOf(entry, part);
    return {
      entry: child,
      hiddenBy: Math.min(hiddenBy, layerOf(entry, from, hidesContent), layerOf(child, from, isHidden)),
    };
  }

  /** Asks the layers from `from` down about one path, without following links. */
  function look({ entry, hiddenBy }: Stop, from: number): { node: Node; layer: number } | 'absent' | 'unread' {
    for (let mark = entry.first; mark !== undefined && mark.layer <= hiddenBy; mark = mark.next) {
      const { node, layer } = mark;
      if (node !== undefined && layer >= from) return { node, layer };
    }
    if (isWhole || hiddenBy < complete) return 'absent';
    entry.awaited = complete;
    return 'unread';
  }

  function walk(path: string): { place: Place; isFinal: boolean } {
    let from = 0;
    let trail = [startOf(from)];
    let rest = path === '' ? [] : path.split('/');
    let isUnsure = false;
    let isFinal = true;
    const at = (place: Place) => ({ place, isFinal });
    for (let links = 0; ; ) {
      const part = rest.shift();
      if (part === undefined) return at({ kind: 'directory' });
      if (part === '..') {
        if (trail.length > 1) trail.pop();
        continue;
      }
      const here = trail.at(-1);
      if (here === undefined || trail.length > MAX_DEPTH + 1) return at({ kind: 'absent' });
      const stop = descend(here, part, from);
      trail.push(stop);
      let seen = look(stop, from);
      if (typeof seen !== 'string' && seen.node.kind === 'symlink' && rest.length > 0 && !rest.includes('..')) {
        // What a layer puts below a link of its own or of a lower layer is what one finds there.
        const below: Stop[] = [];
        for (const each of rest) below.push(descend(below.at(-1) ?? stop, each, from));
        const direct = look(below.at(-1) ?? stop, from);
        if (typeof direct !== 'string' && direct.layer <= seen.layer) {
          trail.push(...below);
          rest = [];
          seen = direct;
        }
      }
      if (typeof seen === 'string') {
        if (seen === 'unread') {
          isUnsure = true;
          isFinal = false;
        }
        // A directory needs no entry of its own.
        if (rest.length > 0) continue;
        return at({ kind: isUnsure ? 'unread' : 'absent' });
      }
      const { node, layer } = seen;
      if (layer >= complete) isFinal = false;
      switch (node.kind) {
        case 'directory':
          if (rest.length === 0) return at({ kind: 'directory' });
          continue;
        case 'file':
        case 'other':
          return at(rest.length === 0 ? { kind: 'found', node } : { kind: 'absent' });
        case 'symlink':
        case 'link': {
          links += 1;
          if (links > MAX_LINKS) return at({ kind: 'loop' });
          const target = node.target.split('/').filter((each) => each !== '' && each !== '.');
          if (target.length + rest.length > MAX_DEPTH) return at({ kind: 'absent' });
          // A hard link keeps the file that it was made of, whatever upper layers put at that path.
          if (node.kind === 'link') from = layer;
          if (node.kind === 'link' || node.target.startsWith('/')) trail = [startOf(from)];
          else trail.pop();
          rest = [...target, ...rest];
          continue;
        }
        default:
          return node satisfies never;
      }
    }
  }

  return {
    /** Begins the layer below the present one. */
    begin(): void {
      present += 1;
    },
    /** Adds an entry of the present layer by its name in the archive. */
    add(name: string, node: Node): void {
      if (present < 0) return;
      changes += 1;
      const path = pathOf(name);
      const slash = path.lastIndexOf('/');
      const [directory, base] = [path.slice(0, Math.max(slash, 0)), path.slice(slash + 1)];
      if (base.startsWith('.wh.')) {
        // Names of aufs, which other tools ignore, begin with the prefix twice.
        if (base === '.wh..wh..opq') markAt(directory).mark.isOpaque = true;
        else if (!base.startsWith('.wh..wh.'))
          markAt(directory === '' ? base.slice(4) : `${directory}/${base.slice(4)}`).mark.isWhiteout = true;
        return;
      }
      const { entry, mark } = markAt(path);
      mark.node = node;
      if ('target' in node) bytes += 2 * node.target.length;
      if (entry.awaited === complete) isNew = true;
    },
    /** Says that the present layer was read to its end. `isLast`: there is none below it. */
    end(isLast: boolean): void {
      complete = present + 1;
      isWhole = isLast;
      isNew = true;
      changes += 1;
    },
    /** Follows links. `path`: from the root, as {@link normalPath} returns it. Throws what `step` throws. */
    resolve(path: string): Place {
      const wanted = isCaseless ? path.toLowerCase() : path;
      const known = kept.get(wanted);
      if (known !== undefined && known.until >= changes) return known.place;
      const { place, isFinal } = walk(wanted);
      kept.set(wanted, { place, until: isFinal ? Number.POSITIVE_INFINITY : changes });
      return place;
    },
    /** Whether an entry was added, since the last call, on which an `unread` answer of `resolve` depended. */
    hasNews(): boolean {
      const had = isNew;
      isNew = false;
      return had;
    },
    /** Whether an answer of `resolve` depended on this path, so that its node should be added even if it is of no other use. */
    isAwaited(name: string): boolean {
      let entry: Entry | undefined = root;
      for (const part of pathOf(name).split('/')) entry = entry?.children?.get(part);
      return entry?.awaited === complete;
    },
    /** The bytes that the entries take in memory. */
    bytes: (): number => bytes,
  };
}

const isHidden = ({ isWhiteout }: Mark): boolean => isWhiteout === true;
/** Whether what lower layers have below a path is hidden (OCI image-spec, layer.md, "Whiteouts"). */
const hidesContent = ({ isOpaque, node }: Mark): boolean =>
  isOpaque === true || (node !== undefined && node.kind !== 'directory');

/** Returns a path from the root without `.`, `..` and doubled slashes, and without a slash at its ends; the root is empty. */
export function normalPath(path: string): string {
  const parts: string[] = [];
  for (const part of path.split('/')) {
    if (part === '..') parts.pop();
    else if (part !== '' && part !== '.') parts.push(part);
  }
  return parts.join('/');
}
