import { fingerprintOf, isSameList } from '../kit/json.ts';
import { normaliseArchitecture } from '../kit/platform.ts';
import { type Decision, isGuess, type Placement, standing } from './decide.ts';
import { answerLocally, onlySchedulable, statementOf } from './images.ts';
import { type DaemonSet, type RecordBasis, readRecord } from './objects/daemonset.ts';
import type { Pod, PodTemplate } from './objects/pod.ts';
import { asOurs } from './patch/tolerations.ts';
import { onlyObserves, usesTaints } from './placing.ts';
import type { Settings } from './settings.ts';

/**
 * Returns the architectures that archaware gave to a pod earlier, in this process or another one, read from the pod itself. What
 * archaware wrote is evidence: a new leader asks no registry about it. Undefined if archaware wrote nothing that is still valid
 * under these settings, for a pod that still waits behind the gate, and in the mode `observe`, which reports what the images say.
 */
export function standingArchitectures(
  pod: Pick<Pod, 'written' | 'gated' | 'tolerations' | 'images' | 'statement'>,
  settings: Settings,
  namesOf: (image: string) => readonly string[],
): readonly string[] | undefined {
  const { written, gated, tolerations } = pod;
  if (onlyObserves(settings)) return undefined;
  if (written === undefined || gated !== undefined || !needsRegistry(pod, settings, namesOf)) return undefined;
  if (!usesTaints(settings)) return isMeant(written.architectures ?? []) ? written.architectures : undefined;
  if (!written.tolerations) return undefined;
  const found = (tolerations ?? []).flatMap((toleration) => asOurs(toleration, settings.taints)?.value ?? []);
  return isMeant(found) ? found : undefined;
}

/**
 * Returns the architectures that archaware gave to a template earlier. The template's record names the images, the settings and
 * the template of that decision. Once its author has changed the template in any way, the record no longer counts. A record
 * without them was written by an earlier version; it counts as valid for the present images. Undefined in the mode `observe`.
 */
export function standingTemplate(
  { recorded, template, authored }: Pick<DaemonSet, 'recorded' | 'template' | 'authored'>,
  settings: Settings,
  namesOf: (image: string) => readonly string[],
): readonly string[] | undefined {
  if (onlyObserves(settings) || !needsRegistry(template, settings, namesOf)) return undefined;
  const { basis } = readRecord(recorded);
  const isOther = basis !== undefined && !isSameBasis(basis, basisOf({ template, authored }, settings));
  const written = recordedArchitectures(recorded);
  return isOther || written.length === 0 ? undefined : written;
}

function isSameBasis(recorded: RecordBasis, now: RecordBasis): boolean {
  if (recorded.images.length === 0 || !isSameList(recorded.images, now.images)) return false;
  // An earlier version recorded no template, and its hash of the settings was of another kind.
  return recorded.template === '' || (recorded.template === now.template && recorded.settings === now.settings);
}

/** Whether a registry has to be asked. Other pods are decided every time, because they may follow the cluster's architectures. */
function needsRegistry(
  { images, statement }: Pick<PodTemplate, 'images' | 'statement'>,
  settings: Settings,
  namesOf: (image: string) => readonly string[],
): boolean {
  if (statementOf(statement) !== undefined) return false;
  return images.some((image) => answerLocally(image, namesOf(image.image), settings) === undefined);
}

/** Returns the architectures of a record, under any taint key: the key says nothing about images. */
function recordedArchitectures(recorded: string | undefined): readonly string[] {
  const found = [...new Set(readRecord(recorded).tolerations.map(({ value }) => value))];
  return isMeant(found) ? found : [];
}

/**
 * Earlier versions believed images that name an architecture that no node has (`x64`). A placement on such names alone does not
 * count.
 */
function isMeant(architectures: readonly string[]): boolean {
  return architectures.some((name) => normaliseArchitecture(name) !== undefined);
}

/** Returns the images, the settings and the template that a decision for a template is recorded with. */
export function basisOf(
  { template: { images, os }, authored }: Pick<DaemonSet, 'template' | 'authored'>,
  settings: Settings,
): RecordBasis {
  const { schedulable, compatible, overrides } = settings;
  // Image names have no spaces, so `volume model:1` cannot be the image of a container. Earlier versions did not record the
  // images of volumes; a template with one is decided again, once.
  const texts = images.map(({ image, volume }) => (volume === undefined ? image : `volume ${image}`));
  // Image names have no braces, and the admission policies of the manifests read braces as entries of the record.
  const names = texts.filter((text) => !/[{}]/.test(text));
  return {
    images: [...new Set(names)].sort(),
    settings: fingerprintOf([schedulable, compatible, overrides, os]),
    template: authored,
  };
}

/**
 * Adapts a decision to a template that may have tolerations of archaware already. A guess changes nothing there, and an
 * architecture that has no node at the moment is kept.
 */
export function overTemplate(
  decision: Placement,
  recorded: string | undefined,
  settings: Pick<Settings, 'schedulable'>,
): Placement {
  const present = recordedArchitectures(recorded);
  if (present.length === 0) return decision;
  // A guess may add architectures to an earlier guess, but never to a decision that knew the images.
  const wasGuess = readRecord(recorded).basis?.images.length === 0;
  if (isGuess(decision) && !(wasGuess && decision.followsCluster)) return standing(present, decision);
  if (!decision.followsCluster) return decision;
  const kept = onlySchedulable(present, settings);
  return { ...decision, architectures: [...new Set([...kept, ...decision.architectures])] };
}

/**
 * Adapts a decision to a pod that may be placed already, on the architectures `placed`. Unknown images change nothing there. A
 * bound pod gets nothing from a guess, because it runs without it.
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
