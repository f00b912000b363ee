import { type DaemonSet, type RecordBasis, readRecord } from './daemonset.ts';
import { type Decision, isGuess, type Placement, standing } from './decide.ts';
import { answerLocally, onlySchedulable } from './images.ts';
import { usesTaints } from './placing.ts';
import type { Pod, PodTemplate } from './pod.ts';
import type { Settings } from './settings.ts';
import { asOurs } from './tolerations.ts';

/**
 * The architectures that archaware placed a pod on, by what it wrote to the pod in this process or an earlier one: the rule
 * "What was written is evidence". Undefined where it wrote nothing that holds under these settings, and where the pod still
 * waits behind the gate.
 */
export function standingArchitectures(
  { written, gated, tolerations }: Pick<Pod, 'written' | 'gated' | 'tolerations'>,
  settings: Pick<Settings, 'mode' | 'taints'>,
): readonly string[] | undefined {
  if (written === undefined || gated !== undefined) return undefined;
  if (!usesTaints(settings)) return written.architectures;
  if (!written.tolerations) return undefined;
  const found = (tolerations ?? []).flatMap((toleration) => asOurs(toleration, settings.taints)?.value ?? []);
  return found.length === 0 ? undefined : found;
}

/**
 * The same for a template: by its record, which names the images and the settings that it was decided on. A record without
 * them is of an earlier version, and counts as one for the present images.
 */
export function standingTemplate(
  { recorded, template }: Pick<DaemonSet, 'recorded' | 'template'>,
  settings: Settings,
  namesOf: (image: string) => readonly string[],
): readonly string[] | undefined {
  // What needs no registry is decided every time: it may follow the cluster's architectures.
  const isAsked = template.images.some((image) => answerLocally(image, namesOf(image.image), settings) === undefined);
  if (!isAsked || template.statement !== undefined) return undefined;
  const { tolerations, basis } = readRecord(recorded);
  const now = basisOf(template, settings);
  const isOther = basis !== undefined && JSON.stringify(basis) !== JSON.stringify(now);
  const written = tolerations.filter((one) => asOurs(one, settings.taints) !== undefined).map(({ value }) => value);
  return isOther || written.length === 0 ? undefined : written;
}

/** What a decision on a template's images is recorded with. */
export function basisOf({ images, os }: Pick<PodTemplate, 'images' | 'os'>, settings: Settings): RecordBasis {
  const { schedulable, compatible, overrides } = settings;
  // Nothing that a brace is in can be an image; the policies take braces for entries of the record.
  const names = images.map(({ image }) => image).filter((image) => !/[{}]/.test(image));
  return { images: [...new Set(names)].sort(), settings: fingerprint([schedulable, compatible, overrides, os]) };
}

/** The basis of a guess: it holds for no images, so that they are asked about again. */
export const GUESSED: RecordBasis = { images: [], settings: '' };

/**
 * The decision for a template that may carry tolerations of archaware already: a guess changes nothing there, and an
 * architecture that has no node at the moment is kept.
 */
export function overTemplate(
  decision: Placement,
  recorded: string | undefined,
  settings: Pick<Settings, 'taints' | 'schedulable'>,
): Placement {
  const present = readRecord(recorded).tolerations.flatMap((one) => asOurs(one, settings.taints)?.value ?? []);
  if (present.length === 0) return decision;
  if (isGuess(decision)) return standing(present, decision);
  if (!decision.followsCluster) return decision;
  const kept = onlySchedulable(present, settings);
  return { ...decision, architectures: [...new Set([...kept, ...decision.architectures])] };
}

/** The decision for a pod: a guess gives nothing to one that is bound, as it runs without it. */
export function overBound(decision: Decision, { nodeName }: Pick<Pod, 'nodeName'>): Decision {
  const isIdle = nodeName !== undefined && decision.kind === 'place' && isGuess(decision);
  return isIdle ? standing([], decision) : decision;
}

/** A short text that differs where the value does (FNV-1a, 32 bits). */
function fingerprint(value: unknown): string {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(JSON.stringify(value))) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash.toString(16).padStart(8, '0');
}
