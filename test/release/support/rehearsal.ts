/** Everything that a rehearsal of releases has: a cluster with a real node, a registry, a maintainer and a user. */
import { appendFile, copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { RealNode } from '../../../hack/cluster/real-node.ts';
import { needsRealNode, otherArchitecture } from '../../e2e/support/real-node.ts';
import { pushPrograms } from '../../e2e/support/real-world.ts';
import { type LiveWorld, startWorld } from '../../e2e/support/world.ts';
import type { Finished } from '../../support/controller-process.ts';
import { missingForBase, pushBase } from './base.ts';
import { type Files, startFiles } from './files.ts';
import { type Maintainer, maintainerOf, makeKey, type Released, type Signing } from './maintainer.ts';
import { cloneHead, missingTools, type Place, startPlace } from './place.ts';

export const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

export type Rehearsal = {
  readonly world: LiveWorld;
  readonly node: RealNode;
  /** The architecture of the node, and that of the node that kwok plays. */
  readonly own: string;
  readonly other: string;
  readonly fake: string;
  readonly place: Place;
  readonly files: Files;
  readonly base: string;
  readonly signing: Signing;
  readonly source: string;
  readonly maintainer: Maintainer;
  /** Clones the last commit of the repository once more, for another maintainer with the same key. */
  another(name: string): Promise<Maintainer>;
  /** Offers the files of a release where its documents say that they are. */
  offer(released: Released): void;
  /** Releases of this rehearsal, by version; throws for one that was not made. */
  release(version: string): Released;
  keep(released: Released): void;
  /** Runs a script as a user does, in an empty folder, with kubectl, helm, cosign, curl and jq. */
  user(script: string, options?: { readonly files?: Readonly<Record<string, string>> }): Promise<Finished>;
  /** The same; throws unless the exit code is 0. */
  must(script: string, options?: { readonly files?: Readonly<Record<string, string>> }): Promise<string>;
  stop(): Promise<void>;
};

/** Skips the tests where this machine lacks something; in CI that is a failure. */
export function needsRehearsal(context: Mocha.Context): void {
  const missing = [...missingTools('cosign', 'crane'), ...missingForBase()];
  if (missing.length > 0) {
    const reason = `no rehearsal on this machine, it lacks: ${missing.join('; ')}`;
    if (process.env.CI !== undefined) throw new Error(reason);
    console.log(`      ${reason}`);
    context.skip();
  }
  needsRealNode(context, 'buildah', 'git', 'curl', 'jq');
}

export async function startRehearsal(): Promise<Rehearsal> {
  const world = await startWorld({ cluster: { node: 'real' }, manifest: '', nodes: [] });
  const { cluster } = world;
  const { node } = cluster;
  if (node === undefined) throw new Error('the cluster has no node');
  const own = node.architecture;
  const other = otherArchitecture(node);
  const fake = `fake-${other}`;
  let place: Place | undefined;
  let files: Files | undefined;
  const stop = async () => {
    await files?.stop();
    await place?.remove();
    await world.stop();
  };
  try {
    place = await startPlace(node);
    files = await startFiles();
    await appendFile(place.environment.SSL_CERT_FILE ?? '', files.authority);
    await Promise.all([
      cluster.createNode({ name: fake, architecture: other }),
      pushPrograms(world, own, otherOf(own)),
    ]);
    const base = await pushBase(place);
    const source = `${files.url}/you/archaware-controller`;
    await mkdir(join(place.directory, 'key'));
    const signing = await makeKey(place, join(place.directory, 'key'));
    const here = { place, files, world, node, own, other, fake, base, signing, source };
    return { ...here, ...(await actorsOf(here)), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

const otherOf = (own: 'amd64' | 'arm64') => (own === 'amd64' ? 'arm64' : 'amd64');

type Here = Pick<Rehearsal, 'place' | 'files' | 'world' | 'base' | 'signing' | 'source'>;

async function actorsOf({ place, files, world, base, signing, source }: Here) {
  const another = async (name: string) => {
    const checkout = await cloneHead(ROOT, join(place.directory, name));
    return maintainerOf(place, checkout, { base, source, signing });
  };
  const releases = new Map<string, Released>();
  const user: Rehearsal['user'] = async (script, { files: given = {} } = {}) => {
    const folder = await mkdtemp(join(place.directory, 'user-'));
    await copyFile(join(signing.key, '../cosign.pub'), join(folder, 'cosign.pub'));
    for (const [name, contents] of Object.entries(given)) await writeFile(join(folder, name), contents);
    const environment = {
      HOME: folder,
      KUBECONFIG: world.cluster.kubeconfig,
      CURL_CA_BUNDLE: place.environment.SSL_CERT_FILE ?? '',
    };
    const finished = await place.run(['bash', '-euo', 'pipefail', '-c', script], { cwd: folder, environment });
    await rm(folder, { recursive: true, force: true });
    return finished;
  };
  return {
    another,
    maintainer: await another('maintainer'),
    offer: ({ version, folder }: Released) =>
      files.offer(`/you/archaware-controller/releases/download/v${version}`, folder),
    release(version: string) {
      const found = releases.get(version);
      if (found === undefined) throw new Error(`${version} was not released`);
      return found;
    },
    keep: (released: Released) => void releases.set(released.version, released),
    user,
    async must(script: string, options?: Parameters<Rehearsal['user']>[1]) {
      const { code, stdout, stderr } = await user(script, options);
      if (code !== 0) throw new Error(`${script}\nended with ${code}:\n${stdout}${stderr}`);
      return stdout;
    },
  };
}

/** The blocks of a document that need a release, with the names of this rehearsal, for a version. */
export async function releaseBlocks(
  document: string,
  { place, source }: Pick<Rehearsal, 'place' | 'source'>,
  version: string,
): Promise<string[]> {
  const markdown = await readFile(join(ROOT, document), 'utf8');
  const current: unknown = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')).version;
  const blocks = [...markdown.matchAll(/^```sh tested-on-release\n([\s\S]*?)^```$/gm)].map(([, script = '']) => script);
  return blocks.map((script) =>
    script
      .replaceAll('registry.invalid/', `${place.host}/you/`)
      .replaceAll('https://source.invalid/archaware-controller', source)
      .replaceAll('https://releases.invalid/archaware', `${source}/releases/download`)
      .replaceAll(String(current), version)
      .replace(/^identity=\(.*$/m, 'identity=(--key cosign.pub --insecure-ignore-tlog)'),
  );
}

/** The one of these blocks that holds the text. */
export function blockWith(blocks: readonly string[], text: string): string {
  const [found, ...more] = blocks.filter((script) => script.includes(text));
  if (found === undefined || more.length > 0) throw new Error(`${found ? more.length + 1 : 0} blocks have ${text}`);
  return found;
}
