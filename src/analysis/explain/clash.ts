import { ARCHITECTURES_ANNOTATION } from '../../names.ts';
import type { Decision } from '../../placement/decide.ts';
import { intersect, type NarrowedImage } from '../../placement/images.ts';
import { architectureAsked } from '../../placement/objects/asked-platform.ts';
import { contradictionOf, few } from '../../placement/reasons.ts';
import type { Settings } from '../../placement/settings.ts';
import type { ExplainInput } from './input.ts';

/** A contradiction: the pod asks for other architectures than its images run on, so that no node can ever fit. */
export type Clash = {
  /** `the pod asks for arm64`. */
  readonly wish: string;
  /** `the pod asks for arm64, its image is amd64 only`. */
  readonly what: string;
  readonly steps: readonly string[];
};

/** Compares the architectures that a pod asks for with those of its decision; undefined if they have one in common. */
export function clashOf(
  input: ExplainInput,
  decision: Decision | undefined,
  narrowed: readonly NarrowedImage[],
  clusterArchitectures: readonly string[],
  { schedulable }: Pick<Settings, 'schedulable'>,
): Clash | undefined {
  const asked = architectureAsked(input.workload.demands);
  if (asked === undefined || decision?.kind !== 'place') return undefined;
  const { basis, architectures } = decision;
  const demand = { text: asked.text, architectures: architectures.filter(asked.allows) };
  if (contradictionOf(decision, demand, { schedulable }) === undefined) return undefined;
  const wish = `the pod asks for ${asked.named.join(' or ') || 'another architecture'}`;
  const remove = `remove the architecture from its ${asked.where}`;
  if (basis === 'statement') {
    const what = `${wish}, its annotation ${ARCHITECTURES_ANNOTATION} says ${architectures.join(', ')}`;
    return { wish, what, steps: alternatives([`change the annotation, if its images run there`, remove]) };
  }
  const sets = setsOf(narrowed);
  const common = intersect(sets.map((set) => set.architectures)) ?? [];
  const isExcluded = common.some(asked.allows);
  const only = `${architectures.join(', ')} only`;
  const images =
    sets.length === 0
      ? `by what archaware wrote to it before, its images run on ${only}`
      : sets.length === 1
        ? `its image is ${only}`
        : `its images run on ${only}`;
  const wished = [...new Set([...asked.named, ...clusterArchitectures])].filter(asked.allows);
  return isExcluded
    ? {
        wish,
        what: `${wish}, architectures.schedulable leaves ${only}`,
        steps: alternatives([`add ${common.filter(asked.allows).join(' or ')} to architectures.schedulable`, remove]),
      }
    : {
        wish,
        what: `${wish}, ${images}`,
        steps: alternatives([...waysTo(wished, input, narrowed, schedulable), remove]),
      };
}

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
        ...(pushed.length > 0 ? [`push a ${template.runtime.os}/${architecture} build of ${few(pushed)}`] : []),
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
