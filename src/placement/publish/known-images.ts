import { isObject, type JsonObject, objectAt, stringAt } from '../../kit/json.ts';
import { isArchitecture } from '../../kit/platform.ts';
import type { NarrowedImage, Narrowing } from '../images.ts';
import { usesTaints } from '../placing.ts';
import type { Settings } from '../settings.ts';

/**
 * The published answers by image, as its pods spell it: `amd64,arm64` for an index, `=amd64` for a single manifest (as an image volume
 * it does not narrow), `!amd64` for one of `images.overrides`. The policy `archaware-place` reads them
 * (manifests/kustomize/components/publish/policy.yaml).
 */
export type Answers = ReadonlyMap<string, string>;

/** The fields of the object `known` that the leader writes, apart from the time. */
export type KnownImages = {
  /** The key and the effect of archaware's taint: the policy does nothing if its own are others. */
  readonly taint: string;
  /** The only architectures that pods get; empty: all. */
  readonly schedulable: readonly string[];
  /** A regular expression (RE2) for namespaces that are left alone. */
  readonly excluded: string;
  /** Whether templates of DaemonSets are served. */
  readonly daemonSets: boolean;
  readonly count: number;
  /**
   * The images by the path before their last `/`, and by their answer. A key is `/` and the path with its `/`, and its text
   * `/amd64,arm64 nginx:1 redis:7 /=amd64 tool:1 `. The API server copies all of it for each pod, so neither a path nor an answer stands
   * there for each image, and JSON escapes nothing.
   */
  readonly images: Readonly<Record<string, string>>;
};

/** Said until the object is there. */
export const NOT_YET = 'nothing is written yet';

/** Matches no name of a namespace. */
const NOTHING = '^$';
const EVERYTHING = '.*';
/** The limit of the CustomResourceDefinition is twice as much. */
const LONGEST_PATTERN = 32 * 1024;
/** Who chooses names can choose their part. What has no room there is not published, and the policy reads no long text. */
const LONGEST_PART = 64 * 1024;
/** In all: it costs the API server time for each new pod of everybody. The shortest names come first. */
const MOST_TEXT = 128 * 1024;
/** Parts that a person or another version wrote may be of any size. */
const MOST_READ = 2 * 1024 * 1024;

/** Returns why nothing can be published under these settings; undefined: it can. */
export function whyNothingIsPublished(settings: Settings, loops: readonly string[]): string | undefined {
  if (!usesTaints(settings)) return `placement.mode is ${settings.mode}`;
  if (!loops.includes('pods')) return 'loops does not have pods';
  if (settings.namespaceSelector.length > 0) return 'pods.namespaceSelector is set';
  const own = settings.policies.find((policy) => policy.settings.schedulable !== settings.schedulable);
  return own === undefined ? undefined : `the policy ${own.name} has architectures of its own (schedulable)`;
}

/** Returns the answer to publish for an image, or why there is none. `said`: how it narrows a Linux pod without a RuntimeClass. */
export function answerFor(said: Narrowing): { readonly text: string } | { readonly why: string } {
  if (said.kind === 'pending' || said.kind === 'failed') return { why: 'its platforms are not known' };
  if (said.kind !== 'set' || said.architectures.length === 0) return { why: 'it has no architecture of its own' };
  if (said.by === 'override') return { text: `!${said.architectures.join(',')}` };
  if (said.platforms.some((platform) => !platform.startsWith('linux/'))) {
    return { why: 'it has platforms of several operating systems' };
  }
  return { text: `${said.isIndex ? '' : '='}${said.architectures.join(',')}` };
}

/** Returns the images that are not published, and why: a pod of them is not placed as it is created. */
export function unpublished(narrowed: readonly NarrowedImage[], answers: Answers): { image: string; why: string }[] {
  return narrowed.flatMap(({ image: { image }, said }) => {
    if (said.kind === 'not-asked' || answers.has(image)) return [];
    const answer = answerFor(said);
    if ('why' in answer) return { image, why: answer.why };
    const hasRoom = readAnswers(packed(new Map([...answers, [image, answer.text]]))).has(image);
    return { image, why: hasRoom ? 'no pod used it while a replica led' : 'no room: shorter names come first' };
  });
}

/** Returns the object for these answers. `alone`: namespaces that are left alone in addition to those of the settings. */
export function knownImages(
  answers: Answers,
  settings: Settings,
  alone: Iterable<string>,
  daemonSets = false,
): KnownImages {
  const { taints, schedulable, excludeNamespaces } = settings;
  const excluded = patternOf([...excludeNamespaces, ...alone]);
  return { taint: `${taints.key}:${taints.effect}`, schedulable, excluded, daemonSets, ...packed(answers) };
}

/** Returns the texts of as many answers as there is room for. */
function packed(answers: Answers): Pick<KnownImages, 'count' | 'images'> {
  const parts = new Map<string, { length: number; readonly names: Map<string, string> }>();
  let [count, length] = [0, 0];
  for (const image of [...answers.keys()].sort((one, other) => one.length - other.length || (one < other ? -1 : 1))) {
    const [key, name] = splitAtName(image);
    const answer = answers.get(image) ?? '';
    const part = parts.get(key) ?? { length: 0, names: new Map() };
    const more = name.length + answer.length + 3;
    const inAll = length + more + (parts.has(key) ? 0 : key.length);
    if (part.length + more > LONGEST_PART || inAll > MOST_TEXT) continue;
    part.length += more;
    length = inAll;
    parts.set(key, part);
    part.names.set(answer, `${part.names.get(answer) ?? ''}${name} `);
    count++;
  }
  const textOf = (names: ReadonlyMap<string, string>) => [...names].map((each) => `/${each.join(' ')}`).join('');
  return { count, images: Object.fromEntries([...parts].map(([key, { names }]) => [key, textOf(names)])) };
}

/** Reads the answers of the object, and leaves out what has another form. */
export function readAnswers(object: JsonObject): Map<string, string> {
  const answers = new Map<string, string>();
  let left = MOST_READ;
  const images = objectAt(object, 'images');
  for (const part of Object.keys(images)) {
    const text = stringAt(images, part) ?? '';
    left -= text.length;
    if (left < 0) break;
    for (const group of text.split('/')) {
      const [answer = '', ...names] = group.split(' ');
      if (!architecturesOf(answer).every(isArchitecture)) continue;
      for (const name of names) if (name !== '') answers.set(`${part.slice(1)}${name}`, answer);
    }
  }
  return answers;
}

/** Returns the architectures of an answer. */
export function architecturesOf(answer: string): string[] {
  return answer.replace(/^[=!]/, '').split(',');
}

/** Returns the fields of a merge patch (RFC 7386) that turns what the object has into what it should have. */
export function changedFields(object: JsonObject, wanted: KnownImages): JsonObject {
  const changed: Record<string, unknown> = {};
  const differs = (one: unknown, other: unknown) => JSON.stringify(one) !== JSON.stringify(other);
  for (const [name, value] of Object.entries(wanted)) {
    if (name !== 'images' && differs(object[name], value)) changed[name] = value;
  }
  const before = objectAt(object, 'images');
  const gone = Object.keys(before).filter((part) => !Object.hasOwn(wanted.images, part));
  const images = Object.fromEntries([
    ...Object.entries(wanted.images).filter(([part, text]) => before[part] !== text),
    ...gone.map((part) => [part, null]),
  ]);
  if (Object.keys(images).length > 0 || !isObject(object.images)) changed.images = images;
  return changed;
}

/** Returns the part that an image is in, and its name there. The policy calculates the same. */
function splitAtName(image: string): [part: string, name: string] {
  const at = image.lastIndexOf('/') + 1;
  return [`/${image.slice(0, at)}`, image.slice(at)];
}

function patternOf(globs: readonly string[]): string {
  if (globs.length === 0) return NOTHING;
  const texts = globs.map((glob) =>
    glob
      .replace(/[^a-z0-9*?]/g, '\\$&')
      .replaceAll('*', '.*')
      .replaceAll('?', '.'),
  );
  const pattern = `^(${[...new Set(texts)].sort().join('|')})$`;
  return pattern.length > LONGEST_PATTERN ? EVERYTHING : pattern;
}
