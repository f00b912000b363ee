/** The embedded cluster beside a directory of label rules: what tests of these need. */
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { at, object, text } from '../simulator/json.ts';
import type { Contents } from './mounted.ts';
import { type Product, startProduct } from './product.ts';
import type { RunningController } from './running.ts';

export type Labelled = {
  readonly product: Product;
  readonly directory: string;
  /** Writes files of rules, each in one step. */
  write(files: Contents): Promise<void>;
  /** Runs the controller with the directory. */
  run(...flags: readonly string[]): Promise<RunningController>;
  /** Sets labels of a node, as somebody else; null takes one away. */
  label(node: string, labels: Readonly<Record<string, string | null>>): Promise<void>;
  /** Labels of a node in the domains that these tests use, as `key=value`, sorted. */
  labelsOf(node: string): Promise<string[]>;
  /** Waits until these are the labels. */
  eventually(node: string, ...labels: readonly string[]): Promise<void>;
  /** The labels that the annotation records. */
  recorded(node: string): Promise<unknown>;
  stop(): Promise<void>;
};

export const AMD = '/api/v1/nodes/amd64-1';
export const ARM = '/api/v1/nodes/arm64-1';
/** What the rules of these tests ask for. */
export const USB = 'example.com/usb';

/** Starts everything but the controller. */
export async function startLabelled(): Promise<Labelled> {
  const directory = await mkdtemp(join(tmpdir(), 'archaware-labels-'));
  const product = await startProduct();
  const labelsOf: Labelled['labelsOf'] = async (node) =>
    Object.entries(object(at(await product.get(node), 'metadata', 'labels')))
      .map(([key, value]) => `${key}=${text(value)}`)
      .filter((pair) => /^(example\.com|accelerators|other)\//.test(pair))
      .sort();
  return {
    product,
    directory,
    labelsOf,
    async write(files) {
      for (const [path, contents] of Object.entries(files)) {
        const file = join(directory, path);
        await mkdir(dirname(file), { recursive: true });
        await writeFile(`${file}~`, contents);
        await rename(`${file}~`, file);
      }
    },
    run: (...flags) => product.run(['--nodeLabels.directory', directory, ...flags]),
    async label(node, labels) {
      await product.patch(node, { metadata: { labels } });
    },
    async eventually(node, ...labels) {
      const wanted = [...labels].sort().join();
      await product.eventually(
        `${node} to have ${wanted || 'no label'}`,
        async () => (await labelsOf(node)).join() === wanted,
      );
    },
    async recorded(node) {
      const annotation = at(await product.get(node), 'metadata', 'annotations', 'archaware.dev/managed');
      return annotation === undefined ? undefined : at(JSON.parse(text(annotation)), 'labels');
    },
    async stop() {
      await product.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
