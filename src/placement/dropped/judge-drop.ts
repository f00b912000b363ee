import { type JsonObject, listAt, stringAt } from '../../kit/json.ts';
import { type ImageAnswer, type NamesOf, narrowingOf, statementOf } from '../images.ts';
import { imageName, type PodImage } from '../objects/image.ts';
import type { PodTemplate } from '../objects/pod.ts';
import { readPulled } from '../objects/start-error.ts';
import type { Settings } from '../settings.ts';

/** The architectures that an image lacks although what ran before had them. */
export type Drop = {
  readonly container: string;
  readonly image: string;
  readonly architectures: readonly string[];
  /** What ran before: the image with the digest that was pulled, where that is known. */
  readonly previous: string;
  readonly ranOn: readonly string[];
  readonly dropped: readonly string[];
};

/** `none`: no image dropped anything. `pending`: the lookup of an image has not ended. `unknown`: an image could not be looked up. */
export type DropVerdict =
  | { readonly kind: 'drop'; readonly drops: readonly Drop[] }
  | { readonly kind: 'none' | 'pending' | 'unknown' };

/** A pod or the template of one, with its spec and its status as the API server sent them. */
export type DropSide = {
  readonly template: Pick<PodTemplate, 'os' | 'hasRuntimeClass' | 'statement'>;
  readonly spec: JsonObject;
  readonly status: JsonObject;
  readonly answerOf: (image: PodImage) => ImageAnswer;
};

/** The most containers of a pod that are compared. */
const MOST_CONTAINERS = 64;

/**
 * Judges whether the images of a newer pod or template lack an architecture that what was pulled for the earlier pod had. Containers
 * are compared by name. Only knowledge counts: not an annotation, an override, a failed lookup or a stale answer.
 *
 * @param ranOn the architectures that this process found for the images of the earlier pod, where its digests are not known
 * @param counted the architectures that count: those of the cluster
 */
export function judgeDrop(
  before: DropSide,
  after: DropSide,
  settings: Pick<Settings, 'overrides' | 'compatible'>,
  namesOf: NamesOf,
  { ranOn, counted }: { readonly ranOn: readonly string[] | undefined; readonly counted: readonly string[] },
): DropVerdict {
  if ([before, after].some(({ template }) => isStated(template))) return { kind: 'none' };
  const old = new Map(containersIn(before.spec).map((container) => [stringAt(container, 'name') ?? '', container]));
  const drops: Drop[] = [];
  let [isPending, isUnknown] = [false, false];
  for (const container of containersIn(after.spec).slice(0, MOST_CONTAINERS)) {
    const name = stringAt(container, 'name') ?? '';
    const previous = old.get(name);
    if (previous === undefined) continue;
    const now = setOf(imageOf(container), after, settings, namesOf);
    const pulled = pulledFor(previous, before.status);
    // What an override said then is not what the image said.
    const was = pulled && setOf(pulled, before, { ...settings, overrides: [] }, namesOf);
    const architectures = typeof was === 'object' ? was : was === 'pending' ? undefined : ranOn;
    isPending ||= now === 'pending' || was === 'pending';
    isUnknown ||= now === 'unknown' || (was === 'unknown' && ranOn === undefined);
    if (typeof now !== 'object' || architectures === undefined) continue;
    const dropped = architectures.filter((each) => counted.includes(each) && !now.includes(each));
    if (dropped.length === 0) continue;
    const ran = typeof was === 'object' ? (pulled?.image ?? '') : imageOf(previous).image;
    drops.push({
      container: name,
      image: imageOf(container).image,
      architectures: now,
      previous: ran,
      ranOn: architectures,
      dropped,
    });
  }
  if (drops.length > 0) return { kind: 'drop', drops };
  return { kind: isPending ? 'pending' : isUnknown ? 'unknown' : 'none' };
}

function isStated({ statement }: DropSide['template']): boolean {
  return statementOf(statement) !== undefined;
}

function containersIn(spec: JsonObject): JsonObject[] {
  return ['initContainers', 'containers'].flatMap((list) => listAt(spec, list) ?? []);
}

function imageOf(container: JsonObject): PodImage {
  return {
    image: imageName(stringAt(container, 'image') ?? ''),
    pullPolicy: stringAt(container, 'imagePullPolicy') ?? '',
  };
}

/** Returns the digest that was pulled for a container, under the repository of its image. */
function pulledFor(container: JsonObject, status: JsonObject): PodImage | undefined {
  const { image, pullPolicy } = imageOf(container);
  if (pullPolicy === 'Never') return undefined;
  const statuses = ['initContainerStatuses', 'containerStatuses'].flatMap((list) => listAt(status, list) ?? []);
  const own = statuses.find(({ name }) => name === container.name);
  return readPulled(image, (own && stringAt(own, 'imageID')) ?? '');
}

/** Returns the architectures of nodes that run an image by the word of a registry; undefined: it does not narrow them. */
function setOf(
  image: PodImage,
  { template, answerOf }: DropSide,
  settings: Pick<Settings, 'overrides' | 'compatible'>,
  namesOf: NamesOf,
): readonly string[] | 'pending' | 'unknown' | undefined {
  let isStale = false;
  const said = narrowingOf(image, template, settings, namesOf(image.image), (asked) => {
    const answer = answerOf(asked);
    isStale = answer.kind === 'known' && answer.isStale === true;
    return answer;
  });
  switch (said.kind) {
    case 'pending':
      return 'pending';
    case 'failed':
      return 'unknown';
    case 'set':
      if (said.by === 'override') return undefined;
      return isStale ? 'unknown' : said.architectures;
    case 'not-asked':
    case 'anywhere':
      return undefined;
    default:
      return said satisfies never;
  }
}

/** The most bytes of the name of an image in a note: what follows must have room. */
const MOST_NAME = 200;

/** Returns the note of the Event. `stranded`: how many running pods are on nodes that the new template cannot use. */
export function dropNote([first, ...others]: readonly Drop[], stranded: number): string {
  if (first === undefined) return '';
  const { container, image, architectures, previous, ranOn, dropped } = first;
  const pods = stranded === 1 ? '1 running pod is on a node' : `${stranded} running pods are on nodes`;
  const more =
    others.length === 0
      ? ''
      : ` (and ${others.length} more: ${others
          .map((each) => each.container)
          .join(', ')
          .slice(0, MOST_NAME)})`;
  return (
    `${dropped.join(', ')} was dropped: ${shortName(image)} of container ${container}${more} runs on ${setText(architectures)}, and what runs now, ` +
    `${shortName(previous)}, runs on ${setText(ranOn)}; ${pods} that the new template can no longer use; ` +
    'go back to the earlier image, or keep room on the nodes that are left'
  );
}

function setText(architectures: readonly string[]): string {
  return architectures.length === 0 ? 'no architecture' : architectures.join(', ');
}

/** Cuts a long name in the middle: its end has the tag or the digest. */
function shortName(image: string): string {
  if (image.length <= MOST_NAME) return image;
  return `${image.slice(0, MOST_NAME - 81)}…${image.slice(-80)}`;
}
