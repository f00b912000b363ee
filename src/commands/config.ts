import { stringify } from 'yaml';
import { readConfigFile } from '../config/file.ts';
import { jsonSchema } from '../config/json-schema.ts';
import { allKeys, valueAt } from '../config/keys.ts';
import { type Loaded, loadConfig } from '../config/load.ts';
import { ConfigurationError } from '../config/problems.ts';
import { type Context, EXIT } from './context.ts';
import { readRoutes } from './operator-files.ts';
import { printValue, table } from './output.ts';

/** Prints each key with its value and where the value comes from. Throws ConfigurationError as `validateConfig` does. */
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

/** Checks a file alone, without variables and flags. Throws ConfigurationError with every problem. */
export function validateConfig(name: string): number {
  checkRoutes(loadConfig({ file: readConfigFile(name), environment: {}, flags: {} }));
  process.stdout.write(`${name}: valid\n`);
  return EXIT.done;
}

/**
 * What the schema cannot tell of mirrors. The files that a configuration names are not read.
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
