import { LineCounter, parseDocument } from 'yaml';
import { parseGoDuration } from '../../kit/duration.ts';
import { isObject, type JsonObject } from '../../kit/json.ts';
import { printableAscii } from '../../kit/printable.ts';
import { isPattern } from './match.ts';
import { SourceError } from './source-error.ts';

/** A kubelet image credential provider plug-in, as the configuration file names it. */
export type Provider = {
  /** The name of the program in the directory of binaries. */
  readonly name: string;
  readonly matchImages: readonly string[];
  /** Milliseconds; for answers that name no duration. */
  readonly defaultCacheDuration: number;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /**
   * Whether kubelets give it a token of the pod's service account (`tokenAttributes`, KEP-4412: beta and on by default since
   * Kubernetes 1.34). Archaware has no such token, so it never runs the program; it only names it as the reason of a refusal.
   */
  readonly isForPods?: true;
  /** The API version of requests to it and of its answers. */
  readonly apiVersion: string;
};

const VERSIONS = ['v1', 'v1beta1', 'v1alpha1'];
const PROVIDER_APIS = VERSIONS.map((version) => `credentialprovider.kubelet.k8s.io/${version}`);
const CONFIG_APIS = VERSIONS.map((version) => `kubelet.config.k8s.io/${version}`);
const [CONFIG_V1] = CONFIG_APIS;
const CONFIG_KIND = 'CredentialProviderConfig';

/**
 * Returns the providers of all files of a configuration, in the order of the files.
 *
 * @throws SourceError if there is none, or if two have the same name
 */
export function mergeProviders(files: readonly (readonly Provider[])[]): Provider[] {
  const providers = files.flat();
  if (providers.length === 0) throw new SourceError('providers must be a list with at least one entry');
  const names = providers.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new SourceError(`providers: the name "${twice}" is given twice`);
  return providers;
}

/**
 * Parses a file with a `CredentialProviderConfig` of kubelet.config.k8s.io, YAML or JSON, as strictly as the kubelet does in what
 * archaware uses of it (pkg/credentialprovider/plugin/config.go). A file alone must have a provider: {@link mergeProviders}.
 *
 * @throws SourceError naming the field
 */
export function parseProviders(text: string): Provider[] {
  const config = parseYaml(text);
  if (!isObject(config)) throw new SourceError(`it is not a ${CONFIG_KIND}`);
  refuseUnknown(config, ['apiVersion', 'kind', 'providers'], '');
  expectText(config, 'kind', [CONFIG_KIND], '');
  const version = expectText(config, 'apiVersion', CONFIG_APIS, '');
  const entries = config.providers ?? [];
  if (!Array.isArray(entries)) throw new SourceError('providers must be a list with at least one entry');
  const fields = version === CONFIG_V1 ? [...FIELDS, 'tokenAttributes'] : FIELDS;
  return entries.map((entry, index) => readProvider(entry, `providers[${index}]`, fields));
}

/** Of a provider, in every version. */
const FIELDS = ['name', 'matchImages', 'defaultCacheDuration', 'apiVersion', 'args', 'env'];

const MAX_TEXT = 256 * 1024;

function parseYaml(text: string): unknown {
  if (text.length > MAX_TEXT) throw new SourceError(`it is longer than ${MAX_TEXT} characters`);
  const lineCounter = new LineCounter();
  const document = parseOrRefuse(() => parseDocument(text, { lineCounter, prettyErrors: false, logLevel: 'error' }));
  const [error] = document.errors;
  // The parser's own message may quote the file.
  if (error !== undefined) {
    throw new SourceError(`it is not valid YAML (line ${lineCounter.linePos(error.pos[0]).line}: ${error.code})`);
  }
  return parseOrRefuse(() => document.toJS({ maxAliasCount: 100 }));
}

/** The parser runs out of stack on some nested texts, and refuses to follow some aliases. */
function parseOrRefuse<T>(parse: () => T): T {
  try {
    return parse();
  } catch {
    throw new SourceError('it is not valid YAML: its aliases cannot be followed, or it is nested too deeply');
  }
}

function readProvider(entry: unknown, path: string, fields: readonly string[]): Provider {
  if (!isObject(entry)) throw new SourceError(`${path} is not an object`);
  refuseUnknown(entry, fields, path);
  const apiVersion = expectText(entry, 'apiVersion', PROVIDER_APIS, path);
  const name = textAt(entry, 'name', path);
  if (!/^[^\s/\\\0]+$/.test(name) || name === '.' || name === '..') {
    throw new SourceError(`${path}.name must be the name of a program in the directory of binaries, without a path`);
  }
  const matchImages = textsAt(entry, 'matchImages', path);
  if (matchImages.length === 0) throw new SourceError(`${path}.matchImages must be a list with at least one entry`);
  const wrong = matchImages.findIndex((pattern) => !isPattern(pattern));
  if (wrong >= 0) {
    const pattern = printableAscii(matchImages[wrong] ?? '', 60);
    throw new SourceError(
      `${path}.matchImages[${wrong}]: got "${pattern}", expected a pattern of images' names such as *.example.com/team`,
    );
  }
  const duration = parseGoDuration(textAt(entry, 'defaultCacheDuration', path));
  if (duration === undefined || duration < 0) {
    throw new SourceError(`${path}.defaultCacheDuration must be a duration such as 12h or 5m30s`);
  }
  return {
    name,
    apiVersion,
    matchImages,
    defaultCacheDuration: duration,
    args: textsAt(entry, 'args', path),
    env: readEnvironment(entry.env ?? [], path),
    // Only the kubelet reads what is in it.
    ...((entry.tokenAttributes ?? undefined) === undefined ? {} : { isForPods: true as const }),
  };
}

function readEnvironment(list: unknown, path: string): Record<string, string> {
  if (!Array.isArray(list)) throw new SourceError(`${path}.env must be a list of name and value`);
  return Object.fromEntries(
    list.map((variable: unknown, index): [string, string] => {
      const at = `${path}.env[${index}]`;
      if (!isObject(variable)) throw new SourceError(`${at} is not an object`);
      refuseUnknown(variable, ['name', 'value'], at);
      const name = textAt(variable, 'name', at);
      if (!/^[^=\0]+$/.test(name)) throw new SourceError(`${at}.name is not a valid name of a variable`);
      return [name, (variable.value ?? '') === '' ? '' : textAt(variable, 'value', at)];
    }),
  );
}

function refuseUnknown(object: JsonObject, known: readonly string[], path: string): void {
  const unknown = Object.keys(object).find((field) => !known.includes(field));
  if (unknown === undefined) return;
  throw new SourceError(`${path === '' ? 'it' : path} has an unknown field "${printableAscii(unknown, 60)}"`);
}

/** Returns the one of these texts that a field has. */
function expectText(object: JsonObject, field: string, expected: readonly string[], path: string): string {
  const value = object[field];
  const found = expected.find((text) => text === value);
  if (found !== undefined) return found;
  const got = typeof value === 'string' ? `"${printableAscii(value, 60)}"` : 'a value that is not a string';
  throw new SourceError(`${join(path, field)}: got ${got}, expected ${expected.join(' or ')}`);
}

function textAt(object: JsonObject, field: string, path: string): string {
  const value = object[field];
  if (typeof value !== 'string') throw new SourceError(`${join(path, field)} must be a string`);
  return value;
}

function textsAt(object: JsonObject, field: string, path: string): string[] {
  const value = object[field] ?? [];
  if (!Array.isArray(value)) throw new SourceError(`${join(path, field)} must be a list of strings`);
  return value.map((text: unknown, index) => {
    if (typeof text !== 'string') throw new SourceError(`${join(path, field)}[${index}] must be a string`);
    return text;
  });
}

function join(path: string, field: string): string {
  return path === '' ? field : `${path}.${field}`;
}
