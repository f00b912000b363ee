import type { NodeCount } from '../../analysis/nodes/counts.ts';
import type { StatusProblem } from '../../app/leader-status.ts';
import { ageText, table } from '../output.ts';
import { MARKS, type Paint, type Tone } from '../paint.ts';
import { guardText } from './daemonset-guard.ts';
import { type Facts, hasLeader, isGuess, isOfThePast, presentWord, type Read, readValue } from './facts.ts';
import { isMissing } from './problems.ts';
import { publicationTexts } from './publication.ts';

/** The order in which outcomes of pods are shown. */
const OUTCOMES = ['placed', 'waiting', 'held', 'open', 'ignored'];
/** A pod that waits for a lookup may run meanwhile, so it is not one of the pods of the line `pending`. */
const OUTCOME_TEXTS: Readonly<Record<string, string>> = { waiting: 'waiting for a lookup' };

/** Where the configuration comes from, as the line `mode` says it. */
const ORIGINS: Readonly<Record<Facts['origin'], string>> = {
  cluster: 'as the controller is configured',
  file: 'by the file of --config',
  defaults: 'by the defaults',
  unreadable: "by the defaults, because the controller's configuration could not be read",
};

/**
 * Returns the status as eleven lines, the verdict first; more if pods are pending or something is wrong. `columns`: the width of the
 * terminal.
 */
export function statusText(facts: Facts, problems: readonly StatusProblem[], paint: Paint, columns?: number): string {
  const lines: readonly (readonly [label: string, texts: readonly string[]])[] = [
    ['version', [versionText(facts)]],
    ['mode', [modeText(facts)]],
    ['leader', [leaderText(facts)]],
    ['nodes', [shown(facts.nodes, ({ counts }) => counts.map(countText).join('; ') || 'none')]],
    ['written', [writtenText(facts)]],
    ['pods', [podsText(facts)]],
    ['pending', pendingTexts(facts)],
    ['webhook', [webhookText(facts)]],
    ['guard', [guardText(facts)]],
    ['published', publicationTexts(facts)],
    ['pools', poolTexts(facts)],
  ];
  const verdict = verdictOn(problems, countUnread(facts, lines));
  const shownLines = [['problems', verdict.texts] as const, ...lines];
  const rows = shownLines.flatMap(([label, texts]) => texts.map((text, index) => [index === 0 ? label : '', text]));
  const marked = rows.map(([label = '', text = '']) => [
    label,
    ...(paint.marks ? [label === 'problems' ? MARKS[verdict.tone] : ''] : []),
    text,
  ]);
  const [first = [], ...others] = marked;
  return table(first, others, columns).replace(/^problems( +\S)?/, (begin) => paint.tone(verdict.tone, begin));
}

/** Says where the configuration comes from, and what to do if it is not the controller's. */
function modeText(facts: Facts): string {
  const known = `${facts.mode}, ${ORIGINS[facts.origin]}`;
  if (!isGuess(facts)) return known;
  const outside = facts.origin === 'defaults' ? ', because the controller runs outside of the cluster' : '';
  return `unknown: ${known}${outside}; give its configuration with --config`;
}

/** Returns the verdict. Where there are no problems it counts what could not be read, because there may be problems in it. */
function verdictOn(
  problems: readonly StatusProblem[],
  unread: number,
): { readonly tone: Tone; readonly texts: readonly string[] } {
  if (problems.length > 0) {
    return { tone: 'bad', texts: problems.map(({ problem, do: advice }) => `${problem}. Do: ${advice}`) };
  }
  if (unread === 0) return { tone: 'good', texts: ['none'] };
  return { tone: 'warning', texts: [`none found; ${unread} ${unread === 1 ? 'line' : 'lines'} could not be read`] };
}

function countUnread(facts: Facts, lines: readonly (readonly [label: string, texts: readonly string[]])[]): number {
  const isUnread = ([label, [text = '']]: (typeof lines)[number]) =>
    // A webhook that was not tested could be read.
    text.startsWith('unknown') &&
    (label !== 'webhook' || facts.webhook.state === 'off' || facts.webhookConfiguration.kind === 'unread');
  return lines.filter(isUnread).length;
}

function shown<T>(read: Read<T>, text: (value: T) => string): string {
  return read.kind === 'read' ? text(read.value) : `unknown: ${read.why}`;
}

function versionText(facts: Facts): string {
  const { deployment, commandVersion } = facts;
  const command = `this command is ${commandVersion}`;
  if (isMissing(facts)) return `not installed; ${command}`;
  const version = presentWord(facts)?.version;
  const where = shown(deployment, (found) =>
    found === undefined
      ? 'no Deployment, so it runs outside of the cluster'
      : `${found.ready} of ${found.wanted} replicas ready (Deployment ${found.namespace}/${found.name})`,
  );
  const known = version ?? (deployment.kind === 'unread' ? [] : 'unknown');
  return [known, where, version === commandVersion ? [] : command].flat().join('; ');
}

/** Says who wrote what follows, and when. It does not say that anybody leads: only the Lease does. */
function writtenText(facts: Facts): string {
  return shown(facts.word, (word) => {
    if (word === undefined) return `unknown: no leader has written anything yet (ConfigMap ${facts.wordName})`;
    const by = `${ageText(word.ageMs)} ago by ${holderText(word.writer)} (ConfigMap ${facts.wordName})`;
    return isOfThePast(facts, word) ? `${by}, which does not lead now: pods and pending may be out of date` : by;
  });
}

function leaderText(facts: Facts): string {
  const { elects, lease, leaseName } = facts;
  if (!elects) return 'leader election is off';
  return shown(lease, (found) => {
    if (found === undefined) return `none: there is no Lease ${leaseName}`;
    if (found.holder === '') return `none: nobody holds the Lease ${leaseName}`;
    const renewed = `renewed ${ageText(found.ageMs)} ago`;
    const state = hasLeader(facts) === true ? '' : 'none; the last one was ';
    return `${state}${holderText(found.holder)}, ${renewed} (Lease ${leaseName})`;
  });
}

/** A replica's identity is its host name and a random id. */
function holderText(holder: string): string {
  return holder.replace(/-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/, '');
}

function countText({ architecture, total, tainted, untainted, foreign }: NodeCount): string {
  const states = [
    ...(tainted > 0 ? [`${tainted} tainted`] : []),
    ...(untainted > 0 ? [`${untainted} untainted`] : []),
    ...(foreign > 0 ? [`${foreign} tainted by others`] : []),
  ];
  return `${architecture} ${total} (${states.join(', ')})`;
}

function podsText({ word }: Facts): string {
  const known = readValue(word);
  if (known === undefined) return 'unknown';
  const texts = OUTCOMES.map((outcome) => `${known.pods[outcome] ?? 0} ${OUTCOME_TEXTS[outcome] ?? outcome}`);
  return [texts.join(', '), ...(known.tooLarge > 0 ? [`${known.tooLarge} too large to be served`] : [])].join('; ');
}

/** Nobody keeps a promise while nobody leads, so a pod's outlook is shown only where its author leads. */
function pendingTexts(facts: Facts): string[] {
  const word = readValue(facts.word);
  if (word === undefined) return ['unknown'];
  const { count, oldest } = word.waiting;
  if (count === 0) return ['none'];
  const leads = hasLeader(facts) === true && !isOfThePast(facts, word);
  const more = count > oldest.length ? [`and ${count - oldest.length} more`] : [];
  return [
    ...oldest.map(({ namespace, name, since, reason, outlook }) => {
      const age = ageText(facts.now - Date.parse(since));
      return `${namespace}/${name} (${age}): ${reason}${leads && outlook !== '' ? `; ${outlook}` : ''}`;
    }),
    ...more,
  ];
}

function webhookText(facts: Facts): string {
  const { webhook, webhookConfiguration } = facts;
  if (webhookConfiguration.kind === 'unread') return `unknown: ${webhookConfiguration.why}`;
  // Without the configuration it is not known whether there is a webhook.
  if (webhook.state === 'off' && isGuess(facts)) return 'unknown: the configuration is not known';
  const { state, why } = webhook;
  return `${state === 'not-reached' ? 'not reached' : state}${why === '' ? '' : `: ${why}`}`;
}

function poolTexts({ pools }: Facts): string[] {
  if (pools.kind === 'unread') return [`unknown: ${pools.why}`];
  if (pools.value.length === 0) return ['nothing is missing'];
  return pools.value.map(({ kind, name, severity, problem }) => `${kind} ${name}: ${severity}: ${problem}`);
}
