import { type JsonObject, listAt, objectAt, stringAt, textsAt } from '../kit/json.ts';
import type { ApiClient } from '../kube/api-client.ts';
import { isForbidden } from '../kube/errors.ts';
import { getDeployment, type Installation } from '../kube/installation.ts';
import { find } from '../kube/read.ts';
import { DEPLOYMENT } from '../names.ts';

/** How a Deployment runs the controller: everything that its configuration is made of. */
type Deployed = {
  /** The words after the name of the program: `run`, `--config`, `/etc/archaware/config.yaml`. */
  readonly words: readonly string[];
  /** The environment variables that have a literal value. */
  readonly environment: Readonly<Record<string, string>>;
  readonly mounts: readonly ConfigMapMount[];
};

/** A directory in the container that holds the entries of a ConfigMap. */
type ConfigMapMount = {
  readonly path: string;
  readonly configMap: string;
  /** File names by key, if the volume lists its keys; all keys under their own names if it lists none. */
  readonly items: ReadonlyMap<string, string> | undefined;
  /** The one file that is mounted, at `path` itself. */
  readonly subPath: string | undefined;
};

/** Reads a Deployment of archaware; undefined if it has no container. */
function readDeployed(object: JsonObject): Deployed | undefined {
  const spec = ['spec', 'template', 'spec'].reduce(objectAt, object);
  const containers = listAt(spec, 'containers') ?? [];
  const container = containers.find((each) => stringAt(each, 'name') === DEPLOYMENT) ?? containers[0];
  if (container === undefined) return undefined;
  const volumes = new Map((listAt(spec, 'volumes') ?? []).map((volume) => [stringAt(volume, 'name') ?? '', volume]));
  return {
    words: wordsAfterProgram([...textsAt(container, 'command'), ...textsAt(container, 'args')]),
    environment: Object.fromEntries(
      (listAt(container, 'env') ?? []).flatMap((variable) => {
        const value = stringAt(variable, 'value');
        return value === undefined ? [] : [[stringAt(variable, 'name') ?? '', value]];
      }),
    ),
    mounts: (listAt(container, 'volumeMounts') ?? []).flatMap((mount) => readMount(mount, volumes) ?? []),
  };
}

/**
 * Returns what follows the name of the program on a command line: everything after `main.js`. Without it the image's entry point
 * is the program, and all words are arguments.
 */
function wordsAfterProgram(words: readonly string[]): string[] {
  return words.slice(words.findIndex((word) => word.endsWith('main.js')) + 1);
}

function readMount(mount: JsonObject, volumes: ReadonlyMap<string, JsonObject>): ConfigMapMount | undefined {
  const source = objectAt(volumes.get(stringAt(mount, 'name') ?? '') ?? {}, 'configMap');
  const configMap = stringAt(source, 'name');
  const path = stringAt(mount, 'mountPath');
  if (configMap === undefined || path === undefined) return undefined;
  const items = listAt(source, 'items');
  return {
    path: path.replace(/(?<!\/)\/+$/, ''),
    configMap,
    items: items && new Map(items.map((item) => [stringAt(item, 'key') ?? '', stringAt(item, 'path') ?? ''])),
    subPath: stringAt(mount, 'subPath') || undefined,
  };
}

/** The text of a file in the container, and its ConfigMap as `namespace/name`. */
type MountedFile = { readonly text: string; readonly source: string };

/** The result of the search. `unreadable`: what these credentials may not read, in one line. */
type FoundDeployed =
  /** `readFile`: undefined for a file that no ConfigMap has. */
  | (Deployed & { readonly kind: 'found'; readFile(path: string): Promise<MountedFile | undefined> })
  | { readonly kind: 'none' }
  | { readonly kind: 'unreadable'; readonly why: string };

/** Reads the Deployment of the installation. Throws what the client throws, except for a 403. */
export async function findDeployed(
  client: ApiClient,
  installation: Installation,
  signal: AbortSignal,
): Promise<FoundDeployed> {
  async function readFile(mounts: readonly ConfigMapMount[], path: string): Promise<MountedFile | undefined> {
    const { namespace } = installation;
    for (const mount of mounts) {
      const key = keyAt(mount, path);
      if (key === undefined) continue;
      const configMaps = `/api/v1/namespaces/${encodeURIComponent(namespace)}/configmaps`;
      const object = await find(client, `${configMaps}/${encodeURIComponent(mount.configMap)}`, signal);
      const text = stringAt(objectAt(object ?? {}, 'data'), key);
      if (text !== undefined) return { text, source: `${namespace}/${mount.configMap}` };
    }
    return undefined;
  }

  try {
    const object = await getDeployment(client, installation, signal);
    const deployed = object && readDeployed(object);
    if (deployed === undefined) return { kind: 'none' };
    return { kind: 'found', ...deployed, readFile: (path) => readFile(deployed.mounts, path) };
  } catch (error) {
    if (!isForbidden(error)) throw error;
    return { kind: 'unreadable', why: error.message };
  }
}

/** Returns the key of a ConfigMap that is mounted at a path; undefined if the path is not in the mount. */
function keyAt({ path: directory, items, subPath }: ConfigMapMount, path: string): string | undefined {
  const isInside = path.startsWith(`${directory}/`);
  const name = subPath === undefined ? (isInside ? path.slice(directory.length + 1) : undefined) : subPath;
  if (name === undefined || (subPath !== undefined && path !== directory)) return undefined;
  if (items === undefined) return name;
  return [...items].find(([, file]) => file === name)?.[0];
}

/** Where a process was started. */
export type ConfigPlace = {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The words with which the first process of the container was started; empty if that is not known. */
  readonly firstProcess: readonly string[];
  readonly pid: number;
};

/**
 * Returns the words of the controller's command line, if the process was started in its container, by `kubectl exec`.
 * hack/image/archaware.sh decides by the same rule.
 */
export function controllerWords({ environment, firstProcess, pid }: ConfigPlace): string[] | undefined {
  if (pid === 1 || environment.KUBERNETES_SERVICE_HOST === undefined) return undefined;
  if (!firstProcess.some((word) => word.endsWith('main.js'))) return undefined;
  const words = wordsAfterProgram(firstProcess);
  const [command = ''] = words;
  return command === 'run' || command.startsWith('-') ? words : undefined;
}

/**
 * Returns why a command does not run beside the controller, and what to do; undefined if it does. A command that looks at the whole
 * cluster may need more memory than the container has, and `clean` stops the controller in whose container it would run.
 */
export function refusalBesideController(
  command: string,
  { isOneNamespace }: { readonly isOneNamespace: boolean },
): string | undefined {
  switch (command) {
    case 'clean':
    case 'report':
      return `${command}: does not run in the controller's container; run it outside the cluster or as a Job`;
    case 'plan':
      return isOneNamespace
        ? undefined
        : "plan: runs in the controller's container for one namespace only; add -n NAMESPACE, or run it outside the cluster or as a Job";
    default:
      return undefined;
  }
}
