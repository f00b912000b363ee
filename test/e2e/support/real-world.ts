/** A cluster with a real node, and the project's image to install on it. */
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { podImage } from '../../../hack/cluster/node-images.ts';
import type { RealNode } from '../../../hack/cluster/real-node.ts';
import { binaries } from '../../../hack/cluster/spawn.ts';
import { index } from '../../../testimg/build.ts';
import { TESTIMG_REPOSITORY } from '../../../testimg/fixtures.ts';
import { pushFixtures } from '../../../testimg/push.ts';
import type { Finished } from '../../support/controller-process.ts';
import { makeWorkplace, type Workplace } from '../../support/doc-blocks.ts';
import { standInFor } from '../../support/world.ts';
import { imageBuilders, type ProjectImage, pushProjectImage } from './project-image.ts';
import { needsRealNode, otherArchitecture } from './real-node.ts';
import { type LiveWorld, startWorld } from './world.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

export type RealWorld = {
  readonly world: LiveWorld;
  readonly node: RealNode;
  /** The architecture of the node. */
  readonly own: string;
  /** That of the node that kwok plays. */
  readonly other: string;
  /** The node that kwok plays. */
  readonly fake: string;
  /** The project's image, as the node pulls it. */
  image(): Promise<ProjectImage>;
  /** Runs kubectl as admin; throws with what it says where it fails. */
  kubectl(...args: readonly string[]): Promise<string>;
  /** Runs a shell script where the documents' blocks run. An editor that it starts changes the file by the sed script. */
  script(script: string, edit?: string): Promise<Finished>;
  /** Runs the shell block of a document that holds the text, as it stands, apart from `instead`: what is replaced by what. */
  block(document: string, text: string, instead?: Readonly<Record<string, string>>, edit?: string): Promise<Finished>;
  stop(): Promise<void>;
};

/** For a suite: what stands for its real world, and for the world in that. Skips it where no real node can run, or the image cannot be built. */
export function realWorldForAll(): { readonly real: RealWorld; readonly world: LiveWorld } {
  const real = standInFor([before, after], async (context) => {
    needsRealNode(context, ...imageBuilders);
    return startRealWorld();
  });
  return { real, world: new Proxy(Object.create(null), { get: (_, name) => Reflect.get(real.world, name) }) };
}

/** Starts it. The image is built meanwhile and afterwards, unless there is a copy of it. */
async function startRealWorld(): Promise<RealWorld> {
  const world = await startWorld({ cluster: { node: 'real' }, manifest: '', nodes: [] });
  const { cluster, registry } = world;
  const { node } = cluster;
  if (node === undefined) throw new Error('the cluster has no node');
  const directory = await mkdtemp(join(tmpdir(), 'archaware-real-'));
  const built = pushProjectImage(directory, registry.host);
  // A request for it is answered with the error.
  built.catch(() => undefined);
  const own = node.architecture;
  const other = otherArchitecture(node);
  const fake = `fake-${other}`;
  let workplace: Workplace | undefined;
  const stop = async () => {
    await built.catch(() => undefined);
    await Promise.all([world.stop(), workplace?.remove(), rm(directory, { recursive: true, force: true })]);
  };
  try {
    await Promise.all([cluster.createNode({ name: fake, architecture: other }), pushPrograms(world, own, other)]);
    workplace = await makeWorkplace();
  } catch (error) {
    await stop();
    throw error;
  }
  const place = workplace;
  const script: RealWorld['script'] = async (text, edit = '') => {
    const editor = join(directory, 'editor.sh');
    await writeFile(editor, `#!/bin/sh\nexec sed -i -e '${edit}' "$1"\n`);
    await chmod(editor, 0o755);
    const PATH = [binaries(), process.env.PATH].join(delimiter);
    const environment = { PATH, KUBECONFIG: cluster.kubeconfig, KUBE_EDITOR: editor };
    return place.run({ line: 0, mark: 'tested-on-cluster', exit: 0, script: text }, environment);
  };
  return {
    world,
    node,
    own,
    other,
    fake,
    async image() {
      const { repository, digest } = await built;
      return { repository: repository.replace(registry.host, registry.nodeHost ?? ''), digest };
    },
    async kubectl(...args) {
      const { code, stdout, stderr } = await cluster.kubectl(args);
      if (code !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr}`);
      return stdout;
    },
    script,
    async block(document, text, instead = {}, edit) {
      let found = await shellBlock(document, text);
      for (const [from, to] of Object.entries(instead)) {
        if (!found.includes(from)) throw new Error(`the block of ${document} has no ${from}: ${found}`);
        found = found.replaceAll(from, to);
      }
      return script(found, edit);
    },
    stop,
  };
}

/** Installs the single manifest with the image, as docs/install.md says. */
export async function installManifest(real: RealWorld): Promise<ProjectImage> {
  const image = await real.image();
  const name = { 'registry.example.com/you/archaware-controller:0.2.0': `${image.repository}@${image.digest}` };
  await real.block('docs/install.md', 'kubectl apply -f archaware.yaml', name);
  return image;
}

/** Puts lines at the top of config.yaml in the ConfigMap, in the place of those of the same key, by an editor. */
export const editConfiguration = (real: RealWorld, ...lines: readonly string[]): Promise<unknown> =>
  real.script('kubectl -n archaware edit configmap archaware-controller', configurationEdit(...lines));

/** The same, as a sed script for an editor that a documented block starts. */
export function configurationEdit(...lines: readonly string[]): string {
  const without = lines.map((line) => `/^    ${line.split(':')[0]}: /d`);
  const inserted = lines.map((line) => `    ${line}`).join('\\\n');
  return [...without, '/^  config.yaml: |/a\\', inserted].join('\n');
}

/** The one shell block of a document that holds the text. */
export async function shellBlock(document: string, text: string): Promise<string> {
  const markdown = await readFile(join(ROOT, document), 'utf8');
  const blocks = [...markdown.matchAll(/^```sh.*\n([\s\S]*?)^```$/gm)].map(([, script = '']) => script);
  const all = blocks.filter((script) => script.includes(text));
  const [found] = all;
  if (found === undefined || all.length > 1) throw new Error(`${document}: ${all.length} blocks with ${text}`);
  return found;
}

type Architecture = RealNode['architecture'];

/** Images that have something to run: `program-`: one manifest, `index-`: an index of it. */
export async function pushPrograms({ registry }: LiveWorld, own: Architecture, other: Architecture): Promise<void> {
  const [right, wrong, mislabelled] = await Promise.all([podImage(own), podImage(other), podImage(other, own)]);
  const entries = [
    { of: right, platform: { os: 'linux', architecture: own } },
    { of: wrong, platform: { os: 'linux', architecture: other } },
  ];
  const images = {
    [`program-${own}`]: right,
    [`program-${other}`]: wrong,
    'index-both': index(entries),
    [`index-${other}`]: index(entries.slice(1)),
    /** It says the node's architecture, and holds a program for the other one. */
    mislabelled,
  };
  const fixtures = Object.entries(images).map(([tag, built]) => ({ tag, build: () => built }));
  await pushFixtures({ registry: registry.host, repository: TESTIMG_REPOSITORY, insecure: true, fixtures });
}
