/** The shell blocks of our documents that are marked as tested, and what runs them. */
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { attempt } from '../../hack/programs.ts';
import { startTestRegistry } from '../simulator/registry/registry.ts';
import type { Finished } from './controller-process.ts';

/** What a block needs: Node.js alone; or also kubectl and a real control plane; or a release in a registry, and cosign. */
const MARKS = ['tested', 'tested-on-cluster', 'tested-on-release'] as const;
export type Mark = (typeof MARKS)[number];

/** One block that begins with ```` ```sh tested ````, or another mark in its place, perhaps with ` exit=2`. */
export type Block = { readonly line: number; readonly mark: Mark; readonly exit: number; readonly script: string };

/** What in the repository the blocks name. */
const NAMED = ['dist', 'docs', 'labels', 'manifests'];
const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** The marked blocks of a text. Throws for a mark that is not one: such a block would never be run. */
export function blocksIn(markdown: string): Block[] {
  const blocks: Block[] = [];
  let open: { line: number; info: string; script: string[] } | undefined;
  for (const [index, line] of markdown.split('\n').entries()) {
    if (open !== undefined && line !== '```') open.script.push(line);
    else if (open !== undefined) {
      blocks.push(...marked(open));
      open = undefined;
    } else if (line.startsWith('```')) open = { line: index + 1, info: line.slice(3), script: [] };
  }
  if (open !== undefined) throw new Error(`the block of line ${open.line} has no end`);
  return blocks;
}

function marked({ line, info, script }: { line: number; info: string; script: readonly string[] }): Block[] {
  const [, name, exit = '0'] = /^sh (tested[a-z-]*)(?: exit=([0-9]+))?$/.exec(info) ?? [];
  const mark = MARKS.find((one) => one === name);
  if (mark !== undefined) return [{ line, mark, exit: Number(exit), script: script.join('\n') }];
  if (/^sh ./.test(info)) throw new Error(`line ${line}: "${info}" is not a mark`);
  return [];
}

/** The marked blocks of a document of the repository; none where it is not there. */
export async function blocksOf(document: string): Promise<Block[]> {
  return existsSync(`${ROOT}${document}`) ? blocksIn(await readFile(`${ROOT}${document}`, 'utf8')) : [];
}

/** Where the blocks of a document run, one after the other: an empty directory with links to what they name. */
export type Workplace = {
  readonly directory: string;
  /** Runs a block as bash does with -eu; throws with all that it printed where it ends otherwise than it says. */
  run(block: Block, environment: Readonly<Record<string, string>>): Promise<Finished>;
  remove(): Promise<void>;
};

/** Makes the directory. */
export async function makeWorkplace(): Promise<Workplace> {
  const directory = await mkdtemp(join(tmpdir(), 'archaware-docs-'));
  for (const name of NAMED.filter((named) => existsSync(`${ROOT}${named}`))) {
    await symlink(`${ROOT}${name}`, join(directory, name));
  }
  return {
    directory,
    async run({ script, exit, line }, environment) {
      const variables = Object.entries({ PATH: process.env.PATH, HOME: directory, ...environment });
      const given = ['-i', ...variables.map((pair) => pair.join('='))];
      const ended = await attempt('env', [...given, 'bash', '-euo', 'pipefail', '-c', script], { cwd: directory });
      if (ended.code === exit) return ended;
      throw new Error(
        `the block of line ${line} ended with ${ended.code}, not ${exit}:\n${ended.stdout}${ended.stderr}`,
      );
    },
    remove: () => rm(directory, { recursive: true }),
  };
}

/** Images that the documents name, at a registry that stands in for registry.example.com. */
export async function startDocumentRegistry() {
  const registry = await startTestRegistry();
  registry.put('shop/web', '2.3', ['amd64', 'arm64', 's390x']);
  registry.put('shop/web', '2.4', ['amd64', 'arm64']);
  registry.put('shop/migrate', '2.5', ['arm64']);
  registry.put('team/app', '1.2', ['amd64', 'arm64']);
  const mirrors = { 'registry.example.com': { endpoints: [`http://${registry.host}`], fallback: false } };
  return {
    /** The variables by which our program finds them. */
    environment: { ARCHAWARE_REGISTRIES__MIRRORS: JSON.stringify(mirrors) },
    stop: () => registry.stop(),
  };
}
