import { imagesToAsk } from '../../analysis/readiness/assess.ts';
import { type Check, checkObjects, type Missing } from '../../analysis/readiness/check-objects.ts';
import { type Context, EXIT } from '../../app/surroundings.ts';
import { ConfigurationError } from '../../config/shown-problems.ts';
import { type JsonObject, listAt, objectAt, stringAt } from '../../kit/json.ts';
import { printable } from '../../kit/printable.ts';
import { WORKLOAD_KINDS } from '../../placement/objects/kinds.ts';
import { createLookups } from '../lookups/lookups.ts';
import { WITHOUT_CLUSTER, withLookups } from '../lookups/with-lookups.ts';
import { inputName, readObjects } from '../manifest-objects.ts';
import { code, counted, markdownTable, nameOf, valueText, wrapped } from '../output.ts';
import { createPaint, type Paint } from '../paint.ts';
import { circumstancesOf, gatherFiles, inNamespace, notLookedUp, withoutSecrets } from '../survey/workloads.ts';
import { unknownPrograms, withPrograms } from './programs-of.ts';

/** The question of one run of `check`. */
export type CheckOptions = {
  readonly form: string;
  readonly files: readonly string[];
  readonly on: readonly string[];
  /** The namespace of objects that name none. */
  readonly namespace: string | undefined;
  readonly lookupTimeoutMs: number | undefined;
  /** Whether the programs that the images start are read out of their layers. */
  readonly isDeep: boolean;
};

/** Prints the images that lack an architecture. Exit code 2 if there are some, or if an image could not be looked up. */
export async function check(
  context: Context,
  { form, files, on, namespace, lookupTimeoutMs, isDeep }: CheckOptions,
): Promise<number> {
  const { config, print, note, readInput } = context;
  const objects = (await readObjects(files, readInput)).map((object) => inNamespace(object, namespace));
  const seen = { columns: context.columns, paint: createPaint(context) };
  return withLookups(context, { limitMs: lookupTimeoutMs, connect: WITHOUT_CLUSTER }, async (asking) => {
    const { images, registryOf, progress } = asking;
    const { inventory, namespaces } = gatherFiles(objects);
    const units = inventory.units();
    const circumstances = { ...circumstancesOf(config, images, on, namespaces), assessesAll: true };
    const lookups = createLookups(asking);
    const asked = new Set<string>();
    for (const part of units.flatMap(({ parts }) => parts)) {
      for (const image of imagesToAsk(part, circumstances)) {
        lookups.ask(withoutSecrets(image));
        asked.add(image.image);
      }
    }
    await lookups.settle();
    const claimed = checkObjects(units, on, circumstances, (image) => lookups.answerTo(withoutSecrets(image)));
    const isAsked = (image: string) => asked.has(image);
    const deep = isDeep ? await withPrograms(claimed, objects, { on, isAsked }, asking) : undefined;
    const result = deep ?? claimed;
    progress.end();
    for (const line of deep === undefined ? [] : unknownPrograms(deep)) note(printable(line, 1_000));
    for (const line of unchecked(objects)) note(line);
    if (result.objects.length === 0) {
      // A program gets an empty result to read.
      if (form === 'json' || form === 'yaml') print(renderCheck(result, on, form, seen));
      throw new ConfigurationError([`check: no workload found in ${files.map(inputName).join(', ')}`]);
    }
    for (const line of notLookedUp(result.missing, registryOf)) note(line);
    const remarks = form === 'table' ? (result.notes ?? []) : [];
    for (const each of remarks) note(printable(`${nameOf(each)}: ${each.text}`, 4_000));
    print(renderCheck(result, on, form, seen));
    return result.missing.length > 0 ? EXIT.found : EXIT.done;
  });
}

/** Returns a note for each kind that has a pod template in its usual place, but that archaware does not know. */
export function unchecked(objects: readonly JsonObject[]): string[] {
  const kinds = objects.flatMap((object) => {
    const kind = stringAt(object, 'kind') ?? '';
    const spec = objectAt(objectAt(objectAt(object, 'spec'), 'template'), 'spec');
    return !WORKLOAD_KINDS.includes(kind) && listAt(spec, 'containers') !== undefined ? [kind] : [];
  });
  return [...new Set(kinds)].map((kind) => `objects of the kind ${kind} have containers, but are not checked`);
}

type SeenObjects = { readonly columns: number | undefined; readonly paint: Paint };

/** Returns the result in the form that `--output` names. */
export function renderCheck(check: Check, on: readonly string[], form: string, seen: SeenObjects): string {
  if (form === 'json' || form === 'yaml') return valueText(check, form);
  return form === 'markdown' ? markdown(check, on) : seen.paint.marks ? byWorkload(check, on, seen) : lines(check, on);
}

/** One line for each image that lacks something; one line if nothing is missing. */
function lines({ objects, missing }: Check, on: readonly string[]): string {
  if (missing.length === 0) return `${counted(objects.length, 'workload')} can run on ${on.join(', ')}.\n`;
  return missing.map((each) => `${printable(`${nameOf(each)}: ${lacksText(each)}`, 4_000)}\n`).join('');
}

/** For a terminal: the sum, then each workload with what its images lack. */
function byWorkload({ objects, missing }: Check, on: readonly string[], { columns, paint }: SeenObjects): string {
  const groups = new Map<string, Missing[]>();
  for (const each of missing) groups.set(nameOf(each), [...(groups.get(nameOf(each)) ?? []), each]);
  if (groups.size === 0) {
    return `${paint.mark('good')} ${paint.bold(`${counted(objects.length, 'workload')} can run on ${on.join(', ')}.`)}\n`;
  }
  const isUnknown = ({ code: failure }: Missing) => failure !== undefined;
  const lacking = [...groups.values()].filter((each) => !each.every(isUnknown)).length;
  const unknown = groups.size - lacking;
  const counts = [
    ...(lacking > 0
      ? [`${lacking} of ${counted(objects.length, 'workload')} cannot run on all of ${on.join(', ')}`]
      : []),
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
  if (missing.length === 0) return `${title}\n✅ ${counted(objects.length, 'workload')} can run on all of them.\n`;
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
