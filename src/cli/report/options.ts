import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import * as z from 'zod';
import type { Price, Prices } from '../../analysis/readiness/price.ts';
import type { Grouping } from '../../analysis/readiness/tally.ts';
import { ConfigurationError } from '../../config/shown-problems.ts';
import { codeOf, messageOf } from '../../kit/errors.ts';
import { ARCHITECTURE_EXPECTED, didYouMean, readArchitecture } from '../../kit/platform.ts';
import type { Invocation } from '../command.ts';
import { readLookupTimeout, readNamespaceFlag, readSelectorFlag } from '../flags.ts';

/** What `report` was asked, apart from its configuration. */
export type ReportOptions = ReturnType<typeof reportOptions>;

/** Reads the flags of `report`. Throws ConfigurationError. */
export function reportOptions(invocation: Invocation) {
  const { text, texts, isSet, form } = invocation;
  const targets = readArchitectures('--to', texts('to'));
  const namespace = readNamespaceFlag('report', invocation);
  const failUnder = readPercentage(text('fail-under'));
  if (failUnder !== undefined && targets?.length !== 1) {
    throw new ConfigurationError([
      `--fail-under: got ${targets === undefined ? 'no --to' : `--to ${targets.join(',')}`}, expected --to with the one architecture that it is about`,
    ]);
  }
  return {
    form,
    /** Undefined: every architecture that could be a target. */
    targets,
    /** Empty: the cluster. */
    files: texts('file'),
    /** Undefined: all namespaces. */
    namespace,
    selector: readSelectorFlag(text('selector')),
    /** As it was given; empty: none. */
    selectorText: text('selector') ?? '',
    grouping: readGrouping(text('group-by')),
    newer: isSet('newer'),
    failUnder,
    lookupTimeoutMs: readLookupTimeout(invocation),
    /** Whether the text is for the people of one namespace. */
    forTeam: readForTeam(invocation, namespace),
    /** Undefined: no price was given. */
    prices: readPrices(invocation, targets),
  };
}

/** Returns what `explain namespace/NAME` asks: the report for the people of a namespace. */
export function teamReport(invocation: Invocation, namespace: string): ReportOptions {
  // `explain` has none of the other flags of `report`.
  return { ...reportOptions(invocation), namespace, forTeam: true };
}

/** Reads a flag that may be given several times, each with architectures separated by commas; undefined if it is not given. */
export function readArchitectures(flag: string, values: readonly string[]): string[] | undefined {
  if (values.length === 0) return undefined;
  const parts = values.flatMap((value) => value.split(','));
  const problems = parts
    .filter((part) => readArchitecture(part) === undefined)
    .map((part) => `${flag}: got ${JSON.stringify(part)}, expected ${ARCHITECTURE_EXPECTED}${didYouMean(part)}`);
  if (problems.length > 0) throw new ConfigurationError(problems);
  return [...new Set(parts.flatMap((part) => readArchitecture(part) ?? []))].sort();
}

function readForTeam({ isSet, form }: Invocation, namespace: string | undefined): boolean {
  if (!isSet('for-team')) return false;
  const got = namespace === undefined ? 'no --namespace' : form === 'html' ? '--output html' : undefined;
  if (got === undefined) return true;
  throw new ConfigurationError([`--for-team: got ${got}, expected --namespace NAME, and --output table, json or yaml`]);
}

function readPercentage(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text.replace(/(?<!\s)\s*%$/, ''));
  if (text.trim() === '' || !(value >= 0 && value <= 100)) {
    throw new ConfigurationError([`--fail-under: got ${JSON.stringify(text)}, expected a percentage from 0 to 100`]);
  }
  return value;
}

function readGrouping(text: string | undefined): Grouping | undefined {
  if (text === undefined) return undefined;
  if (text === 'namespace' || text === 'registry') return { by: text };
  const key = /^label:(.+)$/.exec(text)?.[1];
  if (key !== undefined) return { by: 'label', key };
  throw new ConfigurationError([
    `--group-by: got ${JSON.stringify(text)}, expected one of namespace, label:KEY, registry`,
  ]);
}

/** A price file: prices of nodes, by the value of one of their labels. */
const PRICE_FILE = z.strictObject({
  label: z.string().min(1),
  prices: z.record(
    z.string(),
    z.strictObject({ cpu: z.number().nonnegative(), memory: z.number().nonnegative().optional() }),
  ),
});

/** Reads the flags with prices; undefined if there is none. Throws ConfigurationError that names flag, value and what is allowed. */
function readPrices(
  { text, texts }: Pick<Invocation, 'text' | 'texts'>,
  targets: readonly string[] = [],
): Prices | undefined {
  const problems: string[] = [];
  const cpu = amounts('--price', 'a core', texts('price'), problems);
  const memory = amounts('--price-memory', 'a gibibyte of memory', texts('price-memory'), problems);
  for (const architecture of memory.keys()) {
    if (!cpu.has(architecture))
      problems.push(`--price-memory: got ${architecture} without --price ${architecture}=AMOUNT, expected both`);
  }
  const file = text('price-file');
  for (const target of targets) {
    if (cpu.size > 0 && file === undefined && !cpu.has(target))
      problems.push(`--price: got no amount for the target ${target}, expected ${target}=AMOUNT as well`);
  }
  const byLabel = file === undefined ? {} : { byLabel: readPriceFile(file, problems) };
  if (problems.length > 0) throw new ConfigurationError(problems);
  if (cpu.size === 0 && file === undefined) return undefined;
  const byArchitecture = new Map(
    [...cpu].map(([name, amount]): [string, Price] => [name, { cpu: amount, memory: memory.get(name) ?? 0 }]),
  );
  return { byArchitecture, ...byLabel };
}

/** Reads `amd64=0.0408,arm64=0.0321`, given once or several times. */
function amounts(flag: string, of: string, values: readonly string[], problems: string[]): Map<string, number> {
  const found = new Map<string, number>();
  for (const part of values.flatMap((value) => value.split(','))) {
    const [, name = '', amount = ''] = /^([^=]*)=([0-9]+(?:\.[0-9]+)?|\.[0-9]+)$/.exec(part.trim()) ?? [];
    const architecture = readArchitecture(name);
    const got = `${flag}: got ${JSON.stringify(part)}, expected ARCH=AMOUNT for ${of} and an hour, such as arm64=0.0321`;
    if (amount === '') problems.push(got);
    else if (architecture === undefined)
      problems.push(`${flag}: got ${JSON.stringify(name)}, expected ${ARCHITECTURE_EXPECTED}${didYouMean(name)}`);
    else if (found.has(architecture)) problems.push(`${flag}: got two amounts for ${architecture}, expected one`);
    else found.set(architecture, Number(amount));
  }
  return found;
}

function readPriceFile(file: string, problems: string[]): Prices['byLabel'] & object {
  const prices = new Map<string, Price>();
  try {
    const { label, prices: given } = PRICE_FILE.parse(parse(readFileSync(file, 'utf8')));
    for (const [value, { cpu, memory = 0 }] of Object.entries(given)) prices.set(value, { cpu, memory });
    return { label, prices };
  } catch (error) {
    const why =
      error instanceof z.ZodError
        ? error.issues.map(({ path, message }) => `${path.join('.') || 'the file'}: ${message}`).join('; ')
        : codeOf(error) || messageOf(error).split('\n')[0];
    problems.push(
      `--price-file ${file}: ${why}; expected YAML such as {label: node.kubernetes.io/instance-type, prices: {m7g.large: {cpu: 0.0321, memory: 0.0036}}}`,
    );
    return { label: '', prices };
  }
}
