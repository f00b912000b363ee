import { expect } from 'chai';
import type { Index, IndexEntry } from '../../../src/oci/manifest.ts';
import { type Child, select } from '../../../src/oci/selection.ts';
import { sha256 } from '../server.ts';

/** Counts how often the platforms of entries are read. */
type Counter = { steps: number };

function entryFor(
  counter: Counter,
  { digest, os = 'linux', kind = 'image' }: { digest: string; os?: string; kind?: 'image' | 'index' },
): IndexEntry {
  const platform = { os, architecture: 'amd64', variant: '', hasFeatures: false };
  return {
    digest,
    kind,
    mediaType: '',
    isAttestation: false,
    isZstd: false,
    get platform() {
      counter.steps += 1;
      return platform;
    },
  };
}

function indexOf(entries: readonly IndexEntry[]): Index {
  return { kind: 'index', isDockerList: false, entries };
}

const many = <T>(count: number, make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at));

type World = { readonly root: Index; readonly all: ReadonlyMap<string, Child> };

const flat = (counter: Counter, platforms: number): World => {
  const entries = many(1024, (at) => entryFor(counter, { digest: sha256(`${at}`), os: `os${at % platforms}` }));
  return { root: indexOf(entries), all: new Map() };
};

/** Each with 1,024 entries in all. */
const WORLDS: readonly (readonly [what: string, make: (counter: Counter) => World])[] = [
  ['for one platform', (counter) => flat(counter, 1)],
  ['for 64 platforms', (counter) => flat(counter, 64)],
  [
    'in 32 indexes within the index',
    (counter) => {
      const within = many(32, (at) => ({ digest: sha256(`within ${at}`), os: `os${at}` }));
      const inside = (os: string): Index =>
        indexOf(many(31, (at) => entryFor(counter, { digest: sha256(`${os} ${at}`), os })));
      return {
        root: indexOf(within.map((one) => entryFor(counter, { ...one, kind: 'index' }))),
        all: new Map(within.map(({ digest, os }) => [digest, inside(os)])),
      };
    },
  ],
];

/** Reads one entry in each round: those are the most rounds. */
function choose({ root, all }: World) {
  const children = new Map<string, Child>();
  for (let rounds = 1; ; rounds += 1) {
    const selection = select(root, children);
    if (selection.kind === 'selected') return { ...selection, rounds };
    const digest = selection.children[0]?.digest ?? expect.fail('needs nothing');
    children.set(digest, all.get(digest) ?? expect.fail(digest));
  }
}

/** For each entry; a comparison with each platform, or with each other entry, would need more. */
const FEW = 8;

describe('what counts of an index of 1,024 entries', () => {
  for (const [what, make] of WORLDS) {
    it(`${what} is found out in a few steps for each, and so are the reasons`, () => {
      const counter = { steps: 0 };
      const { skipped, rounds } = choose(make(counter));
      expect(counter.steps).to.be.within(1024, 1024 * FEW * rounds);
      counter.steps = 0;
      const reasons = skipped();
      expect(counter.steps, `for ${reasons.length} reasons`).to.be.within(1024, 1024 * FEW);
    });
  }
});
