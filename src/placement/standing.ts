import { type DaemonSet, type RecordBasis, readRecord } from './daemonset.ts';
import { type Decision, isGuess, type Placement, standing } from './decide.ts';
import { answerLocally, onlySchedulable, statementOf } from './images.ts';
import { usesTaints } from './placing.ts';
import { normaliseArchitecture } from './platform.ts';
import type { Pod, PodTemplate } from './pod.ts';
import type { Settings } from './settings.ts';
import { asOurs } from './tolerations.ts';

/**
 * The architectures that archaware placed a pod on, by what it wrote to the pod in this process or an earlier one: the rule
 * "What was written is evidence". Undefined where it wrote nothing that holds under these settings, and where the pod still
 * waits behind the gate.
 */
export function standingArchitectures(
  pod: Pick<Pod, 'written' | 'gated' | 'tolerations' | 'images' | 'statement'>,
  settings: Settings,
  namesOf: (image: string) => readonly string[],
): readonly string[] | undefined {
  const { written, gated, tolerations } = pod;
  if (written === undefined || gated !== undefined || !needsRegistry(pod, settings, namesOf)) return undefined;
  if (!usesTaints(settings)) return isMeant(written.architectures ?? []) ? written.architectures : undefined;
  if (!written.tolerations) return undefined;
  const found = (tolerations ?? []).flatMap((toleration) => asOurs(toleration, settings.taints)?.value ?? []);
  return isMeant(found) ? found : undefined;
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
  if (!needsRegistry(template, settings, namesOf)) return undefined;
  const { basis } = readRecord(recorded);
  const now = basisOf(template, settings);
  const isOther = basis !== undefined && JSON.stringify(basis) !== JSON.stringify(now);
  const written = recordedArchitectures(recorded);
  return isOther || written.length === 0 ? undefined : written;
}

/** Whether a registry has to be asked. What needs none is decided every time: it may follow the cluster's architectures. */
function needsRegistry(
  { images, statement }: Pick<PodTemplate, 'images' | 'statement'>,
  settings: Settings,
  namesOf: (image: string) => readonly string[],
): boolean {
  if (statementOf(statement) !== undefined) return false;
  return images.some((image) => answerLocally(image, namesOf(image.image), settings) === undefined);
}

/** The architectures of a record, under whatever key: another key says nothing about images. */
function recordedArchitectures(recorded: string | undefined): readonly string[] {
  const found = [...new Set(readRecord(recorded).tolerations.map(({ value }) => value))];
  return isMeant(found) ? found : [];
}

/** An earlier version believed images that state what no node can have (`x64`): what was placed there alone stands nowhere. */
function isMeant(architectures: readonly string[]): boolean {
  return architectures.some((name) => normaliseArchitecture(name) !== undefined);
}

/** What a decision on a template's images is recorded with. */
export function basisOf({ images, os }: Pick<PodTemplate, 'images' | 'os'>, settings: Settings): RecordBasis {
  const { schedulable, compatible, overrides } = settings;
  // No image's name has a space: `volume model:1` is not a container's. An earlier version recorded none of a volume, so
  // that a template with one is decided again, once.
  const texts = images.map(({ image, volume }) => (volume === undefined ? image : `volume ${image}`));
  // Nothing that a brace is in can be an image; the policies take braces for entries of the record.
  const names = texts.filter((text) => !/[{}]/.test(text));
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
  settings: Pick<Settings, 'schedulable'>,
): Placement {
  const present = recordedArchitectures(recorded);
  if (present.length === 0) return decision;
  // A guess may follow an earlier guess to architectures that joined since, but nothing that was known.
  const wasGuess = readRecord(recorded).basis?.images.length === 0;
  if (isGuess(decision) && !(wasGuess && decision.followsCluster)) return standing(present, decision);
  if (!decision.followsCluster) return decision;
  const kept = onlySchedulable(present, settings);
  return { ...decision, architectures: [...new Set([...kept, ...decision.architectures])] };
}

/**
 * The decision for a pod that may be placed already, on `placed`: what is not known changes nothing there. To a bound pod a
 * guess gives nothing, as it runs without it.
 */
export function overPlaced(
  decision: Decision,
  { nodeName }: Pick<Pod, 'nodeName'>,
  placed: readonly string[] | undefined,
): Decision {
  if (decision.kind === 'wait' && placed !== undefined) {
    return standing(placed, { failed: decision.failed, unknown: decision.images });
  }
  const isOver = placed !== undefined || nodeName !== undefined;
  return isOver && decision.kind === 'place' && isGuess(decision) ? standing(placed ?? [], decision) : decision;
}

/** A short text that differs where the value does (FNV-1a, 32 bits). */
function fingerprint(value: unknown): string {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(JSON.stringify(value))) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash.toString(16).padStart(8, '0');
}
