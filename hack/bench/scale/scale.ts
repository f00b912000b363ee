// Measures the controller on big clusters that a process of its own simulates, because etcd and kwok are what limits on a small
// machine. Usage: npm run bench -- scale [--pods N[,N…] --nodes N[,N…] --images N --seconds N --heap MIB --json FILE]. Without
// --pods: four sizes, the picture of the curve, and the memory of `clean` and `report`. --heap: with --max-old-space-size, as the
// manifests set it.
import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { type ImageFixture, multiPlatform } from '../../../testimg/build.ts';
import { SCALE, scalePicture } from '../../pictures/scale.ts';
import { PICTURES } from '../../pictures.ts';
import { startLimitedRegistry } from '../limited-registry.ts';
import { measureReport } from '../report.ts';
import { describeMachine, type Measured, publish, type Result, writeDocument } from '../result.ts';
import { measureClean } from './clean.ts';
import { type Cost, measureSize, type Size } from './measure.ts';
import { growthRows, pointOf, rowsOf, sizingText } from './rows.ts';

const REPOSITORY = 'bench';
const SIZES = '1000,10000,30000,100000';
/** The pods of a node where no number of nodes is given. */
const PODS_OF_NODE = 20;
/** The kubelet's nodeStatusReportFrequency: how often it writes a status in which nothing has changed. */
const HEARTBEAT_SECONDS = 300;
/** Status updates in a second for each pod: 200 at 100,000 pods. */
const UPDATES_PER_POD = 1 / 500;
const REPORT = { pods: 10_000, images: 500 };

/** Runs the benchmark and prints its table. */
export async function benchScale(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      pods: { type: 'string' },
      nodes: { type: 'string', default: '' },
      images: { type: 'string', default: '500' },
      seconds: { type: 'string', default: '20' },
      heap: { type: 'string', default: '0' },
      json: { type: 'string' },
    },
  });
  const machine = await describeMachine();
  const nodes = values.nodes.split(',');
  const common = { images: Number(values.images), seconds: Number(values.seconds), heapMiB: Number(values.heap) };
  const sizes = (values.pods ?? SIZES)
    .split(',')
    .map((pods, index) => ({ ...common, ...loadOf(Number(pods), Number(nodes[index])) }));
  const costs = await measureSizes(sizes);
  const isWhole = values.pods === undefined;
  const largest = costs.at(-1);
  const others = isWhole && largest !== undefined ? await measureOthers(largest.size) : [];
  const result: Result = {
    name: 'scale',
    at: new Date().toISOString(),
    machine,
    rows: [
      ...(isWhole && largest !== undefined ? rowsOf(largest) : costs.flatMap(rowsOf)),
      ...growthRows(costs),
      ...others.flatMap(({ rows }) => rows),
    ],
    figures: { costs, others: others.map(({ figures }) => figures) },
  };
  await publish(result, values.json);
  if (isWhole && process.env.WRITE_TABLE) await writeCurve(costs);
}

function loadOf(pods: number, nodes: number): Pick<Size, 'pods' | 'nodes' | 'heartbeats' | 'updates'> {
  const count = nodes || Math.ceil(pods / PODS_OF_NODE);
  return { pods, nodes: count, heartbeats: count / HEARTBEAT_SECONDS, updates: pods * UPDATES_PER_POD };
}

async function measureSizes(sizes: readonly Size[]): Promise<Cost[]> {
  const registry = await startLimitedRegistry({
    images: images(Math.max(...sizes.map((size) => size.images))),
    repository: REPOSITORY,
    delayMs: 0,
    perWindow: Number.POSITIVE_INFINITY,
    windowMs: 1_000,
  });
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

async function measureOthers({ pods, nodes }: Size): Promise<Measured[]> {
  return [await measureClean(pods, nodes), await measureReport(REPORT.pods, REPORT.images)];
}

/** Writes the picture, the figures from which hack/pictures.ts draws it, and the formulas into docs/development/performance.md. */
async function writeCurve(costs: readonly Cost[]): Promise<void> {
  const points = costs.map(pointOf);
  await writeFile(SCALE, `${JSON.stringify(points, undefined, 2)}\n`);
  await writeFile(`${PICTURES}scale.svg`, scalePicture(points));
  await writeDocument('sizing', sizingText(points));
}

function images(count: number): Map<string, ImageFixture> {
  const platforms = ['amd64', 'arm64'].map((architecture) => ({ os: 'linux', architecture }));
  return new Map(
    Array.from({ length: count }, (_, index) => {
      const tag = `t${String(index).padStart(4, '0')}`;
      return [tag, multiPlatform(platforms, { note: tag })];
    }),
  );
}
