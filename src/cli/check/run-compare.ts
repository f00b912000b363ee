import type { Candidate } from '../../analysis/readiness/assess.ts';
import { type Comparison, compareWorkloads, type ImageChange } from '../../analysis/readiness/compare.ts';
import { type Connection, connect } from '../../app/connect.ts';
import { createServiceAccountReader } from '../../app/registries/pull-secrets.ts';
import { type Context, EXIT } from '../../app/surroundings.ts';
import { ConfigurationError } from '../../config/shown-problems.ts';
import { printable } from '../../kit/printable.ts';
import { find } from '../../kube/read.ts';
import type { NamedObject } from '../../placement/objects/kinds.ts';
import { createLookups, type LookupQuestion } from '../lookups/lookups.ts';
import { type Asking, WITHOUT_CLUSTER, withLookups } from '../lookups/with-lookups.ts';
import { inputName, readObjects } from '../manifest-objects.ts';
import { code, counted, markdownTable, nameOf, valueText } from '../output.ts';
import { KINDS, pathOf } from '../survey/kind-paths.ts';
import { circumstancesOf, gatherFiles, notLookedUp, questionOf, withoutSecrets } from '../survey/workloads.ts';
import { type CheckOptions, unchecked } from './run-check.ts';

/** The question of one run of `check --compare`. */
export type CompareOptions = Omit<CheckOptions, 'on' | 'isDeep'> & {
  /** The files with the state before; undefined: the cluster's workloads. */
  readonly before: readonly string[] | undefined;
  /** Undefined: every architecture counts. */
  readonly on: readonly string[] | undefined;
};

/** Prints what architectures images lost and gained. Exit code 2 if one was lost, or if an image could not be looked up. */
export async function compare(context: Context, options: CompareOptions): Promise<number> {
  const { config, print, note, readInput } = context;
  const { files, before, on, form, lookupTimeoutMs: limitMs } = options;
  const objects = await readObjects(files, readInput);
  const old = before && (await readObjects(before, readInput, '--compare'));
  const limits = { limitMs, connect: old === undefined ? () => connect(context) : WITHOUT_CLUSTER };
  return withLookups<Connection | undefined>(context, limits, async (asking) => {
    const { cluster, images, registryOf, progress } = asking;
    // As with kubectl, an object that names no namespace is the one in the namespace of the context.
    const namespace = options.namespace ?? cluster?.namespace;
    const partsOf = (read: typeof objects) =>
      gatherFiles(read, namespace)
        .inventory.units()
        .flatMap(({ parts }) => parts);
    const after = partsOf(objects);
    if (after.length === 0) throw nothingIn(files);
    const previous = old === undefined ? partsOf(await readCluster(after, asking)) : partsOf(old);
    if (before !== undefined && previous.length === 0) throw nothingIn(before);
    const circumstances = { ...circumstancesOf(config, images, on), assessesAll: true };
    const lookups = createLookups(asking);
    const asked = await asker([...previous, ...after], asking, context);
    let compared: Comparison;
    let isOpen: boolean;
    do {
      isOpen = false;
      compared = compareWorkloads({ before: previous, after }, on, circumstances, (image, candidate) => {
        const question = asked(image, candidate);
        const answer = lookups.answerTo(question);
        if (answer.kind === 'pending') {
          isOpen = true;
          lookups.ask(question);
        }
        return answer;
      });
      await lookups.settle();
    } while (isOpen);
    progress.end();
    for (const line of unchecked(objects)) note(line);
    for (const line of notLookedUp(compared.unknown, registryOf)) note(line);
    if (compared.workloads.length === 0) note('check: no workload is in both, so nothing was compared');
    print(renderComparison(compared, form));
    return isFound(compared) ? EXIT.found : EXIT.done;
  });
}

function nothingIn(files: readonly string[]): ConfigurationError {
  return new ConfigurationError([`check: no workload found in ${files.map(inputName).join(', ')}`]);
}

/** Reads the objects of the cluster with the same kinds, namespaces and names, one after another: these are few. */
async function readCluster(wanted: readonly Candidate[], { cluster, progress, signal }: Asking) {
  const read = [];
  for (const [index, { kind, namespace, name }] of wanted.entries()) {
    // Of a kind of another API group the path is not known.
    if (cluster === undefined || !KINDS.some((known) => known.kind === kind)) continue;
    const object = await find(cluster.client, pathOf(kind, namespace, name), signal);
    if (object !== undefined) read.push({ ...object, kind });
    progress.show('workloads', index + 1, wanted.length);
  }
  return read;
}

/**
 * Returns the question about an image of a workload. Without a cluster there are no pull secrets, as with plain `check`. With one, a
 * template that names none has those of its service account, as in its pods.
 */
async function asker(
  candidates: readonly Candidate[],
  { cluster, signal }: Asking,
  { clock }: Pick<Context, 'clock'>,
): Promise<(image: LookupQuestion['image'], candidate: Candidate) => LookupQuestion> {
  if (cluster === undefined) return withoutSecrets;
  const read = createServiceAccountReader(cluster.client, clock);
  const accountSecrets = new Map<string, readonly string[]>();
  for (const { namespace, template } of candidates) {
    const account = `${namespace}/${template.serviceAccountName}`;
    if (template.pullSecrets.length > 0 || accountSecrets.has(account)) continue;
    accountSecrets.set(account, await read(namespace, template.serviceAccountName, signal));
  }
  return (image, candidate) => questionOf(image, candidate, { accountSecrets });
}

const LONGEST = 4_000;

function renderComparison(comparison: Comparison, form: string): string {
  if (form === 'json' || form === 'yaml') return valueText(comparison, form);
  return form === 'markdown' ? markdown(comparison) : lines(comparison);
}

/** Whether a pipeline should stop: an architecture was dropped, or an image is not known. */
function isFound({ workloads, unknown }: Comparison): boolean {
  return unknown.length > 0 || workloads.some(({ images }) => images.some(({ dropped }) => dropped.length > 0));
}

/** One line for each image that lost or gained an architecture, or that is not known; one line at the end if nothing was dropped. */
function lines(comparison: Comparison): string {
  const { workloads, unknown } = comparison;
  const texts = [
    ...changesOf(comparison).map(({ workload, change }) => `${nameOf(workload)}: ${changeText(change)}`),
    ...unknown.map((each) => `${nameOf(each)}: unknown: ${each.text}`),
  ];
  const none = isFound(comparison)
    ? []
    : [`${counted(workloads.length, 'workload')} compared${apartText(comparison)}: no architecture was dropped.`];
  return [...texts, ...none].map((text) => `${printable(text, LONGEST)}\n`).join('');
}

/** What was dropped comes before what was only gained. */
function changesOf({ workloads }: Comparison): { workload: NamedObject; change: ImageChange }[] {
  const all = workloads.flatMap((workload) => workload.images.map((change) => ({ workload, change })));
  const drops = ({ change }: (typeof all)[number]) => change.dropped.length > 0;
  return [...all.filter(drops), ...all.filter((each) => !drops(each))];
}

function changeText(change: ImageChange): string {
  const { dropped, gained, containers, after } = change;
  const what = [
    ...(dropped.length > 0 ? [`dropped ${dropped.join(', ')}`] : []),
    ...(gained.length > 0 ? [`gained ${gained.join(', ')}`] : []),
  ];
  return `${what.join(', ')}: ${after.image} (${containers.join(', ')}) runs on ${setText(after.architectures)}; ${beforeText(change)}`;
}

function beforeText({ before, within = [] }: ImageChange): string {
  if (before === undefined) return `the workload ran on ${setText(within)} without it`;
  return `${before.image} ran on ${setText(before.architectures)}`;
}

function setText(architectures: readonly string[]): string {
  return architectures.length === 0 ? 'no architecture' : architectures.join(', ');
}

function markdown(comparison: Comparison): string {
  const { workloads, unknown } = comparison;
  const title = '### Architectures: before and after\n';
  const rows = [
    ...changesOf(comparison).map(({ workload, change: { before, within, after, dropped, gained } }) => [
      dropped.length > 0 ? '❌' : '➕',
      code(nameOf(workload)),
      before === undefined
        ? `_none_ (${setText(within ?? [])})`
        : `${code(before.image)} (${setText(before.architectures)})`,
      `${code(after.image)} (${setText(after.architectures)})`,
      dropped.join(', '),
      gained.join(', '),
    ]),
    ...unknown.map((each) => {
      const said = `${code(each.image)}: ${code(each.text)}`;
      return ['❔', code(nameOf(each)), each.when === 'before' ? said : '', each.when === 'after' ? said : '', '', ''];
    }),
  ];
  const table =
    rows.length === 0 ? '' : `\n${markdownTable(['', 'object', 'before', 'after', 'dropped', 'gained'], rows)}`;
  const end = isFound(comparison)
    ? ''
    : `\n✅ ${counted(workloads.length, 'workload')} compared${apartText(comparison)}: no architecture was dropped.\n`;
  return `${title}${table}${end}`;
}

/** Returns `, 1 new, 2 gone`; empty if the same workloads are in both. */
function apartText({ added, removed }: Comparison): string {
  const parts = [
    ...(added.length > 0 ? [`${added.length} new`] : []),
    ...(removed.length > 0 ? [`${removed.length} gone`] : []),
  ];
  return parts.length === 0 ? '' : ` (${parts.join(', ')})`;
}
