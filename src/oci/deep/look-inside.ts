import { fieldOf, isObject, parseObject } from '../../kit/json.ts';
import type { Platform } from '../../kit/platform.ts';
import { printableAscii } from '../../kit/printable.ts';
import type { Access } from '../credentials/keyring.ts';
import { ImageError } from '../errors.ts';
import { withDeadline } from '../http/transport.ts';
import type { QueriedTarget, Sent } from '../lookup/request.ts';
import { MAX_CONFIG, parseImageConfig, platformKey, readPlatform } from '../manifest.ts';
import { digestName, isDigest, parseReference } from '../reference.ts';
import type { ReachParts, TagResolver } from '../resolver.ts';
import {
  type Finding,
  findProgram,
  type ImageProcess,
  type Override,
  processOf,
  readImageProcess,
  settleFor,
} from './find-program.ts';
import { type Allowance, createStep, LayerProblem, PER_PLATFORM, type Reading, readLayer } from './layer-reader.ts';
import { createLayerTree } from './layer-tree.ts';

/** What was found in the layers of one platform. */
export type Inside = Finding & {
  readonly platform: Platform;
  /** Bytes of layers that were downloaded, compressed as they are. */
  readonly bytesRead: number;
};

type LookInsideTask = {
  /** The digest that the name resolved to, so that a tag that moves meanwhile does no harm. */
  readonly digest: string | undefined;
  /** The platforms that count, of those that the image has. */
  readonly platforms: readonly Platform[];
  /** What the containers change; `[{}]`: the image as it is. */
  readonly overrides: readonly Override[];
  readonly access: Access;
  readonly signal: AbortSignal;
};

type LayerDescriptor = {
  readonly digest: string;
  /** Why it cannot be read; absent if it can be. */
  readonly unread?: string;
};

/** More than any container runtime can stack. */
const MAX_LAYERS = 512;
/** Milliseconds for one platform of an image. */
const PLATFORM_MS = 180_000;
/** The entries of an index, and of those within it, that are read. */
const MAX_CHILDREN = 32;

/**
 * Reads what an image starts on each of its platforms out of its layers. Nothing is written to a file. The results are those
 * of each platform for each of the overrides, in the same order.
 *
 * @throws ImageError, or the signal's reason
 */
export async function lookIntoLayers(
  { reach }: Pick<TagResolver, 'reach'>,
  image: string,
  task: LookInsideTask,
): Promise<readonly (readonly Inside[])[]> {
  const { digest, access, signal } = task;
  const name = digest === undefined ? image : digestName(parseReference(image), digest);
  return reach(name, access, signal, (asked, parts) => lookInside({ ...parts, ...task, asked }));
}

/** One look into an image: where it is asked for, and what for. */
type InsideLook = ReachParts & Pick<LookInsideTask, 'platforms' | 'overrides'> & { readonly asked: QueriedTarget };

async function lookInside(look: InsideLook): Promise<readonly (readonly Inside[])[]> {
  const { reference } = look.asked;
  const target = reference.digest ?? reference.tag ?? 'latest';
  const manifests = await manifestsOf(look, await look.requests.manifest(look.asked, target));
  const all: (readonly Inside[])[] = [];
  for (const platform of look.platforms) all.push(await lookAt(look, platform, manifests.get(platformKey(platform))));
  return all;
}

/** Returns the first manifest that the image has for each platform. */
async function manifestsOf({ requests, asked, platforms }: InsideLook, root: Sent): Promise<ReadonlyMap<string, Sent>> {
  const wanted = new Set(platforms.map(platformKey));
  if (root.manifest(0).kind === 'image') return new Map([...wanted].map((name) => [name, root]));
  const found = new Map<string, Sent>();
  const keep = (name: string, sent: Sent) => void (wanted.delete(name) && found.set(name, sent));
  let children = 0;
  const visit = async (sent: Sent): Promise<void> => {
    const manifest = sent.manifest(0);
    if (manifest.kind === 'image') {
      const config = await requests.config(asked, manifest.config, MAX_CONFIG);
      return keep(platformKey(parseImageConfig(config).platform), sent);
    }
    for (const { digest, kind, isAttestation, platform } of manifest.entries) {
      if (digest === undefined || isAttestation || kind === 'other' || kind === 'schema1') continue;
      const stated = platform && readPlatform(platform);
      const name = typeof stated === 'object' ? platformKey(stated) : '';
      const isOpen = kind === 'index' || stated === undefined;
      if (!(isOpen || wanted.has(name)) || children >= MAX_CHILDREN) continue;
      children += 1;
      const child = await requests.manifest(asked, digest).catch((error: unknown) => {
        if (!(error instanceof ImageError) || error.code !== 'not-found') throw error;
        return undefined;
      });
      if (child !== undefined && isOpen) await visit(child);
      else if (child !== undefined) keep(name, child);
    }
  };
  await visit(root);
  return found;
}

async function lookAt(look: InsideLook, platform: Platform, sent: Sent | undefined): Promise<readonly Inside[]> {
  const unknown = (reason: string): Inside[] =>
    look.overrides.map(() => ({ platform, verdict: 'unknown', reason, bytesRead: 0 }));
  if (platform.os === 'windows') return unknown('what an image for Windows starts is not looked at');
  if (sent === undefined) return unknown('its manifest was not found in the index');
  const manifest = sent.manifest(0);
  const layers = readLayers(sent.body);
  if (manifest.kind !== 'image' || layers === undefined) return unknown('its manifest lists no layers');
  const image = readImageProcess(await look.requests.config(look.asked, manifest.config, MAX_CONFIG));
  if (image === undefined) return unknown('its config blob is not a JSON object');
  const stated = readPlatform(image);
  const found = await readUntilFound(look, platform, image, layers);
  const { os, architecture } = typeof stated === 'string' ? platform : stated;
  if (os === platform.os && architecture === platform.architecture) return found;
  return found.map((each) => ({
    ...each,
    reason: `${each.reason === undefined ? '' : `${each.reason}; `}its config says ${os}/${architecture}`,
  }));
}

async function readUntilFound(
  look: InsideLook,
  platform: Platform,
  image: ImageProcess,
  layers: readonly LayerDescriptor[],
): Promise<Inside[]> {
  const { asked, now } = look;
  const allowance: Allowance = { ...PER_PLATFORM };
  const expired = () => new LayerProblem(`was not reached within ${PLATFORM_MS / 1000} s`);
  let endsAt = now() + PLATFORM_MS;
  const step = createStep(allowance, () => {
    if (now() >= endsAt) throw expired();
  });
  const tree = createLayerTree({ step });
  const wanted = look.overrides.map((override) => ({ platform, process: processOf(image, override), tree }));
  const found = wanted.map((): Finding | undefined => undefined);
  const isFound = (): boolean =>
    wanted.every((each, index) => {
      if (found[index] !== undefined) return true;
      const next = findProgram(each);
      if ('verdict' in next) found[index] = next;
      return 'verdict' in next;
    });
  const isEnough = (): boolean => tree.hasNews() && isFound();
  let why = 'was not reached';
  const readAll = async (until: AbortSignal): Promise<void> => {
    for (const [index, { digest, unread }] of layers.entries()) {
      if (isFound()) return;
      if (unread !== undefined) throw new LayerProblem(unread);
      tree.begin();
      if (!(await download(look, digest, { tree, allowance, isEnough }, until))) return;
      tree.end(index === layers.length - 1);
    }
  };
  try {
    await withDeadline(PLATFORM_MS, asked.signal, expired, readAll, look.after);
  } catch (error) {
    if (asked.signal.aborted || !(error instanceof LayerProblem)) throw error;
    why = error.message;
  }
  // What is left of the steps is little work.
  endsAt = Number.POSITIVE_INFINITY;
  const bytesRead = Math.min(PER_PLATFORM.compressed - allowance.compressed, PER_PLATFORM.compressed);
  return wanted.map((each, index) => ({ platform, ...(found[index] ?? settleFor(each, why)), bytesRead }));
}

/** Reads one layer; returns whether it was read to its end. */
async function download(look: InsideLook, digest: string, reading: Reading, until: AbortSignal): Promise<boolean> {
  let isWhole: boolean | LayerProblem | undefined;
  const read = async (body: AsyncIterable<Uint8Array>): Promise<void> => {
    if (isWhole !== undefined) throw new Error('the body was read twice');
    isWhole = false;
    isWhole = await readLayer(body, digest, reading).catch((error: unknown) => {
      // Thrown here, it would count as a failure of the connection.
      if (error instanceof LayerProblem && !until.aborted) return error;
      throw error;
    });
  };
  const more = { maxBytes: reading.allowance.compressed, timeoutMs: PLATFORM_MS, read };
  await look.requests.get({ ...look.asked, signal: until }, `blobs/${digest}`, 'a layer', more);
  if (typeof isWhole === 'object') throw isWhole;
  return isWhole === true;
}

/** Returns the layers of an image manifest, from the top one down; undefined if the manifest is not one. */
function readLayers(body: Uint8Array): readonly LayerDescriptor[] | undefined {
  const manifest = parseObject(body);
  const listed = manifest === undefined ? undefined : fieldOf(manifest, 'layers');
  if (!Array.isArray(listed) || listed.length > MAX_LAYERS) return undefined;
  return listed.map(readDescriptor).reverse();
}

function readDescriptor(value: unknown): LayerDescriptor {
  const layer = isObject(value) ? value : {};
  const [digest, type, urls] = [fieldOf(layer, 'digest'), fieldOf(layer, 'mediaType'), fieldOf(layer, 'urls')];
  const name = typeof type === 'string' ? type : '';
  if (typeof digest !== 'string' || !isDigest(digest))
    return { digest: '', unread: 'has a layer without a valid digest' };
  if (/foreign|nondistributable/.test(name) || (Array.isArray(urls) && urls.length > 0)) {
    return { digest, unread: 'may be in a foreign layer, which is not in the registry and is not read' };
  }
  if (/encrypted/.test(name)) return { digest, unread: 'may be in an encrypted layer, which is not read' };
  if (name !== '' && !/tar/.test(name)) {
    return { digest, unread: `may be in a layer of type "${printableAscii(name, 100)}", which is not read` };
  }
  return { digest };
}
