/** What one fault did. */
export type Row = {
  readonly fault: string;
  readonly on: 'real' | 'simulated';
  /** What the dice chose, in words. */
  readonly chosen: string;
  /** How many pods the load had at the end. */
  readonly pods: number;
  readonly lastedMs: number;
  /** From the end of the fault until Kubernetes' own controllers had created every pod. */
  readonly thereMs: number;
  /** From the end of the fault until all was as the rules say. */
  readonly rightMs: number;
};

const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;
const HEADER = [
  'fault',
  'what the seed chose',
  'control plane',
  'pods',
  'lasted',
  'all pods there after',
  'right again after',
];

/** The rows in Markdown, sorted by name, because the order of a run is one of the seed's choices. */
export function tableOf(rows: readonly Row[]): string {
  const lines = [...rows]
    .sort((one, other) => one.fault.localeCompare(other.fault))
    .map(({ fault, chosen, on, pods, lastedMs, thereMs, rightMs }) => [
      fault,
      chosen,
      on,
      String(pods),
      seconds(lastedMs),
      seconds(thereMs),
      seconds(rightMs),
    ]);
  return [HEADER, HEADER.map(() => '---'), ...lines].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}
