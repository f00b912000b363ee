/** Which versions of Kubernetes are supported, and which of them the tests run on. */
import { existsSync, readFileSync } from 'node:fs';
import { z } from 'zod';

/** A minor version of Kubernetes: `1.37`. */
const minorName = z.string().regex(/^1[.]\d+$/, 'expected a minor version such as 1.37');
const day = z.string().regex(/^\d{4}-\d{2}-\d{2}$/, 'expected a day such as 2026-11-23');

/** What `versions.json` holds. The newest minor, which is the main line, is the first. */
const recordSchema = z.strictObject({
  /** The day on which upstream's dates were read. */
  read: day,
  minors: z
    .array(
      z.strictObject({
        minor: minorName,
        /** The day on which upstream's support ends. */
        end: day,
        /** Whether the day was computed, because upstream has not published one. */
        computed: z.literal(true).optional(),
      }),
    )
    .min(1),
});

/** The record of the supported minors, without what the modules say. */
export type VersionsRecord = z.infer<typeof recordSchema>;

/** A supported minor. `patch`: the version that the tests run on (`1.36.3`), if they run on one. */
export type Supported = VersionsRecord['minors'][number] & { readonly patch?: string };

/** The supported minors, newest first. */
export type Versions = { readonly read: string; readonly minors: readonly Supported[] };

/** A minor that the tests run on, with its patch version. */
export type Tried = { readonly minor: string; readonly patch: string };

const FOLDER = 'hack/cluster/versions';
const TOOLS = 'hack/cluster/tools';

/** Where the record is, from the root of the repository. */
export const RECORD = `${FOLDER}/versions.json`;

/** The folder of the module of a minor that the tests run on, from the root of the repository. */
export const moduleFolder = (minor: string, isMain: boolean): string =>
  isMain ? `${TOOLS}/kubernetes` : `${TOOLS}/kubernetes-${minor}`;

/** Returns the minor of a version: `1.37` of `1.37.2`, and of `1.37`. */
export const minorOf = (version: string): string => version.split('.').slice(0, 2).join('.');

/** Orders minors and versions, the newest first. Pre-releases of one version count as equal. */
export function byNewest(left: string, right: string): number {
  const [one, other] = [left, right].map((version) => version.split('-')[0]?.split('.').map(Number) ?? []);
  for (const [index, part] of (other ?? []).entries()) {
    const difference = part - (one?.[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** Reads the record. Throws with what is wrong in it, and if the newest minor is not the first. */
export function parseRecord(text: string): VersionsRecord {
  const found = recordSchema.safeParse(JSON.parse(text));
  if (!found.success) throw new Error(`${RECORD}: ${z.prettifyError(found.error)}`);
  const names = found.data.minors.map(({ minor }) => minor);
  if (String(names) !== String([...names].sort(byNewest)))
    throw new Error(`${RECORD}: the newest minor is not the first`);
  return found.data;
}

/** The record as `versions.json` holds it: a line for each minor, as the formatter writes it. */
export function formatRecord({ read, minors }: VersionsRecord): string {
  const lines = minors.map(
    (one) =>
      `    { ${Object.entries(one)
        .map(([key, value]) => `"${key}": ${JSON.stringify(value)}`)
        .join(', ')} }`,
  );
  return `{\n  "read": "${read}",\n  "minors": [\n${lines.join(',\n')}\n  ]\n}\n`;
}

/** Returns the version of Kubernetes (`1.37.2`) that the text of a go.mod pins. Throws if it pins none. */
export function pinnedIn(goMod: string): string {
  const [, version] = /^\s*(?:require )?k8s[.]io\/kubernetes v(\S+)/m.exec(goMod) ?? [];
  if (version === undefined) throw new Error('the go.mod requires no k8s.io/kubernetes');
  return version;
}

/** Reads the record and the modules below the root of a repository. */
export function readVersions(root: URL): Versions {
  const { read, minors } = parseRecord(readFileSync(new URL(RECORD, root), 'utf8'));
  return {
    read,
    minors: minors.map((one, index) => {
      const goMod = new URL(`${moduleFolder(one.minor, index === 0)}/go.mod`, root);
      return existsSync(goMod) ? { ...one, patch: pinnedIn(readFileSync(goMod, 'utf8')) } : one;
    }),
  };
}

/** The minors that the tests run on: the main line, then the older ones, newest first. Throws if there is no main line. */
export function triedOf({ minors }: Versions): { readonly main: Tried; readonly older: readonly Tried[] } {
  const [main, ...older] = minors.flatMap(({ minor, patch }) => (patch === undefined ? [] : { minor, patch }));
  if (main === undefined || main.minor !== minors[0]?.minor) throw new Error(`${TOOLS}/kubernetes has no go.mod`);
  return { main, older };
}
