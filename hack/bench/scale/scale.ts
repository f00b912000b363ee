// Measures the controller on big clusters that a process of its own simulates, because etcd and kwok are what limits on a small
// machine. Usage: npm run bench -- scale [--pods N --nodes N --images N --seconds N --heap MIB --json FILE]. Without --pods: four
// sizes, the picture of the curve, and the memory of `clean` and `report`. --heap: with --max-old-space-size, as the manifests set it.
import { writeFile } from 'node:fs/promises';
import { startTestRegistry } from '../../../test/simulator/registry/registry.ts';
import { SCALE, scalePicture } from '../../pictures/scale.ts';
import { PICTURES } from '../../pictures.ts';
import { measureReport, REPORT } from '../report.ts';
import { type Measured, runBenchmark, together, writeDocument } from '../result.ts';
import { measureClean } from './clean.ts';
import { type Cost, measureSize, type Size } from './measure.ts';
import { growthRows, pointOf, rowsOf, sizingText } from './rows.ts';

const REPOSITORY = 'bench';
const SIZES = [1_000, 10_000, 30_000, 100_000];
const DEFAULTS = { pods: 0, nodes: 0, images: 500, seconds: 20, heap: 0 };
/** The pods of a node where no number of nodes is given. */
const PODS_OF_NODE = 20;
/** The kubelet's nodeStatusReportFrequency: how often it writes a status in which nothing has changed. */
const HEARTBEAT_SECONDS = 300;
/** Status updates in a second for each pod: 200 at 100,000 pods. */
const UPDATES_PER_POD = 1 / 500;

/** Runs the benchmark and prints its table. */
export async function benchScale(args: string[]): Promise<void> {
  await runBenchmark('scale', args, DEFAULTS, async (given) => {
    if (given.pods > 0) {
      const [cost] = await measureSizes([sizeOf(given)]);
      return { rows: cost === undefined ? [] : rowsOf(cost), figures: cost };
    }
    return measureAll(SIZES.map((pods) => sizeOf({ ...given, pods })));
  });
}

async function measureAll(sizes: readonly Size[]): Promise<Measured> {
  const costs = await measureSizes(sizes);
  if (process.env.WRITE_TABLE) await writeCurve(costs);
  const [largest] = costs.slice(-1);
  if (largest === undefined) throw new Error('no size was measured');
  return together({
    costs: { rows: [...rowsOf(largest), ...growthRows(costs)], figures: costs },
    clean: await measureClean(largest.size),
    report: await measureReport(REPORT),
  });
}

function sizeOf({ pods, nodes, images, seconds, heap: heapMiB }: typeof DEFAULTS): Size {
  const count = nodes || Math.ceil(pods / PODS_OF_NODE);
  const load = { heartbeats: count / HEARTBEAT_SECONDS, updates: pods * UPDATES_PER_POD };
  return { pods, nodes: count, images, seconds, heapMiB, ...load };
}

async function measureSizes(sizes: readonly Size[]): Promise<Cost[]> {
  const registry = await startTestRegistry();
  for (let index = 0; index < Math.max(...sizes.map(({ images }) => images)); index += 1) {
    const tag = `t${String(index).padStart(4, '0')}`;
    registry.put(REPOSITORY, tag, ['amd64', 'arm64'], { note: tag });
  }
  try {
    const costs: Cost[] = [];
    for (const size of sizes) {
      const say = (line: string) => process.stderr.write(`${size.pods} pods: ${line}\n`);
      costs.push(await measureSize(size, `${registry.host}/${REPOSITORY}`, say));
    }
    return costs;
  } finally {
    await registry.stop();
  }
}

/** Writes the picture, the figures from which hack/pictures.ts draws it, and the formulas into docs/development/performance.md. */
async function writeCurve(costs: readonly Cost[]): Promise<void> {
  const points = costs.map(pointOf);
  await writeFile(SCALE, `${JSON.stringify(points, undefined, 2)}\n`);
  await writeFile(`${PICTURES}scale.svg`, scalePicture(points));
  await writeDocument('sizing', sizingText(points));
}
