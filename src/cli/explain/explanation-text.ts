import type { ExplainedImage, ExplainedNodes, Explanation } from '../../analysis/explain/explanation.ts';
import type { ExplainedDecision } from '../../analysis/explain/input.ts';
import { platformNotes, runtimeNotes } from '../../analysis/explain/platform-notes.ts';
import { printable } from '../../kit/printable.ts';
import { few, imageText } from '../../placement/reasons.ts';
import { platformText, table, wrapped } from '../output.ts';
import type { Paint, Tone } from '../paint.ts';

/** How many node names a line shows before it says "and 3 more". */
const MOST_NAMES = 5;

/** How an explanation is printed. */
export type ExplanationForm = {
  /** The width of the terminal; undefined if there is none. */
  readonly columns: number | undefined;
  /** Whether everything is printed, also what few readers need: digests, settings, how the images narrow the set. */
  readonly isVerbose: boolean;
  readonly paint: Paint;
};

/** What only `--verbose` shows. */
const DETAILS: ReadonlySet<string> = new Set([
  ...[
    'pod',
    'left out',
    'at creation',
    'pull secrets',
    'set',
    'policy',
    'settings',
    'decision',
    'tolerations',
    'affinity',
  ],
]);

const TONES: Readonly<Record<Explanation['verdict']['state'], Tone>> = {
  runs: 'good',
  'can-run': 'good',
  ended: 'good',
  waits: 'warning',
  held: 'warning',
  'left-alone': 'warning',
  'wrong-node': 'bad',
  'fits-nowhere': 'bad',
};

/**
 * Returns an explanation as text: one line per item, with the kind of item in front of the first one. At a terminal the verdict
 * stands above them, with its mark.
 */
export function describeExplanation(explanation: Explanation, { columns, isVerbose, paint }: ExplanationForm): string {
  const { verdict, images, intersection, pullSecrets, settings, policy, tolerations, nodes, advice, pod } = explanation;
  const isNew = ['not-applied', 'template', 'gated'].includes(pod.state);
  const isAway = explanation.controller === 'no-leader' || explanation.controller === 'not-installed';
  const sections: readonly (readonly [label: string, lines: readonly string[]])[] = [
    ['verdict', [verdict.text]],
    ['next', advice],
    ['pod', [describePod(pod)]],
    ['archaware', describeController(explanation)],
    ['scheduler', pod.scheduler === undefined ? [] : [pod.scheduler]],
    ['images', images.map((image) => describeImage(image, isVerbose))],
    [
      'left out',
      images.flatMap((image) =>
        image.skipped.map(
          (entry) => `${imageText(image)}: ${entry.reason}${entry.digest === undefined ? '' : ` (${entry.digest})`}`,
        ),
      ),
    ],
    ['at creation', describePublication(explanation.publication)],
    ['pull secrets', pullSecrets.map(({ name, problem }) => (problem === undefined ? name : `${name}: ${problem}`))],
    ['set', intersection.map(({ by, architectures, common }, index) => describeStep(by, architectures, common, index))],
    ['policy', policy === undefined ? [] : [policy]],
    ['settings', settings.map(({ key, value, source }) => `${key}: ${valueText(value)} (${source})`)],
    ['decision', describeDecision(explanation.decision, settings)],
    ['tolerations', tolerations.map((toleration) => describeToleration(toleration, whoGets(explanation)))],
    ['affinity', describeAffinity(explanation.affinity)],
    ['nodes', nodes.map((group) => describeNodes(group, isNew, isAway))],
  ];
  const shown = sections.filter(([label]) => isVerbose || !DETAILS.has(label));
  const headline = paint.marks ? headlineOf(explanation, { columns, paint }) : '';
  const rows = shown
    .filter(([label]) => headline === '' || label !== 'verdict')
    .flatMap(([label, lines]) => lines.map((line, index) => [index === 0 ? label : '', line]));
  const [first = [], ...others] = rows;
  return headline + (rows.length === 0 ? '' : table(first, others, columns).replace(/^next /m, paint.bold('next ')));
}

/** Returns the verdict with its mark, for a terminal. A good one with something to do is a warning. */
function headlineOf(
  { verdict: { state, text }, advice }: Explanation,
  { columns, paint }: Pick<ExplanationForm, 'columns' | 'paint'>,
): string {
  const tone = TONES[state] === 'good' && advice.length > 0 ? 'warning' : TONES[state];
  const lines = wrapped(printable(text, 4_000), (columns ?? Number.POSITIVE_INFINITY) - 2);
  return lines
    .map((line, index) => `${index === 0 ? paint.mark(tone) : ' '} ${paint.bold(paint.tone(tone, line))}\n`)
    .join('');
}

function describePod({ kind, namespace, name, state, node, gates = [] }: Explanation['pod']): string {
  const states: Readonly<Record<typeof state, string>> = {
    'not-applied': 'not applied yet',
    template: 'its template, for the pods that it will create',
    gated: `held by the scheduling gate ${gates.join(', ')}`,
    pending: 'waits to be scheduled',
    bound: `bound to ${node}`,
    finished: 'has finished',
    deleting: 'is being deleted',
  };
  return `${kind} ${namespace}/${name}: ${states[state]}`;
}

function describeController({ controller, said }: Explanation): string[] {
  const event = said === undefined ? [] : [`said at ${said.at}: ${said.note}`];
  switch (controller) {
    case undefined:
    case 'leads':
      return event;
    case 'no-leader':
      return ['no replica leads, so nothing is written', ...event];
    case 'not-installed':
      return ['is not installed', ...event];
    case 'unknown':
      return ['is perhaps not installed: you may not look for it', ...event];
    default:
      return controller satisfies never;
  }
}

function describeImage(explained: ExplainedImage, isVerbose: boolean): string {
  const { notAsked, digest, source, platforms, only, error, anywhere } = explained;
  const image = imageText(explained);
  if (error !== undefined) return `${image}: ${error.code} at ${error.registry || 'no registry'}: ${error.message}`;
  const found = platforms.map(platformText).join(' ') || 'no platform';
  switch (notAsked) {
    case 'never-pulled':
      return `${image}: not looked up, because its pull policy is Never; it sets no limit`;
    case 'override':
      return `${image}: not looked up, because images.overrides says ${found}`;
    case 'statement':
      return `${image}: not looked up, because the pod states its architectures`;
    case 'left-alone':
      return `${image}: not looked up`;
    case undefined: {
      const by = isVerbose
        ? `${digest === undefined ? '' : `, ${digest}`}${source === undefined ? '' : `, by ${source}`}`
        : '';
      const levels = explained.volume === undefined ? platformNotes(platforms) : [];
      const notes = [...runtimeNotes(only), ...levels];
      const remarks = anywhere === undefined ? notes : [ANYWHERE[anywhere]];
      return [`${image}: ${found}${by}`, ...remarks].join('; ');
    }
    default:
      return notAsked satisfies never;
  }
}

function describePublication(publication: Explanation['publication']): string[] {
  if (publication === undefined) return [];
  const { placedAtCreation, missing } = publication;
  if (placedAtCreation) return ['placed as it was created, by the policy archaware-place'];
  const lines = missing.map(({ image, why }) => `not published: ${image}, because ${why}`);
  return lines.length > 0 ? lines : ['all of its images are published for the policy archaware-place'];
}

const ANYWHERE: Readonly<Record<NonNullable<ExplainedImage['anywhere']>, string>> = {
  webassembly: 'WebAssembly, which runs where the RuntimeClass of its pod does: it sets no limit',
  volume: 'a single manifest, which every node mounts as a volume: it sets no limit',
  bundle: 'a bundle of the Operator Lifecycle Manager by its labels, which has only files: it sets no limit',
};

function describeStep(by: string, architectures: readonly string[], common: readonly string[], index: number): string {
  const said = `${by}: ${architectures.join(', ') || 'none'}`;
  return index === 0 ? said : `${said}; in common: ${common.join(', ') || 'none'}`;
}

function describeDecision(decision: ExplainedDecision, settings: Explanation['settings']): string[] {
  const patience = settings.find(({ key }) => key === 'images.fallbackAfter')?.value;
  const { afterwards, blocked } = decision;
  return [
    `${decision.kind}: ${decision.reason}${blocked === undefined ? '' : `, but ${blocked}`}`,
    ...(afterwards === undefined ? [] : [`after ${valueText(patience)}: ${afterwards.kind}: ${afterwards.reason}`]),
  ];
}

/** Returns who gets a missing toleration: a pod or the template of a DaemonSet itself, and for other workloads their pods. */
function whoGets({ pod, controller }: Explanation): string {
  if (controller === 'not-installed') return 'nobody adds it';
  if (pod.kind !== 'Pod' && pod.kind !== 'DaemonSet') {
    return controller === 'no-leader' ? 'its pods get it once a replica leads' : 'its pods get it';
  }
  return pod.state === 'not-applied' ? 'archaware adds it' : 'lacks it';
}

function describeToleration(
  { key, value, effect, present, stale }: Explanation['tolerations'][number],
  missing: string,
): string {
  const state = stale ? 'has it, but should not' : present ? 'has it' : missing;
  return `${key}=${value}:${effect} (${state})`;
}

function describeAffinity(affinity: Explanation['affinity']): string[] {
  const own = (present: boolean) => (present ? ' (set by the pod itself)' : '');
  return [
    ...(affinity?.required ?? []).map(
      ({ key, values, present }) => `requires ${key} in (${values.join(', ')})${own(present)}`,
    ),
    ...(affinity?.preferred ?? []).map(
      ({ architecture, weight, present }) => `prefers ${architecture}, weight ${weight}${own(present)}`,
    ),
  ];
}

function describeNodes(group: ExplainedNodes, isNew: boolean, isAway: boolean): string {
  const { architecture = 'unknown architecture', names } = group;
  return `${architecture} (${few(names, ', ', MOST_NAMES)}): ${verdict(group, isNew, isAway)}`;
}

function verdict({ fits, reasons, placed, runs }: ExplainedNodes, isNew: boolean, isAway: boolean): string {
  const cannot = runs === false ? 'not all of its images run there' : '';
  if (isNew ? placed.fits : fits) return cannot === '' ? 'fits' : `fits, though ${cannot}`;
  if (placed.fits) return `fits with the missing tolerations; now: ${reasons.join('; ')}`;
  if (isNew && fits && isAway) return `fits while archaware is away: ${cannot || placed.reasons.join('; ')}`;
  const why = (isNew ? placed.reasons : reasons).join('; ');
  return `does not fit: ${why}${cannot === '' ? '' : ` (${cannot})`}`;
}

function valueText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
