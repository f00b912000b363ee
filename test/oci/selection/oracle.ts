import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ImageError } from '../../../src/oci/errors.ts';
import { type Explored, explore } from '../../../src/oci/lookup/query.ts';
import { parseManifest } from '../../../src/oci/manifest.ts';
import { nodeArchitectures } from '../../../src/placement/images.ts';
import { NODES, type Tree } from './trees.ts';

/** For each of {@link NODES}, the architecture of the image that each runtime takes; undefined: none. */
export type Answers = {
  readonly containerd: readonly (string | undefined)[];
  readonly crio: readonly (string | undefined)[];
  /** Whether CRI-O chooses that in an index within the index, and then does not pull it. */
  readonly isNested: readonly boolean[];
};

/** Where archaware and the runtimes differ about one index. */
export type Difference = {
  /** `wrong`: archaware places pods where the image is refused; `missed`: it does not place them where the image runs. */
  readonly kind: 'wrong' | 'missed';
  readonly architecture: string;
  readonly ours: readonly string[];
  readonly answers: Answers;
};

const TOOL = new URL('../../../hack/cluster/tools/selection/', import.meta.url);
const BUILD = new URL('../../../hack/cluster/build-selection.sh', import.meta.url).pathname;
const BINARY = join(process.env.ARCHAWARE_BIN ?? join(homedir(), '.cache/archaware/bin'), 'selection');
/** What the program puts before an architecture that CRI-O chooses in an index within the index. */
const NESTED = 'nested: ';
/** Indexes for one run of the program. */
const AT_ONCE = 1000;

/** Returns a hash of the program that answers, with the versions of its packages. */
export async function hashOfOracle(): Promise<string> {
  const hash = createHash('sha256');
  for (const name of ['go.mod', 'go.sum', 'main.go']) hash.update(await readFile(new URL(name, TOOL)));
  return hash.digest('hex');
}

/** Builds the program that answers, unless it is up to date. */
export async function buildOracle(): Promise<void> {
  await promisify(execFile)(BUILD);
}

/** Asks containerd's and CRI-O's own packages. */
export async function ask(trees: readonly Tree[]): Promise<Answers[]> {
  const answers: Answers[] = [];
  for (let start = 0; start < trees.length; start += AT_ONCE) {
    const lines = trees
      .slice(start, start + AT_ONCE)
      .map(({ root, objects }) => JSON.stringify({ nodes: NODES, root, objects }));
    const running = promisify(execFile)(BINARY, { maxBuffer: 64 * 1024 * 1024 });
    running.child.stdin?.end(lines.join('\n'));
    const { stdout } = await running;
    for (const line of stdout.trimEnd().split('\n')) {
      const { containerd, crio } = JSON.parse(line);
      answers.push({
        containerd: containerd.map(knownOrNot),
        crio: crio.map((answer: string) => knownOrNot(answer.replace(NESTED, ''))),
        isNested: crio.map((answer: string) => answer.startsWith(NESTED)),
      });
    }
  }
  return answers;
}

function knownOrNot(answer: string): string | undefined {
  return NODES.find(({ architecture }) => architecture === answer)?.architecture;
}

/** Returns the platforms of an index as a lookup finds them out, or why there are none. */
export async function lookUp({ root, objects }: Tree): Promise<Explored | ImageError> {
  const bodyOf = (digest: string): Buffer => {
    const body = objects[digest];
    if (body === undefined) throw new ImageError('missing', { code: 'not-found', temporary: false });
    return Buffer.from(body);
  };
  try {
    const found = await explore(parseManifest(bodyOf(root.digest), root.mediaType), {
      label: 'registry.test',
      isFinal: true,
      known: () => undefined,
      manifest: async (digest) => {
        const body = bodyOf(digest);
        return () => parseManifest(body, undefined);
      },
      config: async ({ config }) => bodyOf(config),
    });
    if ('settle' in found) throw new Error('an endpoint that has everything lacks something');
    return found;
  } catch (error) {
    if (error instanceof ImageError) return error;
    throw error;
  }
}

/**
 * Compares. What is in an index within the index counts, but must be said to be for containerd alone. An architecture counts if both runtimes take an image of it, or, if they agree on none, one of them does. Where
 * nodes also run a lesser architecture (`architectures.compatible`), containerd must take an image there at least.
 */
export function differencesOf(found: Explored | ImageError, answers: Answers): Difference[] {
  const platforms = found instanceof ImageError ? [] : found.platforms;
  const ours = nodeArchitectures(platforms, 'linux', {}, true);
  const own = (taken: Answers['crio']): string[] =>
    NODES.flatMap(({ architecture }, at) => (taken[at] === architecture ? [architecture] : []));
  const byContainerd = own(answers.containerd);
  const byCrio = own(answers.crio);
  const pulledByCrio = byCrio.filter(
    (name) => !answers.isNested[NODES.findIndex(({ architecture }) => architecture === name)],
  );
  const byBoth = byContainerd.filter((name) => byCrio.includes(name));
  const [expected = []] = [byBoth, byContainerd, pulledByCrio].filter((names) => names.length > 0);
  const report = (kind: Difference['kind'], names: readonly string[]): Difference[] =>
    names.map((architecture) => ({ kind, architecture, ours, answers }));
  const withLesser = nodeArchitectures(platforms, 'linux', { amd64: ['386'], arm64: ['arm'] }, true);
  // Where an index has nothing but a lesser architecture, containerd before 2.1 takes it.
  const hasOther = ours.some((name) => name !== '386' && name !== 'arm');
  const refused = NODES.flatMap(({ architecture }, at) =>
    answers.containerd[at] === undefined && hasOther ? [architecture] : [],
  );
  const isSaid = !(found instanceof ImageError) && found.only === 'containerd';
  const unsaid = NODES.flatMap(({ architecture }, at) => (answers.isNested[at] && !isSaid ? [architecture] : []));
  return [
    ...report(
      'wrong',
      ours.filter((name) => unsaid.includes(name)),
    ),
    ...report(
      'wrong',
      ours.filter((name) => !expected.includes(name)),
    ),
    ...report(
      'wrong',
      withLesser.filter((name) => !ours.includes(name) && refused.includes(name)),
    ),
    ...report(
      'missed',
      expected.filter((name) => !ours.includes(name)),
    ),
  ];
}
