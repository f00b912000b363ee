import type { Report } from '../../analysis/readiness/report.ts';
import { valueText } from '../output.ts';
import { type HtmlOptions, renderHtml } from './html/html.ts';
import { reportTable } from './table.ts';
import { type TeamOptions, teamText } from './team.ts';

export type RenderOptions = HtmlOptions & {
  /** Whether `--to` named the targets: then each gets its details. */
  readonly namedTargets: boolean;
  readonly columns: number | undefined;
  /** Set with `--for-team`. */
  readonly team?: TeamOptions | undefined;
};

/** Returns the report in the form that `--output` names. */
export function renderReport(report: Report, form: string, options: RenderOptions): string {
  switch (form) {
    case 'json':
    case 'yaml':
      return valueText(report, form);
    case 'html':
      return renderHtml(report, options);
    default:
      if (options.team !== undefined) return teamText(report, options.team, options.columns);
      return reportTable(report, options.columns, options.namedTargets);
  }
}
