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

/** What the layers hold that were read. */
interface TreeState {
  /** Called for each component of a path that is looked up. What it throws ends the look-up. */
  readonly step: () => void;
  readonly root: Entry;
  present: number;
  /** The number of layers that were read to their end. */
  complete: number;
  isWhole: boolean;
  bytes: number;
  isNew: boolean;
  /** What the present layer has and upper ones hide: a hard link keeps the file that it was made of, whatever they put at that path. */
  covered: Map<string, TreeNode>;
}

/** `step` is called for each component of a path that is looked up. What it throws ends the look-up. */
export function createLayerTree({ step }: Pick<TreeState, 'step'>) {
  const layers = { present: -1, complete: 0, isWhole: false, isNew: false };
  const tree: TreeState = { ...layers, step, root: {}, bytes: 0, covered: new Map() };
  /** Answers, so that none is worked out twice. `until`: the number of changes up to which it holds. */
  const kept = new Map<string, { readonly place: TreePlace; readonly until: number }>();
  let changes = 0;
  return {
    /** Begins the layer below the present one. */
    begin(): void {
      tree.present += 1;
      tree.covered = new Map();
    },
    /** Adds an entry of the present layer by its name in the archive. `link`: a second name of the file with that path. */
    add(name: string, node: TreeNode | { readonly kind: 'link'; readonly target: string }): void {
      if (tree.present < 0) return;
      changes += 1;
      const path = normalPath(name);
      const slash = path.lastIndexOf('/');
      const [directory, base] = [path.slice(0, slash + 1), path.slice(slash + 1)];
      if (!base.startsWith('.wh.'))
        put(tree, path, node.kind === 'link' ? linked(tree, normalPath(node.target)) : node);
      else if (base === '.wh..wh..opq') hide(tree, directory.slice(0, -1), 'closedBy');
      // Other names of aufs, which other tools ignore, begin with the prefix twice.
      else if (!base.startsWith('.wh..wh.')) hide(tree, directory + base.slice('.wh.'.length), 'hiddenBy');
    },
    /** Says that the present layer was read to its end. `isLast`: there is none below it. */
    end(isLast: boolean): void {
      tree.complete = tree.present + 1;
      tree.isWhole = isLast;
      tree.isNew = true;
      changes += 1;
    },
    /** Follows links. `path`: from the root, as {@link normalPath} returns it. Throws what `step` throws. */
    resolve(path: string): TreePlace {
      const known = kept.get(path);
      if (known !== undefined && known.until >= changes) return known.place;
      const { place, isFinal } = walk(tree, path);
      kept.set(path, { place, until: isFinal ? Number.POSITIVE_INFINITY : changes });
      return place;
    },
    /** Whether an entry was added, since the last call, on which an `unread` answer of `resolve` depended. */
    hasNews(): boolean {
      const had = tree.isNew;
      tree.isNew = false;
      return had;
    },
    /** Whether an answer of `resolve` depended on this path, so that its node should be added even if it is of no other use. */
    isAwaited: (name: string): boolean => find(tree, normalPath(name))?.awaited === tree.complete,
    /** The bytes that the entries take in memory. */
    bytes: (): number => tree.bytes,
  };
}

function childOf(tree: TreeState, entry: Entry, part: string): Entry {
  entry.children ??= new Map();
  const known = entry.children.get(part);
  if (known !== undefined) return known;
  const child: Entry = {};
  entry.children.set(part, child);
  tree.bytes += ENTRY_BYTES + 2 * part.length;
  return child;
}

function find({ root }: TreeState, path: string): Entry | undefined {
  return partsOf(path).reduce<Entry | undefined>((entry, part) => entry?.children?.get(part), root);
}

/** Returns the entry of a path; undefined if an upper layer hides it from the present one. */
function open(tree: TreeState, path: string): Entry | undefined {
  let entry = tree.root;
  for (const part of partsOf(path)) {
    if (isUpper(tree, entry.hiddenBy) || isUpper(tree, entry.closedBy)) return undefined;
    entry = childOf(tree, entry, part);
  }
  return isUpper(tree, entry.hiddenBy) ? undefined : entry;
}

function put(tree: TreeState, path: string, node: TreeNode): void {
  if (node.kind === 'symlink') tree.bytes += 2 * node.target.length;
  if (node.kind === 'file' && 'interpreter' in node.format)
    tree.bytes += FORMAT_BYTES + 2 * (node.format.interpreter.length + node.format.argument.length);
  const entry = open(tree, path);
  if (entry !== undefined && node.kind !== 'directory') entry.closedBy ??= tree.present;
  if (entry === undefined || isUpper(tree, entry.layer)) {
    tree.covered.set(path, node);
    tree.bytes += COVERED_BYTES + 2 * path.length;
    return;
  }
  entry.node = node;
  entry.layer = tree.present;
  if (entry.awaited === tree.complete) tree.isNew = true;
}

function hide(tree: TreeState, path: string, how: 'hiddenBy' | 'closedBy'): void {
  const entry = open(tree, path);
  if (entry !== undefined) entry[how] ??= tree.present;
}

/** Returns what a hard link is. Its file comes before it in the same layer. */
function linked(tree: TreeState, path: string): TreeNode {
  const entry = find(tree, path);
  return (entry?.layer === tree.present ? entry.node : tree.covered.get(path)) ?? LONE;
}

function descend(tree: TreeState, { entry, isHidden }: Stop, part: string): Stop {
  tree.step();
  const child = childOf(tree, entry, part);
  return { entry: child, isHidden: isHidden || isComplete(tree, entry.closedBy) || isComplete(tree, child.hiddenBy) };
}

/** Asks the layers about one path, without following links. */
function look(tree: TreeState, { entry, isHidden }: Stop): TreeNode | 'absent' | 'unread' {
  if (entry.node !== undefined) return entry.node;
  if (tree.isWhole || isHidden) return 'absent';
  entry.awaited = tree.complete;
  return 'unread';
}

function walk(tree: TreeState, path: string): { place: TreePlace; isFinal: boolean } {
  const start: Stop = { entry: tree.root, isHidden: isComplete(tree, tree.root.hiddenBy) };
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
    let stop = descend(tree, here, part);
    trail.push(stop);
    let node = look(tree, stop);
    if (typeof node !== 'string' && node.kind === 'symlink' && rest.length > 0 && !rest.includes('..')) {
      // What a layer puts below a link of its own or of a lower layer is what one finds there.
      const below: Stop[] = [];
      for (const each of rest) below.push(descend(tree, below.at(-1) ?? stop, each));
      const last = below.at(-1) ?? stop;
      const direct = look(tree, last);
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
    if (!isComplete(tree, stop.entry.layer)) isFinal = false;
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

function isUpper({ present }: TreeState, layer = present): boolean {
  return layer < present;
}

function isComplete({ complete }: TreeState, layer = complete): boolean {
  return layer < complete;
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
