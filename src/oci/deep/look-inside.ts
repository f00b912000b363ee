import { onAbort } from '../../kit/abort.ts';
import { type Clock, systemClock } from '../../kit/clock.ts';
import type { Platform } from '../../kit/platform.ts';
import type { AskingParts } from '../asking.ts';
import type { Access } from '../credentials/keyring.ts';
import { labelOf } from '../endpoints/endpoint.ts';
import { ImageError } from '../errors.ts';
import { isSuccess, withDeadline } from '../http/transport.ts';
import { createRequests, type QueriedEndpoint, requestFor, type Sent } from '../lookup/request.ts';
import { MAX_CONFIG, parseImageConfig, readPlatform } from '../manifest.ts';
import { digestName, parseReference } from '../reference.ts';
import type { TagResolver } from '../resolver.ts';
import { type Finding, findProgram, settleFor } from './find-program.ts';
import { type ImageProcess, type Override, processOf, readImageProcess } from './image-process.ts';
import { createStep, PER_PLATFORM, readLayer } from './layer-reader.ts';
import { type Allowance, isLayerProblem, LayerProblem } from './layer-reading.ts';
import { createLayerTree } from './layer-tree.ts';
import { type LayerDescriptor, readLayers } from './layers.ts';

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

/** Milliseconds for one platform of an image. */
const PLATFORM_MS = 180_000;
/** Indexes within indexes, as in a lookup, and the entries that are read to learn their platforms. */
const MAX_DEPTH = 3;
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
  return reach(name, access, signal, (asked, parts) => createLookInside(asked, parts)(task));
}

function createLookInside(asked: QueriedEndpoint, { send, now, after, timeoutMs }: AskingParts) {
  const requests = createRequests({ send, now });
  const { signal } = asked;
  return lookAt;

  async function lookAt(task: LookInsideTask): Promise<readonly (readonly Inside[])[]> {
    const { digest, tag = 'latest' } = asked.reference;
    const { platforms } = task;
    const images = await imagesOf(await requests.manifest(asked, digest ?? tag), platforms);
    const found: (readonly Inside[])[] = [];
    for (const [index, platform] of platforms.entries())
      found.push(await lookAtPlatform(platform, images[index], task));
    return found;
  }

  /** Returns the manifest of each platform: the first that the index has for it. */
  async function imagesOf(root: Sent, platforms: readonly Platform[]): Promise<(Sent | undefined)[]> {
    const found: (Sent | undefined)[] = platforms.map(() => undefined);
    let children = 0;
    const indexIn = (platform: Platform): number =>
      platforms.findIndex((each, index) => found[index] === undefined && nameOf(each) === nameOf(platform));

    async function visit(sent: Sent, depth: number): Promise<void> {
      const manifest = sent.manifest(0);
      if (manifest.kind === 'image') {
        const config = await requests.config(asked, manifest.config.digest, MAX_CONFIG);
        const index = indexIn(parseImageConfig(config).platform);
        if (index >= 0) found[index] = sent;
        return;
      }
      for (const { digest, kind, isAttestation, platform } of manifest.entries) {
        if (digest === undefined || isAttestation || kind === 'other' || kind === 'schema1') continue;
        const stated = platform === undefined ? undefined : readPlatform({ ...platform, os: platform.os || 'linux' });
        const index = stated === undefined || typeof stated === 'string' ? -1 : indexIn(stated);
        const isOpen = kind === 'index' || stated === undefined;
        if ((index < 0 && !isOpen) || depth > MAX_DEPTH || children >= MAX_CHILDREN) continue;
        children += 1;
        const child = await requests.manifest(asked, digest).catch(ignoreMissing);
        if (child === undefined) continue;
        if (isOpen) await visit(child, depth + 1);
        else found[index] = child;
      }
    }

    if (root.manifest(0).kind === 'image') return platforms.map(() => root);
    await visit(root, 1);
    return found;
  }

  async function lookAtPlatform(
    platform: Platform,
    sent: Sent | undefined,
    task: LookInsideTask,
  ): Promise<readonly Inside[]> {
    const unknown = (reason: string): Inside[] =>
      task.overrides.map(() => ({ platform, verdict: 'unknown', reason, bytesRead: 0 }));
    if (sent === undefined) return unknown('its manifest was not found in the index');
    const manifest = sent.manifest(0);
    const layers = readLayers(sent.body);
    if (manifest.kind !== 'image' || layers === undefined) return unknown('its manifest lists no layers');
    const image = readImageProcess(await requests.config(asked, manifest.config.digest, MAX_CONFIG));
    if (image === undefined) return unknown('its config blob is not a JSON object');
    const stated = readPlatform(image);
    const found = await readUntilFound(platform, image, layers, task);
    const { os, architecture } = typeof stated === 'string' ? platform : stated;
    if (os === platform.os && architecture === platform.architecture) return found;
    return found.map((each) => ({
      ...each,
      reason: `${each.reason === undefined ? '' : `${each.reason}; `}its config says ${os}/${architecture}`,
    }));
  }

  async function readUntilFound(
    platform: Platform,
    image: ImageProcess,
    layers: readonly LayerDescriptor[],
    { overrides }: LookInsideTask,
  ): Promise<Inside[]> {
    const allowance: Allowance = { ...PER_PLATFORM };
    const expired = () => new LayerProblem(`was not reached within ${PLATFORM_MS / 1000} s`, true);
    let endsAt = now() + PLATFORM_MS;
    const step = createStep(allowance, () => {
      if (now() >= endsAt) throw expired();
    });
    const tree = createLayerTree({ step, isCaseless: platform.os === 'windows' });
    const wanted = overrides.map((override) => ({
      // Of an index whose config names another system, the layers are still those of the image.
      platform,
      process: processOf({ ...image, os: platform.os }, override),
      tree,
    }));
    const found = wanted.map((): Finding | undefined => undefined);
    const isFound = (): boolean =>
      wanted.every((each, index) => {
        if (found[index] !== undefined) return true;
        const next = findProgram(each);
        if ('verdict' in next) found[index] = next;
        return 'verdict' in next;
      });
    let why = 'was not reached';
    try {
      await withDeadline(
        PLATFORM_MS,
        signal,
        expired,
        async (until) => {
          for (const [index, { digest, unread }] of layers.entries()) {
            if (isFound()) return;
            if (unread !== undefined) throw new LayerProblem(unread);
            tree.begin();
            const reading = {
              tree,
              allowance,
              isModeless: platform.os === 'windows',
              isEnough: () => tree.hasNews() && isFound(),
            };
            if (!(await download(digest, reading, until))) return;
            tree.end(index === layers.length - 1);
          }
        },
        after,
      );
    } catch (error) {
      if (signal.aborted || !isLayerProblem(error)) throw error;
      why = error.message;
    }
    // What is left of the steps is little work.
    endsAt = Number.POSITIVE_INFINITY;
    const bytesRead = Math.min(PER_PLATFORM.compressed - allowance.compressed, PER_PLATFORM.compressed);
    return wanted.map((each, index) => ({ platform, ...(found[index] ?? settleFor(each, why)), bytesRead }));
  }

  /** Reads one layer; returns whether it was read to its end. */
  async function download(
    digest: string,
    reading: Parameters<typeof readLayer>[2],
    signal: AbortSignal,
  ): Promise<boolean> {
    let outcome: { readonly isWhole: boolean } | { readonly problem: LayerProblem } | undefined;
    let hasBegun = false;
    const stalled = createStallGuard(timeoutMs, signal, labelOf(asked), after);
    try {
      const response = await send(
        requestFor({ ...asked, signal: stalled.signal }, `blobs/${digest}`, {
          maxBytes: reading.allowance.compressed,
          timeoutMs: PLATFORM_MS,
          async read(body) {
            if (hasBegun) throw new Error('the body was read twice');
            hasBegun = true;
            try {
              outcome = { isWhole: await readLayer(stalled.watch(body), digest, reading) };
            } catch (error) {
              if (!isLayerProblem(error) || signal.aborted) throw error;
              outcome = { problem: error };
            }
          },
        }),
      );
      if (!isSuccess(response)) throw requests.failed(response, asked, 'a layer');
    } finally {
      stalled.end();
    }
    if (outcome === undefined) return false;
    if ('problem' in outcome) throw outcome.problem;
    return outcome.isWhole;
  }
}

/** Watches a download: if no byte arrives for so many milliseconds, its signal aborts. */
function createStallGuard(
  milliseconds: number,
  parent: AbortSignal,
  label: string,
  after: Clock['after'] = systemClock.after,
) {
  const controller = new AbortController();
  const forget = onAbort(parent, () => controller.abort(parent.reason));
  let cancel = (): void => {};
  const arm = (): void => {
    cancel();
    cancel = after(milliseconds, () => {
      const message = `${label} sent nothing for ${milliseconds / 1000} s`;
      controller.abort(new ImageError(message, { code: 'timeout', endpoint: label, isUnanswered: true }));
    });
  };
  arm();
  return {
    signal: controller.signal,
    async *watch(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
      for await (const chunk of body) {
        cancel();
        yield chunk;
        arm();
      }
    },
    /** Ends the watch, and the download, if it goes on. */
    end() {
      cancel();
      forget();
      controller.abort();
    },
  };
}

function ignoreMissing(error: unknown): undefined {
  if (error instanceof ImageError && error.code === 'not-found') return undefined;
  throw error;
}

function nameOf({ os, architecture, variant = '' }: Platform): string {
  return `${os}/${architecture}/${variant}`;
}
