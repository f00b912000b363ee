import { printable } from '../../kit/printable.ts';
import type { Report } from '../../placement/readiness/report.ts';

/** The longest cell that spreadsheets take. */
const LONGEST = 32_000;

/** Returns the workloads as CSV (RFC 4180), one row each, with the cores and bytes that all replicas request. */
export function reportCsv({ targets, workloads }: Report): string {
  const header = ['namespace', 'kind', 'name', 'replicas', 'cpu', 'memory', 'images'];
  const rows = workloads.map(({ namespace, kind, name, replicas, cpu, memory, images, verdicts }) => [
    ...[namespace, kind, name].map(csvText),
    ...[replicas, cpu, memory].map(String),
    csvText(images.join(' ')),
    ...targets.flatMap((target) => {
      const { state = '', reasons = [] } = verdicts[target] ?? {};
      return [csvText(state), csvText(reasons.map(({ text }) => text).join('; '))];
    }),
  ]);
  const titles = [...header, ...targets.flatMap((target) => [target, `${target} why`])].map(csvText);
  return [titles, ...rows].map((row) => `${row.join(',')}\r\n`).join('');
}

/**
 * Returns a text as a cell. Spreadsheets compute what begins like a formula (OWASP, "CSV Injection"): such a text gets an
 * apostrophe in front, also after spaces, which some programs skip.
 */
export function csvText(text: string): string {
  const isFormula = /^\s*[=+\-@\t\r＝＋－＠]/u.test(text);
  const safe = printable(isFormula ? `'${text}` : text, LONGEST);
  return /[",;\s']/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
