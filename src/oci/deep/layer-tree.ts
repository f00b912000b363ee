import type { Format } from './program-format.ts';

/** What a path is. */
export type TreeNode =
  | { readonly kind: 'file'; readonly isExecutable: boolean; readonly format: Format }
  | { readonly kind: 'symlink'; readonly target: string }
  | { readonly kind: 'directory' }
  /** A device, a sparse file: it exists, and is not read. */
  | { readonly kind: 'other'; readonly text: string };

/** What the layers say of a path: of those that were read the top one decides. */
type Entry = {
  children?: Map<string, Entry>;
  node?: TreeNode;
  /** The layer that has the node. */
  layer?: number;
  /** The layer that hides the path, and all below it, as the layers under it have them (OCI image-spec, layer.md, "Whiteouts"). */
  hiddenBy?: number;
  /** The same for all below the path only: there the layer has something else than a directory, or an opaque one. */
  closedBy?: number;
  /** The number of layers that were whole when an answer last depended on what is not read yet of this path. */
  awaited?: number;
};

/** An entry as a walk came to it. `isHidden`: whether no layer that is not read yet can say anything of it. */
type Stop = { readonly entry: Entry; readonly isHidden: boolean };

/** Where a path leads. `unread`: that depends on layers, or the rest of a layer, that were not read. */
type TreePlace =
  | { readonly kind: 'found'; readonly node: Extract<TreeNode, { kind: 'file' | 'other' }> }
  | { readonly kind: 'absent' | 'unread' | 'loop' | 'directory' };

/** As Linux (`MAXSYMLINKS`). */
const MAX_LINKS = 40;
/** Components of a path. Linux allows 4096 bytes, so this is enough, and long paths of hostile layers cost little. */
const MAX_DEPTH = 256;
const ENTRY_BYTES = 250;
const COVERED_BYTES = 150;
/** Those of scripts; others are few. */
const FORMAT_BYTES = 200;
const LONE: TreeNode = { kind: 'other', text: 'a second name of a file that its layer does not have before it' };

/** The file system of an image, as far as its layers were read, from the top layer down. */
export type LayerTree = ReturnType<typeof createLayerTree>;

/** `step` is called for each component of a path that is looked up. What it throws ends the look-up. */
export function createLayerTree({ step }: { readonly step: () => void }) {
  const root: Entry = {};
  let present = -1;
  /** The number of layers that were read to their end. */
  let complete = 0;
  let isWhole = false;
  let bytes = 0;
  let isNew = false;
  /** What the present layer has and upper ones hide: a hard link keeps the file that it was made of, whatever they put at that path. */
  let covered = new Map<string, TreeNode>();
  /** Answers, so that none is worked out twice. `until`: the number of changes up to which it holds. */
  const kept = new Map<string, { readonly place: TreePlace; readonly until: number }>();
  let changes = 0;

  const isUpper = (layer: number | undefined): boolean => layer !== undefined && layer < present;
  const isComplete = (layer: number | undefined): boolean => layer !== undefined && layer < complete;

  function childOf(entry: Entry, part: string): Entry {
    entry.children ??= new Map();
    const known = entry.children.get(part);
    if (known !== undefined) return known;
    const child: Entry = {};
    entry.children.set(part, child);
    bytes += ENTRY_BYTES + 2 * part.length;
    return child;
  }

  function find(path: string): Entry | undefined {
    return partsOf(path).reduce<Entry | undefined>((entry, part) => entry?.children?.get(part), root);
  }

  /** Returns the entry of a path; undefined if an upper layer hides it from the present one. */
  function open(path: string): Entry | undefined {
    let entry = root;
    for (const part of partsOf(path)) {
      if (isUpper(entry.hiddenBy) || isUpper(entry.closedBy)) return undefined;
      entry = childOf(entry, part);
    }
    return isUpper(entry.hiddenBy) ? undefined : entry;
  }

  function put(path: string, node: TreeNode): void {
    if (node.kind === 'symlink') bytes += 2 * node.target.length;
    if (node.kind === 'file' && 'interpreter' in node.format)
      bytes += FORMAT_BYTES + 2 * (node.format.interpreter.length + node.format.argument.length);
    const entry = open(path);
    if (entry !== undefined && node.kind !== 'directory') entry.closedBy ??= present;
    if (entry === undefined || isUpper(entry.layer)) {
      covered.set(path, node);
      bytes += COVERED_BYTES + 2 * path.length;
      return;
    }
    entry.node = node;
    entry.layer = present;
    if (entry.awaited === complete) isNew = true;
  }

  function hide(path: string, how: 'hiddenBy' | 'closedBy'): void {
    const entry = open(path);
    if (entry !== undefined) entry[how] ??= present;
  }

  /** Returns what a hard link is. Its file comes before it in the same layer. */
  function linked(path: string): TreeNode {
    const entry = find(path);
    return (entry?.layer === present ? entry.node : covered.get(path)) ?? LONE;
  }

  function descend({ entry, isHidden }: Stop, part: string): Stop {
    step();
    const child = childOf(entry, part);
    return { entry: child, isHidden: isHidden || isComplete(entry.closedBy) || isComplete(child.hiddenBy) };
  }

  /** Asks the layers about one path, without following links. */
  function look({ entry, isHidden }: Stop): TreeNode | 'absent' | 'unread' {
    if (entry.node !== undefined) return entry.node;
    if (isWhole || isHidden) return 'absent';
    entry.awaited = complete;
    return 'unread';
  }

  function walk(path: string): { place: TreePlace; isFinal: boolean } {
    const start: Stop = { entry: root, isHidden: isComplete(root.hiddenBy) };
    let trail = [start];
    let rest = partsOf(path);
    let isUnsure = false;
    let isFinal = true;
    const at = (place: TreePlace) => ({ place, isFinal });
    for (let links = 0; ; ) {
      const part = rest.shift();
      if (part === undefined) return at({ kind: 'directory' });
      if (part === '..') {
        if (trail.length > 1) trail.pop();
        continue;
      }
      const here = trail.at(-1);
      if (here === undefined || trail.length > MAX_DEPTH + 1) return at({ kind: 'absent' });
      let stop = descend(here, part);
      trail.push(stop);
      let node = look(stop);
      if (typeof node !== 'string' && node.kind === 'symlink' && rest.length > 0 && !rest.includes('..')) {
        // What a layer puts below a link of its own or of a lower layer is what one finds there.
        const below: Stop[] = [];
        for (const each of rest) below.push(descend(below.at(-1) ?? stop, each));
        const last = below.at(-1) ?? stop;
        const direct = look(last);
        if (typeof direct !== 'string') {
          trail.push(...below);
          rest = [];
          [stop, node] = [last, direct];
        }
      }
      if (typeof node === 'string') {
        if (node === 'unread') {
          isUnsure = true;
          isFinal = false;
        }
        // A directory needs no entry of its own.
        if (rest.length > 0) continue;
        return at({ kind: isUnsure ? 'unread' : 'absent' });
      }
      if (!isComplete(stop.entry.layer)) isFinal = false;
      switch (node.kind) {
        case 'directory':
          if (rest.length === 0) return at({ kind: 'directory' });
          continue;
        case 'file':
        case 'other':
          return at(rest.length === 0 ? { kind: 'found', node } : { kind: 'absent' });
        case 'symlink': {
          links += 1;
          if (links > MAX_LINKS) return at({ kind: 'loop' });
          const target = node.target.split('/').filter((each) => each !== '' && each !== '.');
          if (target.length + rest.length > MAX_DEPTH) return at({ kind: 'absent' });
          if (node.target.startsWith('/')) trail = [start];
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
      covered = new Map();
    },
    /** Adds an entry of the present layer by its name in the archive. `link`: a second name of the file with that path. */
    add(name: string, node: TreeNode | { readonly kind: 'link'; readonly target: string }): void {
      if (present < 0) return;
      changes += 1;
      const path = normalPath(name);
      const slash = path.lastIndexOf('/');
      const [directory, base] = [path.slice(0, slash + 1), path.slice(slash + 1)];
      if (!base.startsWith('.wh.')) put(path, node.kind === 'link' ? linked(normalPath(node.target)) : node);
      else if (base === '.wh..wh..opq') hide(directory.slice(0, -1), 'closedBy');
      // Other names of aufs, which other tools ignore, begin with the prefix twice.
      else if (!base.startsWith('.wh..wh.')) hide(directory + base.slice('.wh.'.length), 'hiddenBy');
    },
    /** Says that the present layer was read to its end. `isLast`: there is none below it. */
    end(isLast: boolean): void {
      complete = present + 1;
      isWhole = isLast;
      isNew = true;
      changes += 1;
    },
    /** Follows links. `path`: from the root, as {@link normalPath} returns it. Throws what `step` throws. */
    resolve(path: string): TreePlace {
      const known = kept.get(path);
      if (known !== undefined && known.until >= changes) return known.place;
      const { place, isFinal } = walk(path);
      kept.set(path, { place, until: isFinal ? Number.POSITIVE_INFINITY : changes });
      return place;
    },
    /** Whether an entry was added, since the last call, on which an `unread` answer of `resolve` depended. */
    hasNews(): boolean {
      const had = isNew;
      isNew = false;
      return had;
    },
    /** Whether an answer of `resolve` depended on this path, so that its node should be added even if it is of no other use. */
    isAwaited: (name: string): boolean => find(normalPath(name))?.awaited === complete,
    /** The bytes that the entries take in memory. */
    bytes: (): number => bytes,
  };
}

function partsOf(path: string): string[] {
  return path === '' ? [] : path.split('/');
}

/** Returns a path from the root without `.`, `..` and doubled slashes, and without a slash at its ends; the root is empty. */
export function normalPath(path: string): string {
  const parts: string[] = [];
  for (const part of path.split('/')) {
    if (part === '..') parts.pop();
    else if (part !== '' && part !== '.') parts.push(part);
  }
  return parts.join('/');
}
