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
