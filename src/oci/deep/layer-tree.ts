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

type Layer = {
  readonly nodes: Map<string, Node>;
  readonly whiteouts: Set<string>;
  readonly opaque: Set<string>;
};

/** Where a path leads. `unread`: that depends on layers, or the rest of a layer, that were not read. */
type Place =
  | { readonly kind: 'found'; readonly node: Exclude<Node, { kind: 'symlink' | 'link' | 'directory' }> }
  | { readonly kind: 'absent' | 'unread' | 'loop' | 'directory' };

/** As Linux (`MAXSYMLINKS`). */
const MAX_LINKS = 40;
/** Components of a path. Linux allows 4096 bytes, so this is enough, and long paths of hostile layers cost little. */
const MAX_DEPTH = 256;
const NODE_BYTES = 150;

/** The file system of an image, as far as its layers were read, from the top layer down. */
export type LayerTree = {
  /** Begins the layer below the present one. */
  begin(): void;
  /** Adds an entry of the present layer by its name in the archive. */
  add(name: string, node: Node): void;
  /** Says that the present layer was read to its end. `isLast`: there is none below it. */
  end(isLast: boolean): void;
  /** Follows links. `path`: from the root, as {@link normalPath} returns it. */
  resolve(path: string): Place;
  /** Whether an entry was added, since the last call, on which an `unread` answer of `resolve` depended. */
  hasNews(): boolean;
  /** Whether an answer of `resolve` depended on this path, so that its node should be added even if it is of no other use. */
  isAwaited(path: string): boolean;
  /** The bytes that the entries take in memory. */
  bytes(): number;
};

/** @param isCaseless as in Windows */
export function createLayerTree(isCaseless = false): LayerTree {
  const layers: Layer[] = [];
  /** The number of layers that were read to their end. */
  let complete = 0;
  let isWhole = false;
  let bytes = 0;
  let awaited = new Set<string>();
  let isNew = false;

  /** Asks the layers from `from` down about one path, without following links. */
  function lookup(path: string, from: number): { node: Node; layer: number } | 'absent' | 'unread' {
    for (let index = from; index < layers.length; index += 1) {
      const layer = layers[index];
      const node = layer?.nodes.get(path);
      if (node !== undefined) return { node, layer: index };
      if (index >= complete) break;
      if (layer !== undefined && isHidden(layer, path)) return 'absent';
    }
    if (isWhole) return 'absent';
    awaited.add(path);
    return 'unread';
  }

  function walk(path: string, start: number): Place {
    let from = start;
    let done: string[] = [];
    let rest = path === '' ? [] : path.split('/');
    let isUnsure = false;
    for (let links = 0; ; ) {
      const part = rest.shift();
      if (part === undefined) return { kind: 'directory' };
      if (part === '..') {
        done.pop();
        continue;
      }
      if (done.length > MAX_DEPTH) return { kind: 'absent' };
      done.push(part);
      const here = done.join('/');
      const isLast = rest.length === 0;
      let seen = lookup(here, from);
      if (typeof seen !== 'string' && seen.node.kind === 'symlink' && !isLast && !rest.includes('..')) {
        // What a layer puts below a link of its own or of a lower layer is what one finds there.
        const direct = lookup([...done, ...rest].join('/'), from);
        if (typeof direct !== 'string' && direct.layer <= seen.layer) {
          done = [...done, ...rest];
          rest = [];
          seen = direct;
        }
      }
      if (typeof seen === 'string') {
        if (seen === 'unread') isUnsure = true;
        // A directory needs no entry of its own.
        if (rest.length > 0) continue;
        return { kind: isUnsure ? 'unread' : 'absent' };
      }
      const { node, layer } = seen;
      switch (node.kind) {
        case 'directory':
          if (rest.length === 0) return { kind: 'directory' };
          continue;
        case 'file':
        case 'other':
          return rest.length === 0 ? { kind: 'found', node } : { kind: 'absent' };
        case 'symlink':
        case 'link': {
          links += 1;
          if (links > MAX_LINKS) return { kind: 'loop' };
          const target = node.target.split('/').filter((each) => each !== '' && each !== '.');
          if (target.length + rest.length > MAX_DEPTH) return { kind: 'absent' };
          done = node.kind === 'link' || node.target.startsWith('/') ? [] : done.slice(0, -1);
          rest = [...target, ...rest];
          // A hard link keeps the file that it was made of, whatever upper layers put at that path.
          if (node.kind === 'link') from = layer;
          continue;
        }
        default:
          return node satisfies never;
      }
    }
  }

  return {
    begin() {
      layers.push({ nodes: new Map(), whiteouts: new Set(), opaque: new Set() });
    },
    add(name, node) {
      const layer = layers.at(-1);
      if (layer === undefined) return;
      const normal = normalPath(name);
      const path = isCaseless ? normal.toLowerCase() : normal;
      const slash = path.lastIndexOf('/');
      const [directory, base] = [path.slice(0, Math.max(slash, 0)), path.slice(slash + 1)];
      bytes += NODE_BYTES + 2 * path.length + ('target' in node ? 2 * node.target.length : 0);
      if (base.startsWith('.wh.')) {
        // Names of aufs, which other tools ignore, begin with the prefix twice.
        if (base === '.wh..wh..opq') layer.opaque.add(directory);
        else if (!base.startsWith('.wh..wh.'))
          layer.whiteouts.add(directory === '' ? base.slice(4) : `${directory}/${base.slice(4)}`);
        return;
      }
      layer.nodes.set(path, node);
      if (awaited.has(path)) isNew = true;
    },
    end(isLast) {
      complete = layers.length;
      isWhole = isLast;
      awaited = new Set();
      isNew = true;
    },
    resolve: (path) => walk(isCaseless ? path.toLowerCase() : path, 0),
    hasNews() {
      const had = isNew;
      isNew = false;
      return had;
    },
    isAwaited: (name) => awaited.has(isCaseless ? normalPath(name).toLowerCase() : normalPath(name)),
    bytes: () => bytes,
  };
}

/** Whether a layer hides what the layers below it have at a path (OCI image-spec, layer.md, "Whiteouts"). */
function isHidden({ nodes, whiteouts, opaque }: Layer, path: string): boolean {
  if (whiteouts.has(path)) return true;
  for (let slash = path.lastIndexOf('/'); ; slash = path.lastIndexOf('/', slash - 1)) {
    const ancestor = slash < 0 ? '' : path.slice(0, slash);
    if (opaque.has(ancestor) || whiteouts.has(ancestor)) return true;
    const node = nodes.get(ancestor);
    if (node !== undefined && node.kind !== 'directory') return true;
    if (slash <= 0) return false;
  }
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
