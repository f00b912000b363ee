import { describeSets } from '../reasons.ts';
import type { WrongNodeFinding } from './judge.ts';

type Where = { readonly name: string; readonly architecture: string };

/** Returns the text for a pod on a wrong node. `outcome`: what was done about it. */
export function wrongNodeNote(finding: WrongNodeFinding, node: Where, outcome: string): string {
  const { known, pulled } = finding;
  const isNamed = known.images.some(({ image }) => image === pulled?.image);
  const sets = [
    pulled === undefined || isNamed ? '' : `pulled ${describeSets([pulled])}`,
    describeSets(known.images),
    known.unknown.length > 0 ? `not known: ${known.unknown.join(', ')}` : '',
  ].filter(Boolean);
  return [`${whatIsSeen(finding, node)}; ${outcome}`, ...sets].join('; ');
}

/** Characters of a name in {@link whatLies}: with two names, an Event about a long one still has the whole text. */
const MOST_NAME = 160;
/** The end of a name that is kept: it has the digest. */
const END_OF_NAME = 140;
const MOST_ARCHITECTURES = 8;

/**
 * Returns the problem and a step, for a container that is refused although its image claims the node's architecture. The step has an
 * entry for `images.overrides` that can be copied: its pattern is the name in the pod's spec, because a digest matches no tag.
 */
export function whatLies({ container, pulled, known }: WrongNodeFinding, architecture: string): string {
  if (container.trouble !== 'exec-format-error') {
    return pulled === undefined
      ? `its images have ${architecture}, as far as is known: the next pull may succeed`
      : `the image that it ran before has ${architecture}, but the image that its tag names now cannot be pulled here: push the tag for ${architecture}, or delete the pod`;
  }
  const { image } = container;
  const why = 'it contains files of another architecture, or starts a script without #!';
  if (pulled?.isStated === true) {
    return `images.overrides says that its image ${shortened(image)} runs on ${architecture}, but it does not (${why}): rebuild it, or correct the entry of images.overrides`;
  }
  const claim = pulled ?? known.images.find((each) => each.image === image && each.volume === undefined);
  const others = (claim?.architectures ?? []).filter((name) => name !== architecture).slice(0, MOST_ARCHITECTURES);
  const pattern = JSON.stringify(image.length <= MOST_NAME ? image : `*${image.slice(1 - MOST_NAME)}`);
  const step =
    others.length === 0
      ? `state the architectures of ${pattern} in images.overrides`
      : `add to images.overrides {pattern: ${pattern}, architectures: [${others.join(', ')}]}`;
  return `its image ${shortened(claim?.image ?? image)} claims to run on ${architecture}, but it does not (${why}): rebuild it, or ${step}`;
}

function shortened(name: string): string {
  return name.length <= MOST_NAME ? name : `${name.slice(0, MOST_NAME - END_OF_NAME - 1)}…${name.slice(-END_OF_NAME)}`;
}

function whatIsSeen({ container, verdict, known }: WrongNodeFinding, { name, architecture }: Where): string {
  const where = `node ${name} (${architecture})`;
  const lacking = known.images.filter(({ architectures }) => !architectures.includes(architecture));
  const [first] = lacking;
  switch (container.trouble) {
    case 'exec-format-error':
      return `container ${container.name} died with an exec format error on ${where}`;
    case 'no-match-for-platform':
      if (first?.volume !== undefined && lacking.every(({ volume }) => volume !== undefined)) {
        return `container ${container.name} cannot start on ${where}: the image of volume ${first.volume} has no such platform`;
      }
      return `container ${container.name} has no image for ${where}: no match for platform in manifest`;
    case 'failing':
      return verdict === 'does-not-run'
        ? `container ${container.name} fails on ${where}, for which its image has no platform`
        : `container ${container.name} fails, bound to ${where}, which does not run all of its images`;
    default:
      return container.trouble satisfies never;
  }
}
