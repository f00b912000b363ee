import { ARCHITECTURE_EXPECTED, didYouMean, readArchitecture } from '../kit/platform.ts';
import { NOE_PREFERRED, PREFERRED } from '../names.ts';
import type { Namespace } from './objects/namespace.ts';
import type { PodTemplate } from './objects/pod.ts';
import type { Preference } from './patch/affinity.ts';
import type { SubjectSettings } from './settings.ts';
import type { Subject } from './subject.ts';

/** The weight of an architecture that a pod's own label names. */
const LABEL_WEIGHT = 100;
const FORM = /^\s*([A-Za-z0-9_-]+)\s*=\s*([0-9]{1,3})\s*$/;

/**
 * Returns the preferences of a pod among its architectures (undefined: any), highest weight first. The first source that names
 * one of these architectures wins: the pod's label, the namespace's annotation, the policy or the configuration.
 */
export function preferencesFor(
  {
    labels,
    preferred,
    settings,
  }: Pick<Subject, 'labels' | 'preferred'> & { readonly settings: Pick<SubjectSettings, 'preferred'> },
  architectures: readonly string[] | undefined,
): Preference[] {
  const ofLabel = (name: string) => {
    const architecture = readArchitecture(labels[name] ?? '');
    return architecture === undefined ? [] : [{ architecture, weight: LABEL_WEIGHT }];
  };
  const ofSettings = Object.entries(settings.preferred).map(([architecture, weight]) => ({ architecture, weight }));
  const sources = [ofLabel(PREFERRED), ofLabel(NOE_PREFERRED), preferredOf(preferred) ?? [], ofSettings];
  for (const source of sources) {
    const usable = source.filter(({ architecture }) => architectures?.includes(architecture) ?? true);
    if (usable.length > 0) return usable.sort((one, other) => other.weight - one.weight);
  }
  return [];
}

/** Reads a namespace's annotation; an invalid one counts as absent (an Event reports it elsewhere). */
function preferredOf(annotation: Namespace['preferred']): Preference[] | undefined {
  try {
    return annotation === undefined ? undefined : readPreferred(annotation);
  } catch {
    return undefined;
  }
}

/** Reads `arm64=75,amd64=25`. Throws an Error that names the value and what is allowed; the caller puts its text into an Event. */
export function readPreferred(annotation: string): Preference[] {
  const read = new Set<string>();
  return annotation.split(',').map((part) => {
    const [, name = '', digits = ''] = FORM.exec(part) ?? [];
    const [architecture, weight] = [readArchitecture(name), Number(digits)];
    if (architecture === undefined || weight < 1 || weight > 100 || read.has(architecture)) {
      const meant = architecture === undefined ? didYouMean(name) : '';
      throw new Error(
        `got ${JSON.stringify(annotation.slice(0, 80))}, expected architectures, each once, with weights from 1 to 100 (arm64=75,amd64=25)${meant}`,
      );
    }
    read.add(architecture);
    return { architecture, weight };
  });
}

/** Returns what is wrong with those labels of a pod that should name its preferred architecture. */
export function preferredProblems({ labels }: Pick<PodTemplate, 'labels'>): string[] {
  return [PREFERRED, NOE_PREFERRED].flatMap((label) => {
    const value = Object.hasOwn(labels, label) ? labels[label] : undefined;
    if (value === undefined || readArchitecture(value) !== undefined) return [];
    return `label ${label}: got ${JSON.stringify(value)}, expected ${ARCHITECTURE_EXPECTED}${didYouMean(value)}`;
  });
}
