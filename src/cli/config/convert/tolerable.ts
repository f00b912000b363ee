import { parse, TomlError } from 'smol-toml';
import { ConfigurationError } from '../../../config/shown-problems.ts';
import { isObject, type JsonObject } from '../../../kit/json.ts';
import { type Conversion, createDraft, type Draft } from './conversion.ts';

const LEVELS: Readonly<Record<string, string>> = {
  error: 'error',
  warn: 'warn',
  info: 'info',
  debug: 'debug',
  trace: 'debug',
};
const TEMPLATE = ['key', 'operator', 'effect', 'value', 'tolerationSeconds'];

/**
 * Converts tolerable's TOML file. Like tolerable, the resulting configuration writes tolerations and does not touch the
 * nodes' taints.
 *
 * @throws ConfigurationError naming the file, and each key with its value and what is allowed
 */
export function convertTolerable(file: string, text: string): Conversion {
  const table = parseTable(file, text);
  const draft = createDraft(file);
  draft.set('placement.mode', 'taints');
  draft.set('webhook.enabled', true);
  draft.set('taints.manage', false);
  const { tolerations, supported_architectures, registry_credential_path, log_level, ...others } = table;
  carryTemplate(tolerations, draft);
  carryArchitectures(supported_architectures, draft);
  draft.set('images.unresolvable', 'wait');
  draft.note(
    'images that cannot be resolved',
    undefined,
    'get no toleration, as with tolerable (images.unresolvable: wait); the default, open, tolerates every architecture after two minutes',
  );
  if (registry_credential_path !== undefined) {
    draft.carry('credentials.directory', registry_credential_path, 'registry_credential_path');
    draft.note(
      'registry_credential_path',
      registry_credential_path,
      'the files need no change; mount them at the same paths, because the controller needs them to start',
    );
  }
  if (log_level !== undefined) carryLogLevel(log_level, draft);
  const { ssl_key_path, ssl_cert_path, ...unknown } = others;
  for (const [key, value] of Object.entries({ ssl_key_path, ssl_cert_path })) {
    if (value === undefined) continue;
    const why =
      'that certificate is for the name of its Service; archaware creates its own (webhook.certificates: self)';
    draft.note(key, value, why);
  }
  for (const [key, value] of Object.entries(unknown)) draft.note(key, value, 'unknown');
  draft.note(
    'TOLERABLE_*',
    undefined,
    'variables of its Deployment win over the file and are not read here; put their values into the file, and convert it again',
  );
  return draft.finish();
}

function parseTable(file: string, text: string): JsonObject {
  try {
    return parse(text);
  } catch (error) {
    const where = error instanceof TomlError ? `:${error.line}` : '';
    const message = error instanceof Error ? error.message.split('\n')[0] : String(error);
    throw new ConfigurationError([`${message} (${file}${where})`]);
  }
}

function carryTemplate(template: unknown, draft: Draft): void {
  if (template === undefined) {
    draft.note(
      'tolerations',
      undefined,
      'not set, so tolerable changes no pod; set taints.key and taints.effect to those of the taints that your nodes have',
    );
    return;
  }
  if (!isObject(template)) {
    draft.refuse('tolerations', template, 'a table with key, operator and effect');
    return;
  }
  for (const name of TEMPLATE) {
    const value = template[name];
    if (value !== undefined) carryField(name, value, draft);
  }
  for (const [name, value] of Object.entries(template)) {
    if (!TEMPLATE.includes(name)) draft.note(`tolerations.${name}`, value, 'unknown');
  }
  if (template.key === undefined) {
    draft.note('tolerations.key', undefined, 'not set; set taints.key to the key of the taints that your nodes have');
  }
  if (template.effect === undefined) {
    const why = 'not set, so tolerable tolerates every effect; archaware tolerates only taints.effect (NoSchedule)';
    draft.note('tolerations.effect', undefined, why);
  }
}

function carryField(name: string, value: unknown, draft: Draft): void {
  const key = `tolerations.${name}`;
  // tolerable accepts NoExecute, but the schema refuses it.
  if (name === 'effect' && value === 'NoExecute')
    draft.note(key, value, 'not supported; archaware tolerates NoSchedule');
  else if (name === 'effect') draft.carry('taints.effect', value, key);
  else if (name === 'key') draft.carry('taints.key', value, key);
  else if (name === 'value')
    draft.note(key, value, 'tolerable replaces it with each architecture, and so does archaware');
  else if (name === 'tolerationSeconds') draft.note(key, value, "archaware's tolerations have no time limit");
  else if (value !== 'Equal')
    draft.note(key, value, "archaware's tolerations use Equal, with the architecture as the value");
}

function carryArchitectures(value: unknown, draft: Draft): void {
  const key = 'supported_architectures';
  if (value === undefined) {
    draft.note(key, undefined, 'not set, so tolerable changes no pod; here every architecture is supported');
    return;
  }
  if (!Array.isArray(value)) {
    draft.refuse(key, value, 'a list of architectures, as ["amd64", "arm64"]');
    return;
  }
  if (value.length === 0) {
    draft.note(key, value, 'empty, so tolerable tolerates nothing; here every architecture is supported');
    return;
  }
  const names = value.flatMap((item: unknown, index) => draft.architecture(`${key}[${index}]`, item) ?? []);
  draft.set('architectures.schedulable', [...new Set(names)]);
}

function carryLogLevel(value: unknown, draft: Draft): void {
  const text = typeof value === 'string' ? value.toLowerCase() : '';
  const level = Object.hasOwn(LEVELS, text) ? LEVELS[text] : undefined;
  if (level !== undefined) draft.set('log.level', level);
  if (level === undefined)
    draft.note('log_level', value, 'no counterpart; log.level is one of debug, info, warn, error');
  else if (text === 'trace') draft.note('log_level', value, 'the most detailed level here is debug');
}
