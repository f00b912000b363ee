import type { Circumstances } from '../../analysis/readiness/assess.ts';
import type { Candidate } from '../../analysis/readiness/candidate.ts';
import { type Comparison, compareWorkloads } from '../../analysis/readiness/compare.ts';
import { countNotLookedUp, notLookedUpText } from '../../analysis/readiness/report-images.ts';
import { type Connection, connect } from '../../app/connect.ts';
import { createServiceAccountReader } from '../../app/registries/pull-secrets.ts';
import { type Context, EXIT } from '../../app/surroundings.ts';
import { toSettings } from '../../config/settings.ts';
import { ConfigurationError } from '../../config/shown-problems.ts';
import { find } from '../../kube/read.ts';
import { createLookups, type Question } from '../lookups/lookups.ts';
import { type Asking, WITHOUT_CLUSTER, withLookups } from '../lookups/with-lookups.ts';
import { inputName, readObjects } from '../manifest-objects.ts';
import { gatherFiles } from '../report/read-workloads.ts';
import { isFound, renderComparison } from './render-comparison.ts';
import { unchecked } from './run-check.ts';

/** The question of one run of `check --compare`. */
export type CompareOptions = {
  readonly form: string;
  readonly files: readonly string[];
  /** The files with the state before; undefined: the cluster's workloads. */
  readonly before: readonly string[] | undefined;
  /** Undefined: every architecture counts. */
  readonly on: readonly string[] | undefined;
  readonly namespace: string | undefined;
  readonly lookupTimeoutMs: number;
};

/** Prints what architectures images lost and gained. Exit code 2 if one was lost, or if an image could not be looked up. */
export async function compare(context: Context, options: CompareOptions): Promise<number> {
  const { config, print, note, readInput } = context;
  const { files, before, on, form, lookupTimeoutMs: limitMs } = options;
  const objects = await readObjects(files, readInput);
  const old = before && (await readObjects(before, readInput, '--compare'));
  const limits = { limitMs, connect: old === undefined ? () => connect(context) : WITHOUT_CLUSTER };
  return withLookups<Connection | undefined>(context, limits, async (asking) => {
    const { cluster, resolver, images, registryOf, progress, signal } = asking;
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
    const circumstances: Circumstances = {
      settings: toSettings(config),
      architectures: on ?? [],
      namespaceOf: (name) => ({ name: name || 'default', labels: {}, preferred: undefined }),
      namesOf: images.namesOf,
      assessesAll: true,
    };
    const lookups = createLookups(resolver, registryOf, signal);
    const questionOf = await asker([...previous, ...after], asking, context);
    let compared: Comparison;
    let isOpen: boolean;
    do {
      isOpen = false;
      compared = compareWorkloads({ before: previous, after }, on, circumstances, (image, candidate) => {
        const question = questionOf(image, candidate);
        const answer = lookups.answerTo(question);
        if (answer.kind === 'pending') {
          isOpen = true;
          lookups.ask(question);
        }
        return answer;
      });
      await lookups.settle((done, total) => progress.show('images', done, total));
    } while (isOpen);
    progress.end();
    for (const line of unchecked(objects)) note(line);
    const failed = compared.unknown.map(({ image, code }) => ({ image, code, registry: registryOf(image) }));
    const notKnown = notLookedUpText(countNotLookedUp(failed));
    if (notKnown !== undefined) note(notKnown);
    if (compared.workloads.length === 0) note('check: no workload is in both, so nothing was compared');
    print(renderComparison(compared, form));
    return isFound(compared) ? EXIT.found : EXIT.done;
  });
}

function nothingIn(files: readonly string[]): ConfigurationError {
  return new ConfigurationError([`check: no workload found in ${files.map(inputName).join(', ')}`]);
}

/** The path of the API and the resource of each kind. */
const RESOURCES: Readonly<Record<string, readonly [path: string, resource: string]>> = {
  Pod: ['/api/v1', 'pods'],
  Deployment: ['/apis/apps/v1', 'deployments'],
  ReplicaSet: ['/apis/apps/v1', 'replicasets'],
  StatefulSet: ['/apis/apps/v1', 'statefulsets'],
  DaemonSet: ['/apis/apps/v1', 'daemonsets'],
  Job: ['/apis/batch/v1', 'jobs'],
  CronJob: ['/apis/batch/v1', 'cronjobs'],
};

type Inside = Pick<Asking<Connection | undefined>, 'cluster' | 'progress' | 'signal'>;

/** Reads the objects of the cluster with the same kinds, namespaces and names, one after another: these are few. */
async function readCluster(wanted: readonly Candidate[], { cluster, progress, signal }: Inside) {
  const read = [];
  for (const [index, { kind, namespace, name }] of wanted.entries()) {
    const [path, resource] = (Object.hasOwn(RESOURCES, kind) ? RESOURCES[kind] : undefined) ?? [];
    if (cluster === undefined || path === undefined) continue;
    const where = `${path}/namespaces/${encodeURIComponent(namespace)}/${resource}/${encodeURIComponent(name)}`;
    const object = await find(cluster.client, where, signal);
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
  { cluster, signal }: Inside,
  { clock }: Pick<Context, 'clock'>,
): Promise<(image: Question['image'], candidate: Candidate) => Question> {
  if (cluster === undefined) return (image) => ({ image, namespace: 'default', pullSecrets: [] });
  const read = createServiceAccountReader(cluster.client, clock);
  const accountOf = ({ namespace, template }: Candidate) => `${namespace}/${template.serviceAccountName}`;
  const secrets = new Map<string, readonly string[]>();
  for (const candidate of candidates) {
    const account = accountOf(candidate);
    if (candidate.template.pullSecrets.length > 0 || secrets.has(account)) continue;
    secrets.set(account, await read(candidate.namespace, candidate.template.serviceAccountName, signal));
  }
  return (image, candidate) => {
    const { pullSecrets: own } = candidate.template;
    const pullSecrets = own.length > 0 ? own : (secrets.get(accountOf(candidate)) ?? []);
    return { image, namespace: candidate.namespace, pullSecrets };
  };
}
