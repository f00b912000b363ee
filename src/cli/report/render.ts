import type { Report } from '../../analysis/readiness/report.ts';
import { valueText } from '../output.ts';
import { type HtmlOptions, renderHtml } from './html/html.ts';
import { reportTable } from './table.ts';

export type RenderOptions = HtmlOptions & {
  /** Whether `--to` named the targets: then each gets its details. */
  readonly namedTargets: boolean;
  readonly columns: number | undefined;
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
      return reportTable(report, options.columns, options.namedTargets);
  }
}
