import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { binaries } from '../../cluster/spawn.ts';
import type { Row } from '../result.ts';
import type { World } from '../world.ts';
import { MTO, type MtoFigures, measureMto } from './mto.ts';
import { measureNoe, NOE, type NoeFigures } from './noe.ts';

/** The figures of other programs, by the end of the row that they belong to. The star: from notes (docs/development/performance.md), not this run. */
const NOTES: readonly (readonly [string, string])[] = [
  ['pods at once, warm', 'MTO 79 pods/s*'],
  ['most memory in the bursts (VmHWM)', 'MTO 135 MB*'],
  ['most reviews/s, warm', 'Noe 20*'],
  ['200 reviews/s, warm, p50', 'Noe 44 s*'],
  ['gated to released at 20 pods/s, warm, p50', 'MTO 60 ms*'],
];

/** What was measured of other programs. MTO: multiarch-tuning-operator. */
export type Peers = { readonly noe: NoeFigures | undefined; readonly mto: MtoFigures | undefined };

/** Measures the other programs that hack/bench/build-peers.sh has built. */
export async function measurePeers(world: World, pods: number, seconds: number): Promise<Peers> {
  return {
    noe: await measured('Noe', NOE, () => measureNoe(world.cluster)),
    mto: await measured('MTO', MTO, () => measureMto(world, pods, seconds)),
  };
}

/** Undefined without the binary. A program of others that does not work must not cost the figures of the whole run. */
async function measured<T>(name: string, binary: string, measure: () => Promise<T>): Promise<T | undefined> {
  if (!existsSync(join(binaries(), binary))) return undefined;
  process.stderr.write(`${name}\n`);
  try {
    return await measure();
  } catch (error) {
    process.stderr.write(`${name} is not measured: ${error instanceof Error ? error.message : String(error)}\n`);
    return undefined;
  }
}

/** Adds the figures of other programs to the rows: the measured ones, and those of notes where a program was not measured. */
export function withPeers(rows: readonly Row[], { noe, mto }: Peers): Row[] {
  const cells = [...(noe ? cellsOfNoe(noe) : []), ...(mto ? cellsOfMto(mto) : []), ...NOTES];
  const peersOf = (what: string) => cells.find(([part]) => what.endsWith(part))?.[1] ?? '';
  return rows.map((each) => ({ ...each, peers: peersOf(each.what) }));
}

function cellsOfNoe({ perSecond, p50Ms, reviews, aloneMs, memory }: NoeFigures): [string, string][] {
  const waiting = `${p50Ms.toFixed(1)} ms (${reviews} reviews; at 5 reviews/s ${aloneMs.toFixed(1)} ms)`;
  return [
    ['most reviews/s, warm', `Noe ${perSecond.toFixed(0)}, ${memory.toFixed(0)} MiB`],
    ['200 reviews/s, warm, p50', `Noe ${waiting}`],
  ];
}

function cellsOfMto({ perSecond, barePerSecond, cpuOfPod, p50Ms, p99Ms, peak }: MtoFigures): [string, string][] {
  const released = `${perSecond.toFixed(0)} pods/s (gated; a bare loop releases ${barePerSecond.toFixed(0)})`;
  return [
    ['pods at once, warm', `MTO ${released}`],
    ['CPU of a placed pod, warm', `MTO ${cpuOfPod.toFixed(2)} ms`],
    ['most memory in the bursts (VmHWM)', `MTO ${peak.toFixed(0)} MiB`],
    ['gated to released at 20 pods/s, warm, p50', `MTO ${p50Ms.toFixed(1)} ms (p99 ${p99Ms.toFixed(1)} ms)`],
  ];
}
