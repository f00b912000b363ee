import { isArchitecture } from '../kit/platform.ts';
import { ARCHITECTURE_LABEL, OS_LABEL } from '../names.ts';
import { type Decision, isGuess, type Knowledge, type Placement, standing } from './decide.ts';
import { answerLocally, onlySchedulable, statementOf } from './images.ts';
import type { Pod, PodTemplate } from './objects/pod.ts';
import { type RecordBasis, readRecord } from './objects/template-record.ts';
import { type AffinityIntent, isIn } from './patch/affinity.ts';
import { type Toleration, tolerationsFor } from './patch/tolerations.ts';
import { preferencesFor } from './preference.ts';
import type { Settings, SubjectSettings } from './settings.ts';
import { evidenceKey, type Subject } from './subject.ts';

/** The tolerations and the node affinity that a decision calls for. The patch adds only what the pod lacks of them. */
export type PlacementIntent = {
  readonly tolerations: readonly Toleration[];
  readonly affinity: AffinityIntent | undefined;
};

/** Returns what a placement writes, in a few words for the log: `tolerates amd64, arm64; requires kubernetes.io/arch in (amd64)`. */
export function placingText({ tolerations, affinity }: PlacementIntent): string {
  const required = (affinity?.required ?? []).map(({ key, values = [] }) => `${key} in (${values.join(', ')})`);
  const parts = [
    ...(tolerations.length > 0 ? [`tolerates ${tolerations.map(({ value }) => value).join(', ')}`] : []),
    ...(required.length > 0 ? [`requires ${required.join(', ')}`] : []),
  ];
  return parts.join('; ') || 'runs anywhere';
}

/** Whether the mode places pods by tolerations. */
export function usesTaints({ mode }: Pick<Settings, 'mode'>): boolean {
  return mode === 'taints' || mode === 'both';
}

/** Whether the mode places pods by node affinity, which can be written only at admission. `mode`: valid or not. */
export function usesAffinity({ mode }: { readonly mode: unknown }): boolean {
  return mode === 'affinity' || mode === 'both';
}

/** Whether the mode only reports what it decides. Then nothing is written but Events, the Lease and the status. */
export function onlyObserves({ mode }: Pick<Settings, 'mode'>): boolean {
  return mode === 'observe';
}

/**
 * Returns the tolerations for these architectures; empty in a mode without taints. Other names than those of Go are left out: no
 * node has those that Go reserves, and what a kubelet invents is nobody else's business.
 */
export function wantedTolerations(
  settings: Pick<SubjectSettings, 'mode' | 'taints'>,
  architectures: readonly string[],
): Toleration[] {
  const possible = architectures.filter(isArchitecture);
  return usesTaints(settings) ? tolerationsFor(settings.taints, possible) : [];
}

/**
 * Returns the architectures for the node affinity of a DaemonSet's template; empty: none. In other modes than `affinity`, taints keep
 * its pods away.
 */
export function templateRequires(
  settings: Pick<SubjectSettings, 'mode' | 'schedulable'>,
  decision: Pick<Placement, 'architectures' | 'followsCluster'>,
): readonly string[] {
  return settings.mode === 'affinity' ? requiredAmong(decision, settings) : [];
}

/** Affinity cannot be widened later. So a decision that follows the cluster requires only what `architectures.schedulable` says. */
function requiredAmong(
  { architectures, followsCluster }: Pick<Placement, 'architectures' | 'followsCluster'>,
  { schedulable }: Pick<SubjectSettings, 'schedulable'>,
): readonly string[] {
  return [...(followsCluster ? schedulable : architectures)].sort();
}

/** What decides how a placement is written. */
type PlacedParts = Pick<Subject, 'labels' | 'preferred' | 'settings'>;

/** Returns the tolerations and the affinity for a decision. */
export function placingFor(decision: Placement, subject: PlacedParts): PlacementIntent {
  return {
    tolerations: wantedTolerations(subject.settings, decision.architectures),
    affinity: usesAffinity(subject.settings) ? affinityFor(decision, subject) : undefined,
  };
}

function affinityFor(decision: Placement, subject: PlacedParts): AffinityIntent {
  const { labels, settings } = subject;
  const { followsCluster, os } = decision;
  const set = requiredAmong(decision, settings);
  const among = followsCluster && set.length === 0 ? undefined : set;
  return {
    required: [
      ...(set.length > 0 ? [isIn(ARCHITECTURE_LABEL, set)] : []),
      ...(os === undefined ? [] : [isIn(OS_LABEL, [os])]),
      ...settings.matchNodeLabels.flatMap((key) => {
        const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
        return value === undefined ? [] : isIn(key, [value]);
      }),
    ],
    preferred: preferencesFor(subject, among),
  };
}

/**
 * Returns the architectures that archaware gave to a pod earlier, in this process or another one, read from the pod itself. What
 * archaware wrote is evidence: a new leader asks no registry about it. Undefined if archaware wrote nothing that is still valid
 * under these settings, for a pod that still waits behind the gate, and in the mode `observe`, which reports what the images say.
 */
export function standingArchitectures(
  subject: Subject,
  written: Pod['written'],
  namesOf: Knowledge['namesOf'],
): readonly string[] | undefined {
  const { isGated, tolerated, settings } = subject;
  if (written === undefined || onlyObserves(settings) || isGated || !needsRegistry(subject, namesOf)) return undefined;
  if (!usesTaints(settings)) return written.architectures?.length === 0 ? undefined : written.architectures;
  return written.tolerations && tolerated.length > 0 ? tolerated : undefined;
}

/**
 * Returns the architectures that archaware gave to a template earlier, if its record was written for this subject: once its author
 * has changed the template in any way, the record no longer counts. A record without images counts as one for the present ones.
 * Undefined in the mode `observe`.
 */
export function standingTemplate(
  subject: Subject,
  recorded: string | undefined,
  namesOf: Knowledge['namesOf'],
): readonly string[] | undefined {
  if (onlyObserves(subject.settings) || !needsRegistry(subject, namesOf)) return undefined;
  const { basis } = readRecord(recorded);
  const written = recordedArchitectures(recorded);
  return written.length === 0 || (basis !== undefined && basis.subject !== evidenceKey(subject)) ? undefined : written;
}

/** Whether a registry has to be asked. Other pods are decided every time, because they may follow the cluster's architectures. */
function needsRegistry({ images, statement, settings }: Subject, namesOf: Knowledge['namesOf']): boolean {
  if (statementOf(statement) !== undefined) return false;
  return images.some((image) => answerLocally(image, namesOf(image.image), settings) === undefined);
}

/** Returns the architectures of a record, under any taint key: the key says nothing about images. */
function recordedArchitectures(recorded: string | undefined): readonly string[] {
  const { tolerations, requires } = readRecord(recorded);
  return [...new Set([...requires, ...tolerations.map(({ value }) => value)])];
}

/** Returns what a decision for a template is recorded with. */
export function recordBasis(subject: Subject): RecordBasis {
  return { images: recordedNames(subject), subject: evidenceKey(subject) };
}

/** Returns the names of images as a record lists them. */
function recordedNames({ images }: Pick<PodTemplate, 'images'>): string[] {
  // Image names have no spaces, so `volume model:1` cannot be the image of a container.
  const texts = images.map(({ image, volume }) => (volume === undefined ? image : `volume ${image}`));
  // Image names have no braces, and the admission policies of the manifests read braces as entries of the record.
  const names = texts.filter((text) => !/[{}]/.test(text));
  return [...new Set(names)].sort();
}

/**
 * Adapts a decision to a template that may have tolerations of archaware already. A guess changes nothing there, and an
 * architecture that has no node at the moment is kept.
 */
export function overTemplate(
  decision: Placement,
  recorded: string | undefined,
  settings: Pick<SubjectSettings, 'schedulable'>,
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
