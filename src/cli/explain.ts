import { readFileSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';
import { ClusterError, connect } from '../app/connect.ts';
import { type Context, EXIT } from '../app/context.ts';
import { readNodePools } from '../app/node-pools.ts';
import { openOperatorFiles, printProblem } from '../app/registries/operator-files.ts';
import { createPullSecretReader, createServiceAccountReader } from '../app/registries/pull-secrets.ts';
import { resolverFor } from '../app/registries/resolver.ts';
import { valueAt } from '../config/keys.ts';
import { ConfigurationError } from '../config/problems.ts';
import { toSettings } from '../config/settings.ts';
import { accessFor, createImageSource } from '../controllers/images.ts';
import { systemClock as clock } from '../kit/clock.ts';
import { isObject, type JsonObject } from '../kit/json.ts';
import { KubeconfigError } from '../kube/access.ts';
import type { ApiClient } from '../kube/client.ts';
import { ConnectionError } from '../kube/errors.ts';
import { listAll } from '../kube/list.ts';
import { find } from '../kube/read.ts';
import { pathOf } from '../kube/writer.ts';
import { ImageError } from '../oci/errors.ts';
import { readNamespace } from '../placement/eligibility.ts';
import { explainPlacement, imagesToAsk } from '../placement/explain/explain.ts';
import type { ExplainInput, Findings, LookupResult } from '../placement/explain/input.ts';
import { readSchedulableNode } from '../placement/fit.ts';
import type { PodImage } from '../placement/objects/image.ts';
import { readWorkload, WORKLOAD_KINDS, type Workload } from '../placement/objects/workload.ts';
import { describeExplanation } from './explain-report.ts';
import { printValue } from './output.ts';

/** The object to explain: a pod of the cluster, or the object in a file (`-`: standard input). */
export type ExplainTarget = { readonly kind: 'pod' | 'file'; readonly name: string };

/** Reads the operands of the command line. Throws {@link ConfigurationError} for anything but a pod or a file. */
export function explainTarget(operands: readonly string[], file: string | undefined): ExplainTarget {
  const [pod = ''] = operands;
  if (file && operands.length === 0) return { kind: 'file', name: file };
  if (file !== undefined || operands.length !== 1 || !/^([^/]+\/)?[^/]+$/.test(pod)) {
    throw new ConfigurationError([
      `explain: got ${JSON.stringify(operands.join(' '))}, expected one [NAMESPACE/]POD, or -f FILE and nothing else`,
    ]);
  }
  return { kind: 'pod', name: pod };
}

/** Prints what `run` would decide for a pod now, and why. */
export async function explain(context: Context, target: ExplainTarget): Promise<number> {
  const { config, signal, output } = context;
  const given = target.kind === 'file' ? readFile(target.name) : undefined;
  const files = await openOperatorFiles(config, clock, printProblem);
  const cluster = await connectFor(context, given !== undefined);
  const client = cluster?.client;
  const end = new AbortController();
  const over = AbortSignal.any([signal, end.signal]);
  try {
    const home = cluster?.namespace ?? 'default';
    const workload = given ?? (await readPod(client, target.name, home, over));
    const namespace = workload.namespace || home;
    const problems = new Map<string, string>();
    const resolver = resolverFor(config, clock, files, {
      pullSecrets:
        client !== undefined && config.credentials.pullSecrets ? createPullSecretReader(client, clock) : async () => [],
      onUnusableSecret: ({ name, reason }) => void problems.set(name, reason),
      ...(client === undefined ? {} : { apiServer: client }),
      signal: over,
    });
    const { namesOf } = createImageSource(resolver, clock, () => undefined);
    const input: ExplainInput = {
      workload,
      applied: given === undefined,
      namespace: await namespaceOf(client, namespace, over),
      settings: toSettings(config),
      nodes: client === undefined ? [] : (await listAll(client, '/api/v1/nodes', over)).map(readSchedulableNode),
      nodePools: client === undefined ? undefined : await readNodePools(client, over),
      namesOf,
    };
    const pullSecrets = await pullSecretsOf(client, workload, namespace, given === undefined, over);
    const lookUp = async (podImage: PodImage): Promise<LookupResult> => {
      const { image } = podImage;
      try {
        const access = accessFor(podImage, namespace, pullSecrets);
        const { digest, source, ...found } = await resolver.resolve(image, access, over);
        return { ...(digest ? { digest } : {}), ...(source ? { source } : {}), ...found };
      } catch (error) {
        if (!(error instanceof ImageError)) throw error;
        const registry = error.endpoint ?? namesOf(image)[0]?.split('/', 1)[0] ?? '';
        return {
          error: { code: error.code, message: error.message, registry },
          isSingleManifest: error.isSingleManifest,
        };
      }
    };
    const asked = imagesToAsk(input);
    const found = new Map(await Promise.all(asked.map(async (image) => [image, await lookUp(image)] as const)));
    const findings: Findings = {
      lookupOf: (image) => found.get(image),
      pullSecrets: pullSecrets.map((name) => {
        const problem = problems.get(name);
        return { name, ...(problem === undefined ? {} : { problem }) };
      }),
      sourceOf: sourceIn(context),
    };
    const explanation = explainPlacement(input, findings);
    if (output === 'table') process.stdout.write(describeExplanation(explanation));
    else printValue(explanation, output);
    return EXIT.done;
  } finally {
    end.abort();
    await client?.close();
  }
}

/** Connects to the cluster. A file can be explained without one, unless the user named a cluster. */
async function connectFor(context: Context, isOptional: boolean) {
  try {
    return await connect(context);
  } catch (error) {
    const isNamed = context.kubeconfig !== undefined || context.context !== undefined;
    const isAway = error instanceof KubeconfigError || error instanceof ConnectionError;
    if (!isOptional || isNamed || !isAway) throw error;
    process.stderr.write(`without a cluster, so without nodes, namespaces and pull secrets: ${error.message}\n`);
    return undefined;
  }
}

async function readPod(
  client: ApiClient | undefined,
  pod: string,
  home: string,
  signal: AbortSignal,
): Promise<Workload> {
  const [name = '', namespace = home] = pod.split('/').reverse();
  const path = pathOf({ kind: 'Pod', namespace: encodeURIComponent(namespace), name: encodeURIComponent(name) });
  const object = await getOrNothing(client, path, signal);
  const workload = object && readWorkload({ ...object, kind: 'Pod' });
  if (workload === undefined) throw new ClusterError(`pod ${namespace}/${name} does not exist`);
  return workload;
}

/** Reads the namespace. One that does not exist yet counts as a namespace without labels. */
async function namespaceOf(client: ApiClient | undefined, name: string, signal: AbortSignal) {
  const object = await getOrNothing(client, `/api/v1/namespaces/${encodeURIComponent(name)}`, signal);
  return { ...readNamespace(object ?? {}), name };
}

async function getOrNothing(
  client: ApiClient | undefined,
  path: string,
  signal: AbortSignal,
): Promise<JsonObject | undefined> {
  return client === undefined ? undefined : find(client, path, signal);
}

/**
 * Returns the pull secrets. The API server will add the service account's secrets to a pod that is not created yet and names none.
 */
async function pullSecretsOf(
  client: ApiClient | undefined,
  { template }: Workload,
  namespace: string,
  applied: boolean,
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (applied || template.pullSecrets.length > 0 || client === undefined) return template.pullSecrets;
  return createServiceAccountReader(client, clock)(namespace, template.serviceAccountName, signal);
}

/** Reads the one pod or workload in a file. Throws {@link ConfigurationError} for anything else. */
function readFile(name: string): Workload {
  const found = readObjects(name).flatMap((object) => readWorkload(object) ?? []);
  const [workload] = found;
  if (workload !== undefined && found.length === 1) return workload;
  const held = found.map((each) => `${each.kind} ${each.name}`).join(', ') || 'none';
  throw new ConfigurationError([`-f ${name}: got ${held}, expected exactly one of ${WORKLOAD_KINDS.join(', ')}`]);
}

function readObjects(name: string): JsonObject[] {
  try {
    const documents = parseAllDocuments(readFileSync(name === '-' ? 0 : name, 'utf8'), { prettyErrors: false });
    return [...documents]
      .map((document): unknown => {
        const [error] = document.errors;
        if (error !== undefined) throw error;
        return document.toJS({ maxAliasCount: 100 });
      })
      .filter(isObject);
  } catch (error) {
    throw new ConfigurationError([`-f ${name}: ${error instanceof Error ? error.message.split('\n')[0] : error}`]);
  }
}

/** Returns a function that names the source of a key's value. A policy's value goes before the global one. */
function sourceIn({ config, sources }: Context): Findings['sourceOf'] {
  return (key, policy) => {
    const said = config.policies.find(({ name }) => name === policy);
    const own: Readonly<Record<string, unknown>> = {
      'architectures.schedulable': said?.schedulable,
      'architectures.fallback': said?.fallback,
      'images.unresolvable': said?.unresolvable,
      'placement.noCommonArchitecture': said?.noCommonArchitecture,
    };
    if (own[key] !== undefined) return { value: own[key], source: `policy ${policy}, ${sources.get('policies')}` };
    return { value: valueAt(config, key), source: sources.get(key) ?? 'default' };
  };
}
