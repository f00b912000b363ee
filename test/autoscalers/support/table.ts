import { writeBetween } from '../../../hack/write-between.ts';

const DOCUMENT = new URL('../README.md', import.meta.url);

/** A case as the README shows it. */
export type Row = {
  readonly mode: string;
  readonly pools: string;
  readonly pods: string;
  /** `3 s c-2x-arm64, 4 s c-1x-amd64`. */
  readonly started: string;
  readonly placed: string;
};

const HEADER = ['mode', 'NodePools', 'pods', 'nodes started', 'what became of the pods'];

/** The table in Markdown. */
export function tableOf(rows: readonly Row[]): string {
  const lines = rows.map(({ mode, pools, pods, started, placed }) => [mode, pools, pods, started || 'none', placed]);
  const all = [HEADER, HEADER.map(() => '---'), ...lines];
  return all.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

/** Puts the table between the markers of the document. Throws where they are not there. */
export const writeTable = (rows: readonly Row[]): Promise<void> => writeBetween(DOCUMENT, 'cases', tableOf(rows));
