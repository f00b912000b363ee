import { type JsonObject, listAt, objectAt, stringAt } from '../../kit/json.ts';
import { DEPLOYMENT } from '../../names.ts';

/** How a Deployment runs the controller: everything that its configuration is made of. */
export type DeployedController = {
  readonly namespace: string;
  readonly name: string;
  /** The words after the name of the program: `run`, `--config`, `/etc/archaware/config.yaml`. */
  readonly words: readonly string[];
  /** The environment variables that have a literal value. */
  readonly environment: Readonly<Record<string, string>>;
  readonly mounts: readonly ConfigMapMount[];
};

/** A directory in the container that holds the entries of a ConfigMap. */
export type ConfigMapMount = {
  readonly path: string;
  readonly configMap: string;
  /** File names by key, if the volume lists its keys; all keys under their own names if it lists none. */
  readonly items: ReadonlyMap<string, string> | undefined;
  /** The one file that is mounted, at `path` itself. */
  readonly subPath: string | undefined;
};

/** Reads a Deployment of archaware; undefined if it has no container. */
export function readDeployed(object: JsonObject): DeployedController | undefined {
  const metadata = objectAt(object, 'metadata');
  const spec = ['spec', 'template', 'spec'].reduce(objectAt, object);
  const containers = listAt(spec, 'containers') ?? [];
  const container = containers.find((each) => stringAt(each, 'name') === DEPLOYMENT) ?? containers[0];
  if (container === undefined) return undefined;
  const volumes = new Map((listAt(spec, 'volumes') ?? []).map((volume) => [stringAt(volume, 'name') ?? '', volume]));
  return {
    namespace: stringAt(metadata, 'namespace') ?? '',
    name: stringAt(metadata, 'name') ?? '',
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
export function wordsAfterProgram(words: readonly string[]): string[] {
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

function textsAt(object: JsonObject, key: string): string[] {
  const value = object[key];
  return Array.isArray(value) ? value.map(String) : [];
}
