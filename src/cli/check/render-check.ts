import type { Check, Missing } from '../../analysis/readiness/check-objects.ts';
import { printable } from '../../kit/printable.ts';
import { valueText, wrapped } from '../output.ts';
import type { Paint } from '../paint.ts';
import { code, markdownTable } from './markdown.ts';

/** The terminal, if there is one. */
type Seen = { readonly columns: number | undefined; readonly paint: Paint };

/** Returns the result in the form that `--output` names. */
export function renderCheck(check: Check, on: readonly string[], form: string, seen: Seen): string {
  if (form === 'json' || form === 'yaml') return valueText(check, form);
  return form === 'markdown' ? markdown(check, on) : seen.paint.marks ? byWorkload(check, on, seen) : lines(check, on);
}

/** One line for each image that lacks something; one line if nothing is missing. */
function lines({ objects, missing }: Check, on: readonly string[]): string {
  if (missing.length === 0) return `${countOf(objects.length)} can run on ${on.join(', ')}.\n`;
  return missing.map((each) => `${printable(`${nameOf(each)}: ${lacksText(each)}`, 4_000)}\n`).join('');
}

/** For a terminal: the sum, then each workload with what its images lack. */
function byWorkload({ objects, missing }: Check, on: readonly string[], { columns, paint }: Seen): string {
  const groups = new Map<string, Missing[]>();
  for (const each of missing) groups.set(nameOf(each), [...(groups.get(nameOf(each)) ?? []), each]);
  if (groups.size === 0) {
    return `${paint.mark('good')} ${paint.bold(`${countOf(objects.length)} can run on ${on.join(', ')}.`)}\n`;
  }
  const isUnknown = ({ code: failure }: Missing) => failure !== undefined;
  const lacking = [...groups.values()].filter((each) => !each.every(isUnknown)).length;
  const unknown = groups.size - lacking;
  const counts = [
    ...(lacking > 0 ? [`${lacking} of ${countOf(objects.length)} cannot run on all of ${on.join(', ')}`] : []),
    ...(unknown > 0 ? [`${unknown} could not be looked up`] : []),
  ];
  const tone = lacking > 0 ? 'bad' : 'warning';
  const width = (columns ?? Number.POSITIVE_INFINITY) - 4;
  const lines = [...groups].flatMap(([name, found]) => {
    const title = `${paint.mark(found.every(isUnknown) ? 'warning' : 'bad')} ${paint.bold(printable(name, 1_000))}`;
    const texts = found.flatMap((each) => wrapped(printable(lacksText(each), 4_000), width));
    return [title, ...texts.map((text) => `    ${text}`)];
  });
  return [`${paint.mark(tone)} ${paint.bold(paint.tone(tone, `${counts.join(', ')}.`))}`, '', ...lines]
    .map((line) => `${line}\n`)
    .join('');
}

function lacksText({ image, code: failure, architectures, text }: Missing): string {
  if (failure !== undefined) return `unknown: ${text}`;
  return image === undefined
    ? `not on ${architectures.join(', ')}: ${text}`
    : `no ${architectures.join(', ')}: ${text}`;
}

function markdown({ objects, missing, notes = [] }: Check, on: readonly string[]): string {
  const title = `### Architectures: ${on.join(', ')}\n`;
  if (missing.length === 0) return `${title}\n✅ ${countOf(objects.length)} can run on all of them.\n`;
  const rows = missing.map((each) => [
    each.code === undefined ? '❌' : '❔',
    code(nameOf(each)),
    each.image === undefined ? '' : code(each.image),
    each.architectures.join(', '),
    code(each.text),
  ]);
  const remarks = notes.map((each) => `\n⚠️ ${code(`${nameOf(each)}: ${each.text}`)}\n`).join('');
  return `${title}\n${markdownTable(['', 'object', 'image', 'missing', 'why'], rows)}${remarks}`;
}

/** Returns the notes as lines for standard error, where the form of output is not a document. */
export function checkNotes({ notes = [] }: Check): string[] {
  return notes.map((each) => printable(`${nameOf(each)}: ${each.text}`, 4_000));
}

function nameOf({ kind, namespace, name }: Pick<Missing, 'kind' | 'namespace' | 'name'>): string {
  return `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`;
}

function countOf(objects: number): string {
  return objects === 1 ? '1 workload' : `${objects} workloads`;
}
