import type { NodeOptions } from '../../simulator/test-cluster.ts';
import type { Guard } from '../../support/manifest.ts';
import type { World } from '../../support/world.ts';

/** What a suite may ask for. */
export type Wanted = {
  /** Default: one node of amd64 and one of arm64, called amd64-1 and arm64-1. */
  readonly nodes?: readonly NodeOptions[];
  /** The overlay whose manifest is installed. Default: the single manifest. */
  readonly manifest?: 'observe';
  /** What the guard policies let through, if they differ from the manifest. */
  readonly guard?: Guard;
};

/** Starts a world for one suite, which stops it. */
export type Start = (wanted?: Wanted) => Promise<World>;
