import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

type Hook = (act: () => Promise<unknown>) => void;

/** For a suite: each of its tests has a new folder. `at()` is the folder, `at('a/b')` a path in it. */
export const folderForEach = () => folderFor(beforeEach, afterEach);
/** The same folder for all of its tests. */
export const folderForAll = () => folderFor(before, after);

function folderFor(begin: Hook, end: Hook) {
  let folder: string;
  begin(async () => {
    folder = await mkdtemp(join(tmpdir(), 'archaware-'));
  });
  end(async () => folder && rm(folder, { recursive: true, force: true }));
  const at = (name = ''): string => join(folder, name);
  const write = async (files: Readonly<Record<string, string>>): Promise<void> => {
    for (const [name, text] of Object.entries(files)) {
      await mkdir(dirname(at(name)), { recursive: true });
      await writeFile(at(name), text);
    }
  };
  return { at, write };
}
