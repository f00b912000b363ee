import { readFileSync } from 'node:fs';
import { type Context, EXIT, type Surroundings } from '../../app/surroundings.ts';
import { parseConfig, STANDARD_INPUT } from '../../config/config-file.ts';
import { loadConfig } from '../../config/load.ts';
import { ConfigurationError, shown } from '../../config/shown-problems.ts';
import { codeOf, messageOf } from '../../kit/errors.ts';
import { valueText } from '../output.ts';
import { checkRoutes } from './config.ts';
import { type Conversion, noteLine, renderConversion } from './convert/conversion.ts';
import { convertMto } from './convert/mto.ts';
import { convertNoe } from './convert/noe.ts';
import { convertTolerable } from './convert/tolerable.ts';

const SYSTEMS: Readonly<Record<string, (file: string, text: string) => Conversion>> = {
  tolerable: convertTolerable,
  noe: convertNoe,
  mto: convertMto,
};

/**
 * Prints another system's settings as a configuration file of archaware. Settings without a counterpart are listed in comments at
 * its end, and on stderr. Throws {@link ConfigurationError} if the file cannot be read or is malformed, or if `config validate`
 * would refuse the result.
 */
export async function convertConfig(
  from: string | undefined,
  operands: readonly string[],
  output: Context['output'],
  { print, note, readInput }: Surroundings,
): Promise<number> {
  const convert = from !== undefined && Object.hasOwn(SYSTEMS, from) ? SYSTEMS[from] : undefined;
  if (convert === undefined) {
    const got = from === undefined ? 'nothing' : shown(from);
    throw new ConfigurationError([`--from: got ${got}, expected one of ${Object.keys(SYSTEMS).join(', ')}`]);
  }
  const [name = '', ...others] = operands;
  if (name === '' || others.length > 0) throw new ConfigurationError(['config convert: expected one FILE']);
  const file = name === STANDARD_INPUT ? 'standard input' : name;
  const given = await readText(name, readInput);
  if (given.trim() === '') throw new ConfigurationError([`${file} is empty, expected the settings of ${from}`]);
  const conversion = convert(file, given);
  const text = renderConversion(conversion);
  checkRoutes(loadConfig({ file: parseConfig(`${file}, converted`, text), environment: {}, flags: {} }));
  print(output === 'json' ? valueText(conversion, output) : text);
  for (const missing of conversion.notes) note(`${file}: ${noteLine(missing)}`);
  return EXIT.done;
}

async function readText(name: string, readInput: () => Promise<string>): Promise<string> {
  if (name === STANDARD_INPUT) return readInput();
  try {
    return readFileSync(name, 'utf8');
  } catch (error) {
    throw new ConfigurationError([`${name} cannot be read (${codeOf(error) || messageOf(error)})`]);
  }
}
