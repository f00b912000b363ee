import type { Prices } from '../../analysis/readiness/price.ts';
import type { Grouping } from '../../analysis/readiness/tally.ts';
import { ConfigurationError } from '../../config/shown-problems.ts';
import type { Selector } from '../../kit/label-syntax.ts';
import { ARCHITECTURE_EXPECTED, didYouMean, readArchitecture } from '../../kit/platform.ts';
import type { Invocation } from '../command.ts';
import { readLookupTimeout, readNamespaceFlag, readSelectorFlag } from '../flags.ts';
import { readPrices } from './prices.ts';

/** What `report` was asked, apart from its configuration. */
export type ReportOptions = {
  readonly form: string;
  /** Undefined: every architecture that could be a target. */
  readonly targets: readonly string[] | undefined;
  /** Empty: the cluster. */
  readonly files: readonly string[];
  /** Undefined: all namespaces. */
  readonly namespace: string | undefined;
  readonly selector: Selector;
  /** As it was given; empty: none. */
  readonly selectorText: string;
  readonly grouping: Grouping | undefined;
  readonly newer: boolean;
  /** From 0 to 100. */
  readonly failUnder: number | undefined;
  readonly lookupTimeoutMs: number;
  /** Whether the text is for the people of one namespace. */
  readonly forTeam: boolean;
  /** Undefined: no price was given. */
  readonly prices: Prices | undefined;
};

/** Reads the flags of `report`. Throws ConfigurationError. */
export function reportOptions(invocation: Invocation): ReportOptions {
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
    targets,
    files: texts('file'),
    namespace,
    selector: readSelectorFlag(text('selector')),
    selectorText: text('selector') ?? '',
    grouping: readGrouping(text('group-by')),
    newer: isSet('newer'),
    failUnder,
    lookupTimeoutMs: readLookupTimeout(invocation),
    forTeam: readForTeam(invocation, namespace),
    prices: readPrices(invocation, targets),
  };
}

/** Returns what `explain namespace/NAME` asks: the report for the people of a namespace. */
export function teamReport(invocation: Pick<Invocation, 'text' | 'form'>, namespace: string): ReportOptions {
  return {
    form: invocation.form,
    targets: undefined,
    files: [],
    namespace,
    selector: readSelectorFlag(),
    selectorText: '',
    grouping: undefined,
    newer: false,
    failUnder: undefined,
    lookupTimeoutMs: readLookupTimeout(invocation),
    forTeam: true,
    prices: undefined,
  };
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
