import { matchesGlob } from '../kit/glob.ts';
import { didYouMean, isWebAssembly, type Platform, readArchitecture } from '../kit/platform.ts';
import type { PodRuntime } from './objects/asked-platform.ts';
import type { PodImage } from './objects/containers.ts';
import type { PodTemplate } from './objects/pod.ts';
import type { Settings } from './settings.ts';
import type { Subject } from './subject.ts';

/** The knowledge of an image at the moment of a decision. */
export type ImageAnswer =
  | {
      readonly kind: 'known';
      readonly platforms: readonly Platform[];
      /** Whether it is an index. Absent: not known, so it counts neither as an index nor as a single manifest. */
      readonly isIndex?: boolean;
      /** Whether it is a single manifest whose labels say that it is a bundle of the Operator Lifecycle Manager. */
      readonly isBundle?: true;
      /** Whether this has expired and stays in use, because its last revalidation failed. */
      readonly isStale?: true;
    }
  | {
      readonly kind: 'pending';
      /** Milliseconds after which it must be asked for again, because too many lookups wait; absent: its end will be reported. */
      readonly retryInMs?: number;
      /** The registry's line in which lookups wait because of its limit, and the milliseconds until all there had their turn. */
      readonly line?: { readonly registry: string; readonly inMs: number };
    }
  | {
      readonly kind: 'failed';
      readonly code: string;
      readonly message: string;
      readonly registry: string;
      /** Milliseconds since this process first failed to look the image up. */
      readonly sinceMs: number;
      /** Milliseconds until the next lookup. */
      readonly retryInMs: number;
      /** Whether the name refers to a single manifest (of an artifact, or of an image that names no platform) and not to an index. */
      readonly isSingleManifest?: boolean;
      /** Whether the registry was not asked about this image, because of what it answered about others. */
      readonly isUnasked?: true;
    };

/** How one image narrows the architectures of a template: to which, and by whose word; or why it does not narrow them. */
export type Narrowing =
  | { readonly kind: 'not-asked' }
  /**
   * The image runs anywhere: a single manifest that kubelets mount on every node; WebAssembly, which runs where its RuntimeClass
   * does; or a bundle of the Operator Lifecycle Manager, which has only files for a program of another image.
   */
  | { readonly kind: 'anywhere'; readonly as: 'volume' | 'webassembly' | 'bundle' }
  | {
      readonly kind: 'set';
      readonly by: 'override' | 'registry';
      readonly architectures: readonly string[];
      /** Whether it is an index: then no runtime pulls the image on a node of another architecture. */
      readonly isIndex: boolean;
      /** The platforms of the image, as `linux/amd64`. */
      readonly platforms: readonly string[];
    }
  | Exclude<ImageAnswer, { readonly kind: 'known' }>;

/** Returns the normalised names of an image (`docker.io/library/nginx`, `docker.io/library/nginx:1.27`); empty for a malformed one. */
export type NamesOf = (image: string) => readonly string[];

/** An image and how it narrows the architectures. */
export type NarrowedImage = { readonly image: PodImage; readonly said: Narrowing };

/** Returns how each image of a subject narrows its architectures. */
export function narrow(
  subject: PodRuntime & Pick<Subject, 'images' | 'settings'>,
  { namesOf, answerOf }: { readonly namesOf: NamesOf; readonly answerOf: (image: PodImage) => ImageAnswer },
): NarrowedImage[] {
  return subject.images.map((image) => ({
    image,
    said: narrowingOf(image, subject, subject.settings, namesOf(image.image), answerOf),
  }));
}

/** Returns how one image of a pod narrows its architectures. Calls `answerOf` only if a registry is needed. */
export function narrowingOf(
  image: PodImage,
  runtime: PodRuntime,
  settings: Pick<Settings, 'overrides' | 'compatible'>,
  names: readonly string[],
  answerOf: (image: PodImage) => ImageAnswer,
): Narrowing {
  const local = answerLocally(image, names, settings);
  if (local === 'not-asked') return { kind: 'not-asked' };
  if (local !== undefined) {
    const platforms = local.map((architecture) => ({ os: runtime.os, architecture }));
    return narrowedBy('override', platforms, image, runtime, settings);
  }
  const answer = answerOf(image);
  if (image.volume !== undefined && isSingleManifest(answer)) return { kind: 'anywhere', as: 'volume' };
  if (answer.kind !== 'known') return answer;
  if (answer.isBundle) return { kind: 'anywhere', as: 'bundle' };
  return narrowedBy('registry', answer.platforms, image, runtime, settings, answer.isIndex);
}

function narrowedBy(
  by: 'override' | 'registry',
  platforms: readonly Platform[],
  { volume }: PodImage,
  { os, hasRuntimeClass }: PodRuntime,
  { compatible }: Pick<Settings, 'compatible'>,
  isIndex = false,
): Narrowing {
  const isWasm = isWebAssembly(platforms.map(({ architecture }) => architecture));
  if (isWasm && hasRuntimeClass && volume === undefined) return { kind: 'anywhere', as: 'webassembly' };
  return {
    kind: 'set',
    by,
    architectures: isWasm ? [] : nodeArchitectures(platforms, os, compatible, isIndex),
    isIndex,
    platforms: [...new Set(platforms.map((platform) => `${platform.os}/${platform.architecture}`))],
  };
}

function isSingleManifest(answer: ImageAnswer): boolean {
  if (answer.kind === 'known') return answer.isIndex === false;
  return answer.kind === 'failed' && answer.isSingleManifest === true;
}

/**
 * Answers without a registry if possible: `not-asked` for an image that is never pulled (it does not narrow), else the
 * architectures of the first override whose pattern matches the image's text or one of its names, else undefined.
 */
export function answerLocally(
  image: { readonly image: string; readonly pullPolicy: string },
  names: readonly string[],
  settings: Pick<Settings, 'overrides'>,
): 'not-asked' | readonly string[] | undefined {
  if (image.pullPolicy === 'Never') return 'not-asked';
  const override = settings.overrides.find(
    ({ pattern }) => matchesGlob(pattern, image.image) || names.some((name) => matchesGlob(pattern, name)),
  );
  return override?.architectures;
}

/**
 * Returns the architectures of nodes that can run an image with these platforms: the architectures of its platforms for the
 * OS, and the architectures whose nodes can also run one of them (`architectures.compatible`). Sorted, without duplicates.
 *
 * Container runtimes do not take an entry for another architecture from an index: CRI-O never, containerd not since 2.1, unless
 * `use_local_image_pull` is set. So an index is for other architectures only if it has nothing else.
 */
export function nodeArchitectures(
  platforms: readonly Platform[],
  os: string,
  compatible: Settings['compatible'],
  isIndex: boolean,
): string[] {
  const own = new Set(platforms.filter((platform) => platform.os === os).map((platform) => platform.architecture));
  const lesser = new Set(Object.values(compatible).flat());
  if (isIndex && [...own].some((architecture) => !lesser.has(architecture))) return [...own].sort();
  return withCompatible(own, compatible);
}

/** Adds the architectures whose nodes can also run one of the given ones (`architectures.compatible`). Sorted. */
export function withCompatible(own: ReadonlySet<string>, compatible: Settings['compatible']): string[] {
  const all = new Set(own);
  for (const [node, runs] of Object.entries(compatible)) {
    if (runs.some((architecture) => own.has(architecture))) all.add(node);
  }
  return [...all].sort();
}

/** Returns the architectures that are in every set; undefined if there is no set, so that nothing is narrowed. */
export function intersect(sets: readonly (readonly string[])[]): string[] | undefined {
  const [first, ...others] = sets;
  return first?.filter((architecture) => others.every((set) => set.includes(architecture)));
}

/**
 * Reads a pod's own statement of its architectures: `amd64,arm64` or `all`. Throws an Error that names the value and what is
 * allowed; the caller puts its text into an Event.
 */
export function readStatement(statement: NonNullable<PodTemplate['statement']>): 'all' | string[] {
  if (statement.trim().toLowerCase() === 'all') return 'all';
  const parts = statement.split(',');
  const known = parts.flatMap((part) => readArchitecture(part) ?? []);
  if (known.length < parts.length) {
    const strange = parts.find((part) => readArchitecture(part) === undefined) ?? '';
    const got = JSON.stringify(statement.slice(0, 80));
    throw new Error(
      `got ${got}, expected all or architectures separated by commas (amd64,arm64)${didYouMean(strange)}`,
    );
  }
  return [...new Set(known)].sort();
}

/** Reads a pod's own statement; an invalid one counts as absent (an Event reports it elsewhere). */
export function statementOf(statement: PodTemplate['statement']): 'all' | string[] | undefined {
  try {
    return statement === undefined ? undefined : readStatement(statement);
  } catch {
    return undefined;
  }
}

/** Returns the given architectures without those that `architectures.schedulable` excludes. */
export function onlySchedulable(
  architectures: readonly string[],
  { schedulable }: Pick<Settings, 'schedulable'>,
): string[] {
  return architectures.filter((name) => schedulable.length === 0 || schedulable.includes(name));
}
