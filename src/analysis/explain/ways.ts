import type { NarrowedImage } from '../../placement/images.ts';
import { few } from '../../placement/reasons.ts';
import type { ExplainInput } from './input.ts';

const MOST_WAYS = 3;

/**
 * Returns ways to give the images an architecture in common (`push a linux/arm64 build of x`), for the architectures that the
 * fewest images lack.
 */
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
        ...(stated.length > 0 ? [`add ${architecture} for ${few(stated)} to images.overrides`] : []),
      ].join(' and ');
    });
}

/** Returns the images that narrow the architectures, and to which. */
export function setsOf(narrowed: readonly NarrowedImage[]) {
  return narrowed.flatMap(({ image, said }) =>
    said.kind === 'set' ? { image: image.image, by: said.by, architectures: said.architectures } : [],
  );
}

/** Joins steps of which one is enough: every line but the first begins with "or". */
export function alternatives(lines: readonly string[]): string[] {
  return [...new Set(lines)].map((line, index) => (index === 0 ? line : `or ${line}`));
}
