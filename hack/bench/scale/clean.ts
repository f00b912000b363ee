// Measures the memory of `clean` on a big cluster. Usage: npm run bench -- clean [--pods N --nodes N --json FILE]
import { runToEnd } from '../process.ts';
import { judge, type Measured, row, runBenchmark } from '../result.ts';
import { startBigCluster } from './cluster.ts';
import type { Shape } from './objects.ts';

const GOAL_MIB = 256;

/** Runs the benchmark and prints its table. */
export async function benchClean(args: string[]): Promise<void> {
  await runBenchmark('clean', args, { pods: 100_000, nodes: 5_000 }, measureClean);
}

/**
 * Runs `clean --dry-run`, then `clean --yes`, on a cluster in which every pod and node has something of archaware. The owners of the
 * pods do not exist there, so `clean` ends with every pod in its table, which is where it uses most memory.
 */
export async function measureClean({ pods, nodes }: Pick<Shape, 'pods' | 'nodes'>): Promise<Measured> {
  const cluster = await startBigCluster({ pods, nodes, images: 1, repository: 'registry.invalid/bench' });
  try {
    const rows = [];
    const figures = [];
    for (const how of ['--dry-run', '--yes']) {
      process.stderr.write(`clean ${how}\n`);
      const words = ['clean', how, '--pods', 'restart', '--kubeconfig', cluster.kubeconfig];
      const { seconds, peakMiB, code, stderr } = await runToEnd(words);
      if (code !== 0) throw new Error(`clean ended with ${code}: ${stderr.slice(-500)}`);
      const what = `clean ${how}, ${pods} pods, ${nodes} nodes: most memory (after ${seconds.toFixed(0)} s)`;
      rows.push(row(what, `${peakMiB.toFixed(0)} MiB`, judge(peakMiB, { atMost: GOAL_MIB }, ' MiB')));
      figures.push({ how, pods, nodes, seconds, peakMiB, code });
    }
    const { nodes: cleaned } = await cluster.ask('patched');
    if (cleaned !== nodes) throw new Error(`clean wrote ${cleaned} of ${nodes} nodes`);
    return { rows, figures };
  } finally {
    await cluster.stop();
  }
}
