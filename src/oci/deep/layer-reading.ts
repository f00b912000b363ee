import type { LayerTree } from './layer-tree.ts';

/** The first bytes of what is compressed. */
export const GZIP = Buffer.from([0x1f, 0x8b]);
export const ZSTD = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);

/** What may be read, in bytes, and looked up. Each number goes down. */
export type Allowance = {
  /** Of layers as they are stored. */
  compressed: number;
  /** Of layers after decompression. */
  decompressed: number;
  /** Of memory for the names in the layers. */
  memory: number;
  /** Look-ups of a component of a path. */
  steps: number;
};

/** A layer that cannot be read, or not any further. The message goes on after the name of what was looked for. */
export class LayerProblem extends Error {
  override readonly name = 'LayerProblem';
}

/** Whether an error is one; by its name, because a module that is loaded later may have its own copy of the class in tests. */
export function isLayerProblem(error: unknown): error is LayerProblem {
  return error instanceof Error && error.name === 'LayerProblem';
}

/** How a layer is read. */
export type Reading = {
  readonly tree: LayerTree;
  readonly allowance: Allowance;
  /** Called after each piece; true ends the reading. */
  readonly isEnough: () => boolean;
};
