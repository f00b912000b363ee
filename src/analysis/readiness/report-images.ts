import type { ImageBlocking, NotLookedUp, ReportedImage, ReportedWorkload } from './report.ts';
import { addTo, tallyOf } from './tally.ts';

/** What lookups said about an image. */
export type ImageFinding = Pick<ReportedImage, 'platforms'> & Pick<Partial<ReportedImage>, 'error'>;

/** Returns the images of workloads, those that block most first. `newerOf`: a newer tag that has a build for the target. */
export function reportImages(
  workloads: readonly ReportedWorkload[],
  targets: readonly string[],
  findings: ReadonlyMap<string, ImageFinding>,
  registryOf: (image: string) => string,
  newerOf: (image: string, target: string) => string | undefined,
): ReportedImage[] {
  const users = new Map<string, ReportedWorkload[]>();
  for (const workload of workloads) for (const image of workload.images) addTo(users, image, workload);
  const blocked = new Map(targets.map((target) => [target, blockedBy(workloads, target)]));
  const rows = [...users].map(([image, using]): ReportedImage => {
    const found = targets.flatMap((target): [string, ImageBlocking][] => {
      const held = blocked.get(target)?.get(image);
      if (held === undefined) return [];
      const newer = newerOf(image, target);
      const counts = { blocks: tallyOf(held.all), alone: tallyOf(held.alone) };
      return [[target, { ...counts, ...(newer === undefined ? {} : { newer }) }]];
    });
    const finding = findings.get(image) ?? { platforms: [] };
    const blocking = Object.fromEntries(found);
    return { image, registry: registryOf(image), ...finding, used: tallyOf(using), blocking };
  });
  return rows.sort(byWeight);
}

type Blocked = { readonly all: ReportedWorkload[]; readonly alone: ReportedWorkload[] };

function blockedBy(workloads: readonly ReportedWorkload[], target: string): Map<string, Blocked> {
  const found = new Map<string, Blocked>();
  for (const workload of workloads) {
    const reasons = workload.verdicts[target]?.reasons ?? [];
    const images = new Set(reasons.flatMap((reason) => (reason.kind === 'image' ? reason.image : [])));
    const isAlone = images.size === 1 && reasons.every(({ kind }) => kind === 'image');
    for (const image of images) {
      const blocked = found.get(image) ?? { all: [], alone: [] };
      found.set(image, blocked);
      blocked.all.push(workload);
      if (isAlone) blocked.alone.push(workload);
    }
  }
  return found;
}

function byWeight(one: ReportedImage, other: ReportedImage): number {
  const [a, b] = [weightOf(one), weightOf(other)];
  return b.cpu - a.cpu || b.workloads - a.workloads || (one.image < other.image ? -1 : 1);
}

/** The most that an image blocks for one of the targets. */
function weightOf({ blocking }: ReportedImage) {
  const all = Object.values(blocking).map(({ blocks }) => blocks);
  return all.reduce(
    (most, each) => (each.cpu > most.cpu || each.workloads > most.workloads ? each : most),
    tallyOf([]),
  );
}

/** Counts images whose lookups failed, by registry and code, the most first. An image counts once, also if it is named twice. */
export function countNotLookedUp(
  failed: readonly { readonly image: string; readonly registry: string; readonly code: string }[],
): Pick<NotLookedUp, 'images' | 'registries'> {
  const images = new Map(failed.map((each) => [each.image, each]));
  const counts = new Map<string, { registry: string; code: string; images: number }>();
  for (const { registry, code } of images.values()) {
    const key = JSON.stringify([registry, code]);
    const count = counts.get(key) ?? { registry, code, images: 0 };
    counts.set(key, { ...count, images: count.images + 1 });
  }
  const registries = [...counts.values()].sort(
    (one, other) => other.images - one.images || (one.registry < other.registry ? -1 : 1),
  );
  return { images: images.size, registries };
}

/** How many registries a line names. */
const FIRST = 3;

/** `180 images were not looked up (r.example rate-limited: 178, s.example timeout: 2)`. Undefined: all were. */
export function notLookedUpText(left: Pick<NotLookedUp, 'images' | 'registries'>): string | undefined {
  const { images, registries } = left;
  if (images === 0) return undefined;
  const named = registries
    .slice(0, FIRST)
    .map((each) => `${each.registry || 'no registry'} ${each.code}: ${each.images}`);
  const more = registries.length > FIRST ? [`${registries.length - FIRST} more`] : [];
  return `${images === 1 ? '1 image was' : `${images} images were`} not looked up (${[...named, ...more].join(', ')})`;
}
