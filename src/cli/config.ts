import { statSync } from 'node:fs';
import { stringify } from 'yaml';
import { type Context, EXIT } from '../app/context.ts';
import { readOrRefuse } from '../app/label-rules/label-rules.ts';
import { readRoutes } from '../app/registries/operator-files.ts';
import { readConfigFile } from '../config/file.ts';
import { jsonSchema } from '../config/json-schema.ts';
import { allKeys, valueAt } from '../config/keys.ts';
import { type Loaded, loadConfig } from '../config/load.ts';
import { ConfigurationError } from '../config/problems.ts';
import { printValue, table } from './output.ts';

/** Prints each key with its value and the source of the value. Throws ConfigurationError as `validateConfig` does. */
export function printConfig({ config, sources, output }: Pick<Context, 'config' | 'sources' | 'output'>): number {
  checkRoutes({ config, sources });
  const rows = allKeys().map(({ path }) => ({
    key: path,
    value: valueAt(config, path),
    source: sources.get(path) ?? 'default',
  }));
  if (output === 'table') {
    const text = rows.map(({ key, value, source }) => [key, JSON.stringify(value), source]);
    process.stdout.write(table(['KEY', 'VALUE', 'SOURCE'], text));
  } else printValue(rows, output);
  return EXIT.done;
}

/** Prints the JSON Schema of the configuration file. */
export function printSchema({ output }: Pick<Context, 'output'>): number {
  const json = jsonSchema();
  process.stdout.write(output === 'yaml' ? stringify(json) : `${JSON.stringify(json, null, 2)}\n`);
  return EXIT.done;
}

/**
 * Checks a file (`-`: standard input), without environment variables and flags, and the label rules that it names, if they are on
 * this machine. Or checks a directory of label rules. Throws a ConfigurationError with every problem.
 */
export async function validateConfig(name: string): Promise<number> {
  let shownAs = name;
  if (isDirectory(name)) await checkLabelRules(name, '');
  else {
    const file = readConfigFile(name);
    shownAs = file.name;
    if (file.note !== undefined) process.stderr.write(`${shownAs}: ${file.note}\n`);
    const loaded = loadConfig({ file, environment: {}, flags: {} });
    checkRoutes(loaded);
    const { directory } = loaded.config.nodeLabels;
    if (isDirectory(directory)) await checkLabelRules(directory, 'nodeLabels.directory: ');
    else if (directory !== '') process.stderr.write(`nodeLabels.directory: ${directory} is not here; not checked\n`);
  }
  process.stdout.write(`${shownAs}: valid\n`);
  return EXIT.done;
}

/**
 * Checks what the schema cannot check about mirrors. The files of registries and credentials are not read.
 *
 * @throws ConfigurationError
 */
export function checkRoutes({ config, sources }: Loaded): void {
  try {
    readRoutes(config, () => undefined);
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    const source = sources.get('registries.mirrors');
    throw new ConfigurationError(error.problems.map((problem) => `${problem} (${source})`));
  }
}

async function checkLabelRules(directory: string, key: string): Promise<void> {
  const { problems } = await readOrRefuse(directory);
  if (problems.length > 0) throw new ConfigurationError(problems.map((problem) => `${key}${problem}`));
}

function isDirectory(path: string): boolean {
  return path !== '' && (statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false);
}
