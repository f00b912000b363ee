import { imagesToAsk } from '../../analysis/readiness/assess.ts';
import { buildReport, type ReportInput } from '../../analysis/readiness/build.ts';
import type { Report } from '../../analysis/readiness/report.ts';
import { notLookedUpText } from '../../analysis/readiness/report-images.ts';
import { shortfalls } from '../../analysis/readiness/tally.ts';
import { connect } from '../../app/connect.ts';
import { type Context, EXIT } from '../../app/surroundings.ts';
import { ConfigurationError } from '../../config/shown-problems.ts';
import { matchesSelector } from '../../kit/label-syntax.ts';
import { readNamespaceReport } from '../../placement/objects/namespace.ts';
import { few } from '../../placement/reasons.ts';
import { createLookups } from '../lookups/lookups.ts';
import { type Asking, withLookups } from '../lookups/with-lookups.ts';
import { inputName, readObjects } from '../manifest-objects.ts';
import { valueText } from '../output.ts';
import { circumstancesOf, type Gathered, gather, gatherFiles, questionOf } from '../survey/workloads.ts';
import { type HtmlOptions, renderHtml } from './html/html.ts';
import { findNewer } from './newer.ts';
import type { ReportOptions } from './options.ts';
import { reportTable } from './table.ts';
import { type TeamOptions, teamText } from './team.ts';

/** Prints which workloads can run on the targets. Exit code 2 if less is ready than `--fail-under` asks for. */
export async function report(context: Context, given: ReportOptions): Promise<number> {
  const { clock, print, note, readInput } = context;
  const { targets: configured } = context.config.report;
  const options = { ...given, targets: given.targets ?? (configured.length > 0 ? configured : undefined) };
  const { files, namespace, targets, failUnder } = options;
  context.keepHeapSmall();
  const objects = files.length === 0 ? undefined : await readObjects(files, readInput);
  const lookups = {
    limitMs: options.lookupTimeoutMs,
    connect: async () => (objects === undefined ? connect(context) : undefined),
  };
  return withLookups(context, lookups, async (asking) => {
    const { cluster, secretProblems, progress, signal } = asking;
    const client = cluster?.client;
    const gathered =
      client === undefined
        ? gatherFiles(objects ?? [], namespace)
        : await gather(client, namespace, progress.show, signal);
    const made = await makeReport(context, asking, gathered, options);
    progress.end();
    const isMachine = options.form === 'json' || options.form === 'yaml';
    if (!isMachine) refuseNothing(made, options);
    for (const { text } of made.summary.unread) note(text);
    const notKnown = notLookedUpText(made.summary.notLookedUp);
    // The other forms say it beside the share.
    if (isMachine && notKnown !== undefined) note(notKnown);
    noteSecrets(secretProblems, note);
    const source = client?.host ?? files.join(', ');
    const createdAt = new Date(clock.wall()).toISOString();
    const seen = readNamespaceReport(gathered.namespaces.get(namespace ?? '')?.report);
    const team = options.forTeam ? { namespace: namespace ?? '', now: clock.wall(), seen } : undefined;
    const how = { source, createdAt, namedTargets: targets !== undefined, columns: context.columns, team };
    print(renderReport(made, options.form, how));
    // A program still reads that there is nothing.
    refuseNothing(made, options);
    return failUnder === undefined ? EXIT.done : exitFor(made, failUnder, note);
  });
}

async function makeReport(
  { config, note }: Context,
  asking: Asking,
  gathered: Gathered,
  { files, targets, selector, grouping, newer, prices }: ReportOptions,
): Promise<Report> {
  const { images, registryOf } = asking;
  const { inventory, nodes, unread, namespaces } = gathered;
  const lookups = createLookups(asking);
  const circumstances = circumstancesOf(config, images, [], namespaces);
  const units = inventory.units().filter(({ labels }) => matchesSelector(selector, labels));
  for (const part of units.flatMap(({ parts }) => parts)) {
    if (!matchesSelector(selector, part.labels)) continue;
    for (const image of imagesToAsk(part, circumstances)) lookups.ask(questionOf(image, part, gathered));
  }
  await lookups.settle();
  const input: ReportInput = {
    ...circumstances,
    units,
    nodes,
    targets,
    answerOf: (image, candidate) => lookups.answerTo(questionOf(image, candidate, gathered)),
    registryOf,
    grouping,
    unread,
    ...(files.length === 0 ? { waiting: inventory.waiting() } : {}),
    prices,
  };
  const built = buildReport(input);
  if (!newer) return built;
  const users = new Map(
    units.flatMap(({ parts }) =>
      parts.flatMap((part) => part.template.images.map((image) => [image.image, questionOf(image, part, gathered)])),
    ),
  );
  const failed: string[] = [];
  const onFailed = (image: string, code: string) => failed.push(`${image} (${code})`);
  const newerOf = await findNewer(built, (image) => users.get(image), asking, onFailed);
  if (failed.length > 0) note(`newer tags are not known of ${few(failed)}`);
  return buildReport({ ...input, newerOf });
}

/** Pull secrets are many, so they get one line. */
function noteSecrets(unusable: ReadonlyMap<string, string>, note: (line: string) => void): void {
  const [first] = unusable;
  if (first === undefined) return;
  const more = unusable.size > 1 ? ` and ${unusable.size - 1} more` : '';
  note(`images were asked for without the pull secret ${first[0]} (${first[1]})${more}`);
}

/** Returns the exit code of a report with `--fail-under`, and notes what falls short. Throws ConfigurationError if nothing wants a pod. */
function exitFor(made: Report, failUnder: number, note: (line: string) => void): number {
  const [target = ''] = made.targets;
  const short = shortfalls(made, target, failUnder);
  if (short === undefined) {
    throw new ConfigurationError([
      `--fail-under: nothing to judge: no workload wants a pod (${made.summary.all.workloads} are scaled to 0 or suspended)`,
    ]);
  }
  for (const { measure, share, isWithoutCpu } of short) {
    const what = measure === 'cpu' ? 'requested CPU is' : `replicas ${isWithoutCpu ? 'that request no CPU ' : ''}are`;
    note(
      `${Math.floor(share * 1_000 + 1e-9) / 10} % of the ${what} ready for ${target}, less than --fail-under ${failUnder}`,
    );
  }
  return short.length === 0 ? EXIT.done : EXIT.found;
}

/** Throws ConfigurationError if a report has no workload: "100 %" of no workload would look like a success. */
function refuseNothing({ summary }: Report, { files, namespace, selectorText }: ReportOptions): void {
  if (summary.all.workloads > 0) return;
  const where = files.length > 0 ? `in ${files.map(inputName).join(', ')}` : 'in the cluster';
  const within = namespace === undefined ? '' : `, namespace ${namespace}`;
  const labelled = selectorText === '' ? '' : ` with the labels ${selectorText}`;
  const unread = summary.unread.map(({ text }) => text);
  throw new ConfigurationError([`report: no workload${labelled} found ${where}${within}`, ...unread]);
}

type RenderOptions = HtmlOptions & {
  /** Whether `--to` named the targets: then each gets its details. */
  readonly namedTargets: boolean;
  readonly columns: number | undefined;
  /** Set with `--for-team`. */
  readonly team?: TeamOptions | undefined;
};

/** Returns the report in the form that `--output` names. */
export function renderReport(report: Report, form: string, options: RenderOptions): string {
  switch (form) {
    case 'json':
    case 'yaml':
      return valueText(report, form);
    case 'html':
      return renderHtml(report, options);
    default:
      if (options.team !== undefined) return teamText(report, options.team, options.columns);
      return reportTable(report, options.columns, options.namedTargets);
  }
}
