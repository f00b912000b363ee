import { readdirSync, statSync } from 'node:fs';
import { readOrRefuse } from '../../app/follow-label-rules.ts';
import { readRoutes } from '../../app/registries/operator-files.ts';
import { type Context, EXIT, type Surroundings } from '../../app/surroundings.ts';
import { readConfigOrInput } from '../../config/config-file.ts';
import { jsonSchema } from '../../config/json-schema.ts';
import { allKeys, isWithin, valueAt } from '../../config/keys.ts';
import { type Loaded, loadConfig, unknownKey } from '../../config/load.ts';
import { ConfigurationError } from '../../config/shown-problems.ts';
import { inputName } from '../manifest-objects.ts';
import { table, valueText } from '../output.ts';

/**
 * Prints keys with their values and the sources of the values: those that are named, alone or by their group (`taints`), or all; with
 * `changed` only those that are not the default. Throws ConfigurationError for a key that does not exist, and as `validateConfig` does.
 */
export function printConfig(
  { config, sources, output, print }: Pick<Context, 'config' | 'sources' | 'output' | 'print'>,
  named: readonly string[] = [],
  changed = false,
): number {
  checkRoutes({ config, sources });
  const keys = allKeys();
  const isNamed = (path: string) => named.length === 0 || named.some((name) => isWithin(name, path));
  const unknown = named.filter((name) => !keys.some(({ path }) => isWithin(name, path)));
  if (unknown.length > 0) throw new ConfigurationError(unknown.map((name) => unknownKey(name, keys)));
  const chosen = keys.filter(
    ({ path }) => isNamed(path) && !(changed && (sources.get(path) ?? 'default') === 'default'),
  );
  const rows = chosen.map(({ path }) => ({
    key: path,
    value: valueAt(config, path),
    source: sources.get(path) ?? 'default',
  }));
  if (output === 'table') {
    const text = rows.map(({ key, value, source }) => [key, JSON.stringify(value), source]);
    print(table(['KEY', 'VALUE', 'SOURCE'], text));
  } else print(valueText(rows, output));
  return EXIT.done;
}

/** Prints the JSON Schema of the configuration file. */
export function printSchema({ output, print }: Pick<Context, 'output' | 'print'>): number {
  print(valueText(jsonSchema(), output === 'yaml' ? 'yaml' : 'json'));
  return EXIT.done;
}

/**
 * Checks a file (`-`: standard input), without environment variables and flags, and the label rules that it names, if they are on
 * this machine. Or checks a directory of label rules. Throws a ConfigurationError with every problem; in a machine-readable form the
 * problems are printed too.
 */
export async function validateConfig(
  name: string,
  output: Context['output'],
  surroundings: Surroundings,
): Promise<number> {
  const { print } = surroundings;
  const file = inputName(name);
  try {
    await check(name, surroundings);
  } catch (error) {
    if (error instanceof ConfigurationError && output !== 'table') {
      print(valueText({ file, valid: false, problems: error.problems }, output));
    }
    throw error;
  }
  print(output === 'table' ? `${file}: valid\n` : valueText({ file, valid: true, problems: [] }, output));
  return EXIT.done;
}

async function check(name: string, { note, readInput }: Surroundings): Promise<void> {
  if (isDirectory(name)) {
    if (readdirSync(name).every((entry) => entry.startsWith('.'))) {
      throw new ConfigurationError([`${name} is empty, expected files with label rules`]);
    }
    await checkLabelRules(name, '');
  } else {
    const file = await readConfigOrInput(name, readInput);
    if (file.isEmpty) throw new ConfigurationError([`${file.name} is empty, expected a configuration`]);
    if (file.note !== undefined) note(`${file.name}: ${file.note}`);
    const loaded = loadConfig({ file, environment: {}, flags: {} });
    checkRoutes(loaded);
    const { directory } = loaded.config.nodeLabels;
    if (isDirectory(directory)) await checkLabelRules(directory, 'nodeLabels.directory: ');
    else if (directory !== '') note(`nodeLabels.directory: ${directory} does not exist here; not checked`);
  }
}

/**
 * Checks what the schema cannot check about mirrors. The files of registries and credentials are not read.
 *
 * @throws ConfigurationError
 */
function checkRoutes({ config, sources }: Loaded): void {
  try {
    readRoutes(config, {});
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
