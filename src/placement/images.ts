import { ARCHITECTURES_ANNOTATION } from '../names.ts';
import { matchesGlob } from './glob.ts';
import { didYouMean, isWebAssembly, type Platform, readArchitecture } from './platform.ts';
import { MOST_IMAGES, type PodImage, type PodTemplate } from './pod.ts';
import type { Settings } from './settings.ts';

/** What is known of an image at the moment of a decision. */
export type ImageAnswer =
  | {
      readonly kind: 'known';
      readonly platforms: readonly Platform[];
      /** Absent: not known, which it may be for containers only. */
      readonly isIndex?: boolean;
    }
  | { readonly kind: 'pending' }
  | {
      readonly kind: 'failed';
      readonly code: string;
      readonly message: string;
      readonly registry: string;
      /** Milliseconds since this process's first failure of it. */
      readonly sinceMs: number;
      /** Milliseconds until the next look-up. */
      readonly retryInMs: number;
      /** Whether there is a single manifest: of an artifact, or of an image that names no platform. */
      readonly isSingleManifest?: boolean;
    };

/** What an image says of a template's set: the architectures of nodes that run it and who said so, or why it says none. */
export type Narrowing =
  | { readonly kind: 'not-asked' }
  /** It does not narrow: a single manifest that kubelets mount on every node, or WebAssembly, which runs where its RuntimeClass does. */
  | { readonly kind: 'anywhere'; readonly as: 'volume' | 'webassembly' }
  | {
      readonly kind: 'set';
      readonly by: 'override' | 'registry';
      readonly architectures: readonly string[];
      /** `linux/amd64` of what it was found to be. */
      readonly platforms: readonly string[];
    }
  | Exclude<ImageAnswer, { readonly kind: 'known' }>;

/** Answers that a template's images have without anybody being asked. */
type LocalAnswer = 'not-asked' | readonly string[] | undefined;

/** What one image of a template says of its set. Asks `answerOf` where it takes a registry to know. */
export function narrowingOf(
  image: PodImage,
  template: Pick<PodTemplate, 'os' | 'hasRuntimeClass'>,
  settings: Pick<Settings, 'overrides' | 'compatible'>,
  names: readonly string[],
  answerOf: (image: PodImage) => ImageAnswer,
): Narrowing {
  if (image.isSurplus) return surplus(image);
  const { os } = template;
  const local = answerLocally(image, names, settings);
  if (local === 'not-asked') return { kind: 'not-asked' };
  if (local !== undefined) {
    const platforms = local.map((architecture) => ({ os, architecture }));
    return narrowedBy('override', platforms, image, template, settings);
  }
  const answer = answerOf(image);
  if (image.volume !== undefined && isSingleManifest(answer)) return { kind: 'anywhere', as: 'volume' };
  if (answer.kind !== 'known') return answer;
  return narrowedBy('registry', answer.platforms, image, template, settings);
}

function narrowedBy(
  by: 'override' | 'registry',
  platforms: readonly Platform[],
  { volume }: PodImage,
  { os, hasRuntimeClass }: Pick<PodTemplate, 'os' | 'hasRuntimeClass'>,
  { compatible }: Pick<Settings, 'compatible'>,
): Narrowing {
  const isWasm = isWebAssembly(platforms.map(({ architecture }) => architecture));
  if (isWasm && hasRuntimeClass && volume === undefined) return { kind: 'anywhere', as: 'webassembly' };
  return {
    kind: 'set',
    by,
    architectures: isWasm ? [] : nodeArchitectures(platforms, os, compatible),
    platforms: [...new Set(platforms.map((platform) => `${platform.os}/${platform.architecture}`))],
  };
}

/** Whether it is known that there is a single manifest. */
function isSingleManifest(answer: ImageAnswer): boolean {
  if (answer.kind === 'known') return answer.isIndex === false;
  return answer.kind === 'failed' && answer.isSingleManifest === true;
}

/** The code of an object's first image after those that are asked about. */
export const TOO_MANY_IMAGES = 'too-many-images';

function surplus({ image }: PodImage): Narrowing {
  const message =
    `more than ${MOST_IMAGES} different images: ${image} and those after it are not asked about; ` +
    `state the architectures in the annotation ${ARCHITECTURES_ANNOTATION}`;
  return {
    kind: 'failed',
    code: TOO_MANY_IMAGES,
    message,
    registry: '',
    sinceMs: 0,
    retryInMs: Number.POSITIVE_INFINITY,
  };
}

/**
 * What needs no registry: `not-asked` for an image that is never pulled (it does not narrow), the architectures of the
 * first override whose pattern matches its text or one of its names, else undefined.
 */
export function answerLocally(
  image: { readonly image: string; readonly pullPolicy: string },
  names: readonly string[],
  settings: Pick<Settings, 'overrides'>,
): LocalAnswer {
  if (image.pullPolicy === 'Never') return 'not-asked';
  const override = settings.overrides.find(
    ({ pattern }) => matchesGlob(pattern, image.image) || names.some((name) => matchesGlob(pattern, name)),
  );
  return override?.architectures;
}

/**
 * The architectures of nodes on which an image with these platforms runs: those of its platforms for the OS, and those
 * whose nodes also run one of them (`architectures.compatible`). Sorted, each once.
 */
export function nodeArchitectures(
  platforms: readonly Platform[],
  os: string,
  compatible: Settings['compatible'],
): string[] {
  const own = new Set(platforms.filter((platform) => platform.os === os).map((platform) => platform.architecture));
  return withCompatible(own, compatible);
}

/** A set of architectures and those whose nodes run one of them too. Sorted. */
export function withCompatible(own: ReadonlySet<string>, compatible: Settings['compatible']): string[] {
  const all = new Set(own);
  for (const [node, runs] of Object.entries(compatible)) {
    if (runs.some((architecture) => own.has(architecture))) all.add(node);
  }
  return [...all].sort();
}

/** The architectures that are in every one of the sets; undefined where there is no set, which narrows nothing. */
export function intersect(sets: readonly (readonly string[])[]): string[] | undefined {
  const [first, ...others] = sets;
  return first?.filter((architecture) => others.every((set) => set.includes(architecture)));
}

/**
 * Reads a pod's own statement `amd64,arm64` or `all`. Throws an Error that names the value and what is allowed, for the
 * Event that says so.
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

/** A pod's own statement, where it can be read: else the caller says so in an Event, and it counts as absent. */
export function statementOf(statement: PodTemplate['statement']): 'all' | string[] | undefined {
  try {
    return statement === undefined ? undefined : readStatement(statement);
  } catch {
    return undefined;
  }
}

/** Those of the architectures that `architectures.schedulable` does not exclude. */
export function onlySchedulable(
  architectures: readonly string[],
  { schedulable }: Pick<Settings, 'schedulable'>,
): string[] {
  return architectures.filter((name) => schedulable.length === 0 || schedulable.includes(name));
}
