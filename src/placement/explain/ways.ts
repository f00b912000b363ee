import { few } from '../reasons.ts';
import type { ExplainInput, NarrowedImage } from './input.ts';

/** Ways to make images meet that are worth naming. */
const MOST_WAYS = 3;

/** `push a linux/arm64 build of x`, for those of the architectures that the fewest images lack. */
export function waysTo(
  architectures: readonly string[],
  { workload: { template } }: Pick<ExplainInput, 'workload'>,
  narrowed: readonly NarrowedImage[],
  schedulable: readonly string[],
): string[] {
  const sets = setsOf(narrowed);
  const usable = schedulable.length === 0 ? architectures : architectures.filter((name) => schedulable.includes(name));
  const ways = usable.map((architecture) => ({
    architecture,
    lacking: sets.filter((set) => !set.architectures.includes(architecture)),
  }));
  const fewest = Math.min(...ways.map(({ lacking }) => lacking.length));
  return ways
    .filter(({ lacking }) => lacking.length === fewest && fewest > 0)
    .slice(0, MOST_WAYS)
    .map(({ architecture, lacking }) => {
      const pushed = lacking.filter(({ by }) => by === 'registry').map(({ image }) => image);
      const stated = lacking.filter(({ by }) => by === 'override').map(({ image }) => image);
      return [
        ...(pushed.length > 0 ? [`push a ${template.os}/${architecture} build of ${few(pushed)}`] : []),
        ...(stated.length > 0 ? [`let images.overrides say ${architecture} of ${few(stated)}`] : []),
      ].join(' and ');
    });
}

/** The images that say something of the set, and what. */
export function setsOf(narrowed: readonly NarrowedImage[]) {
  return narrowed.flatMap(({ image, said }) =>
    said.kind === 'set' ? { image: image.image, by: said.by, architectures: said.architectures } : [],
  );
}

/** One of the lines is enough. */
export function alternatives(lines: readonly string[]): string[] {
  return [...new Set(lines)].map((line, index) => (index === 0 ? line : `or ${line}`));
}
