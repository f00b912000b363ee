/** What is mutated, and the tests that count. Paths are relative to the repository, with `/`. */

export const FOLDERS = {
  placement: /^src\/placement\//,
  // The parts that read what strangers wrote, or that decide where a password goes.
  oci: /^src\/oci\/(reference\.ts$|digest\.ts$|manifest\.ts$|http\/(challenge|guard|addresses)\.ts$|credentials\/)/,
  controllers: /^src\/controllers\//,
} as const;

export type FolderName = keyof typeof FOLDERS;

export const FOLDER_NAMES = ['placement', 'oci', 'controllers'] as const satisfies readonly FolderName[];

export function isFolderName(text: string): text is FolderName {
  return FOLDER_NAMES.some((name) => name === text);
}

/** Tests that run the bundle or a real control plane, where a mutant of `src` in this process changes nothing. */
const OTHER_PROCESSES = /^test\/((cli|e2e|long|autoscalers|neighbours|versions)\/|docs\.test\.ts$)/;
/** What a test file imports, perhaps through others, if it starts `dist/main.js`. */
export const STARTS_THE_BUNDLE = 'test/support/controller-process.ts';

export function isTestFile(path: string): boolean {
  return path.startsWith('test/') && path.endsWith('.test.ts') && !OTHER_PROCESSES.test(path);
}
